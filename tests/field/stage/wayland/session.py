# SPDX-License-Identifier: MIT OR Apache-2.0
"""A private session under Wayland: a compositor in place of X server and window manager."""

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
# The share of the output, to all sides of its middle, in which a window of any compositor is.
MIDDLE = 0.2


class Session(session.Session):
    """The same as under X11 but for display, input, screen and windows."""

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
        """Whether the compositor lets its screen be copied."""
        return self.scenario.manager == "sway"

    def start_input(self):
        self.input = inject.Lasting(self.start("injector", [*PYTHON, self.folder / "injector.py"], **inject.ASKED))

    def owner(self, which):
        """By the protocol for clipboards that sway has."""
        return ["wl-copy", "--foreground", "--type", "text/plain", *(["--primary"] if which == "primary" else []), "pasted text"]

    def start(self, role, words, **options):
        """The program itself logs what it shows, where the screen cannot be copied."""
        if role != "program" or self.copied:
            return super().start(role, words, **options)
        return super().start(role, ["env", "WAYLAND_DEBUG=client", *words], **options)


class Screen(session.screen.Log):
    """The log of a watcher that copies the screen."""

    def __init__(self, owner):
        super().__init__(owner.folder / "changes.log")
        with open(self.path, "wb") as file:
            owner.start("watcher", [*PYTHON, owner.folder / "watcher.py"], stdout=file)

    def look_at(self, _place):
        pass

    def changes(self):
        """Without those of a caret."""
        return [change for change in super().changes() if change[3] > truth.CARET_WIDTH]


class Output:
    """The only output, which stands for the windows on it: a compositor tells no client where windows are."""

    def __init__(self, owner):
        self.session = owner
        self.located = owner.copied

    def close(self):
        pass

    def words(self, _window):
        return self.session.scenario.program

    def wait_for(self, _pattern, timeout_s):
        """The program's window is there when it has drawn something and has the focus."""
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
