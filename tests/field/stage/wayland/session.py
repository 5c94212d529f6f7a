# SPDX-License-Identifier: MIT OR Apache-2.0
"""Private Wayland session: a compositor replaces X server and window manager."""

import pathlib
import shutil

from shared import until

from .. import inject, processes, session, truth
from ..windows import Place
from . import compositors, debuglog

HERE = pathlib.Path(__file__).resolve().parent
# Programs that run beside the session, as its user.
BESIDE = (HERE / "wire.py", HERE / "injector.py", HERE / "watcher.py", HERE.parent / "keysyms.py")
PYTHON = ("/usr/bin/python3", "-B", "-u")
# Share of the output around its middle that is inside a window of any compositor.
MIDDLE = 0.2


class Session(session.Session):
    """A session with its own display, input, screen and windows, and otherwise as under X11."""

    SIZE = (960, 640)

    def make_folders(self):
        super().make_folders()
        for path in BESIDE:
            shutil.copyfile(path, self.folder / path.name)
            (self.folder / path.name).chmod(0o644)
        width, height = self.SIZE
        del self.env["XAUTHORITY"]
        self.env |= {
            "XDG_SESSION_TYPE": "wayland", "GDK_BACKEND": "wayland", "QT_QPA_PLATFORM": "wayland", "GSK_RENDERER": "cairo",
            "TIPME_FIELD_SIZE": f"{width}x{height}",
        }  # fmt: skip

    def start_display(self):
        self.start_bus()
        compositors.start(self)
        self.screen = Screen(self) if self.copied else debuglog.Log(self.folder / "program.log")
        self.windows = Output(self)

    @property
    def copied(self):
        """Returns True if the compositor lets clients copy its screen."""
        return self.scenario.manager == "sway"

    def start_input(self):
        self.input = inject.Lasting(self.start("injector", [*PYTHON, self.folder / "injector.py"], **inject.ASKED))

    def owner(self, which):
        """Uses the clipboard protocol of sway."""
        return ["wl-copy", "--foreground", "--type", "text/plain", *(["--primary"] if which == "primary" else []), "pasted text"]

    def start(self, role, words, **options):
        """Makes the program log its own drawings, if the screen cannot be copied."""
        if role != "program" or self.copied:
            return super().start(role, words, **options)
        return super().start(role, ["env", "WAYLAND_DEBUG=client", *words], **options)


class Screen(session.screen.Log):
    """Log of a watcher that copies the screen."""

    def __init__(self, owner):
        super().__init__(owner.folder / "changes.log")
        with open(self.path, "wb") as file:
            owner.start("watcher", [*PYTHON, owner.folder / "watcher.py"], stdout=file)

    def look_at(self, _place):
        pass

    def changes(self):
        """Returns the changes except for those of a caret."""
        return [change for change in super().changes() if change[3] > truth.CARET_WIDTH]


class Output:
    """The only output, which represents the windows on it: a compositor reports window positions
    to no client."""

    def __init__(self, owner):
        self.session = owner
        self.located = owner.copied

    def close(self):
        pass

    def words(self, _window):
        return self.session.scenario.program

    def wait_for(self, _pattern, timeout_s):
        """Waits until the program has drawn something and has the focus."""
        return self if until(lambda: self.session.screen.changes() and self.has_focus(self), None, timeout_s, 0.2) else None

    def place(self, _window=None):
        width, height = self.session.SIZE
        if self.session.copied:
            return Place(0, 0, width, height)
        across, down = int(width * MIDDLE), int(height * MIDDLE)
        return Place(width // 2 - across, height // 2 - down, 2 * across, 2 * down)

    frame = place

    def has_focus(self, _window):
        if not self.session.copied:
            return bool(self.session.screen.focused)
        pid = compositors.focused(compositors.ask_sway(self.session, "-t", "get_tree"))
        program = self.session.roles["program"]
        return pid in {program} | processes.descendants(program)
