# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sessions under Wayland: the compositor belongs to the session, and no client knows window positions."""

import os
import time

from stage import processes
from stage.wayland import session
from stage.windows import Place

from . import login, picture

# Position of a click inside the program's window, as shares of the screen.
INSIDE = (0.35, 0.6)


class WaylandLogin(login.Login, session.Session):
    # No program of these sessions logs its Wayland messages.
    copied = True

    def furnish(self):
        for name in ("GDK_BACKEND", "QT_QPA_PLATFORM", "GSK_RENDERER"):
            self.env.pop(name, None)
        super().furnish()

    def start_display(self):
        self.start_bus()

    def take_environment(self):
        super().take_environment()
        if "WAYLAND_DISPLAY" not in self.env:
            raise processes.CannotRun(f"{self.desktop.parts[-1]} is on no display of Wayland")
        self.display = self.env["WAYLAND_DISPLAY"]
        time.sleep(1)

    def start_input(self):
        session.Session.start_input(self)

    def open_program(self):
        before = self.grab()
        self.start_program(lambda: picture.changed(before, self.grab(), Place(0, 0, before.width, before.height)))
        self.focus()

    def focus(self):
        width, height = self.SIZE
        self.input.click(width * INSIDE[0], height * INSIDE[1])
        time.sleep(0.5)

    def end_server(self):
        """Removes the sockets of the compositor, which ended with its session."""
        for path in (self.folder / "run").glob("wayland-*"):
            os.unlink(path)
