# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same under Wayland: the compositor belongs to the session, and no client is told where windows are."""

import os
import time

from stage import processes
from stage.wayland import session
from stage.windows import Place

from . import login

# The share of the screen at which a click is inside the program's window.
INSIDE = (0.35, 0.6)


class WaylandLogin(login.Login, session.Session):
    SIZE = (1280, 800)
    # No program of these sessions has its messages logged.
    copied = True

    def furnish(self):
        for name in ("GDK_BACKEND", "QT_QPA_PLATFORM", "GSK_RENDERER"):
            self.env.pop(name, None)
        width, height = self.SIZE
        self.desktop.prepare(self, width, height)
        super().furnish()

    def start_display(self):
        self.start_bus()

    def await_parts(self):
        """The sockets of the compositor tell where it is."""
        super().await_parts()
        run = self.folder / "run"
        limit = time.monotonic() + login.LOGIN_MAX_S
        while not (found := [path for path in run.glob("wayland-*") if path.is_socket()]):
            if time.monotonic() > limit:
                raise processes.CannotRun("no compositor listens")
            time.sleep(0.1)
        self.env["WAYLAND_DISPLAY"] = self.display = found[0].name
        for path in run.glob("sway-ipc.*"):
            self.env["SWAYSOCK"] = str(path)
        time.sleep(1)

    def start_input(self):
        session.Session.start_input(self)

    def open_program(self):
        before = self.grab()
        words = [word.format(home=self.folder / "home") for word in self.desktop.program]
        self.start("program", words)
        limit = time.monotonic() + 30
        while self.same(before, self.grab()):
            if time.monotonic() > limit:
                raise processes.CannotRun(f"no window of {words[0]}: {(self.folder / 'program.log').read_text()[-300:]}")
            time.sleep(0.3)
        time.sleep(self.desktop.settle_s)
        self.focus()

    def same(self, before, after):
        return login.picture.changed(before, after, Place(0, 0, before.width, before.height)) is None

    def focus(self):
        width, height = self.SIZE
        self.input.click(width * INSIDE[0], height * INSIDE[1])
        time.sleep(0.5)

    def end_server(self):
        """The compositor ends with its session."""
        for name in ("WAYLAND_DISPLAY", "SWAYSOCK", "DISPLAY"):
            self.env.pop(name, None)
        for path in (self.folder / "run").glob("*"):
            if path.is_socket():
                os.unlink(path)
