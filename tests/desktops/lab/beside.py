# SPDX-License-Identifier: MIT OR Apache-2.0
"""Breakages by a second session, or by a portal that refuses or hangs, for the duration of a context."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import time

from stage import inject, processes, session as sessions
from stage.wayland.session import PYTHON
from shared import until

from . import desktops
from .breaking import owner

HERE = pathlib.Path(__file__).resolve().parent
SILENT_S = 25
# On sway: unknown desktop with a portal. The keys of the others do not need one.
UNKNOWN_DESKTOP = {"XDG_CURRENT_DESKTOP": "Other", "SWAYSOCK": ""}


@contextlib.contextmanager
def environment(session, more):
    kept = session.env
    session.env = kept | more
    try:
        yield
    finally:
        session.env = kept


def portal(*mode):
    @contextlib.contextmanager
    def broken(session):
        program = session.folder / "portal.py"
        shutil.copyfile(HERE / "portal.py", program)
        program.chmod(0o644)
        real = owner(session, "org.freedesktop.portal.Desktop")
        if real:
            processes.end({real})
        sway = session.desktop.name == "sway"
        with environment(session, UNKNOWN_DESKTOP if sway else {}):
            process = session.start("portal", [*PYTHON, program, *mode], stdout=subprocess.PIPE, text=True)
            if not process.stdout.readline():
                raise session.failure("the portal did not start", "portal")
            try:
                yield
            finally:
                processes.end({agent} if (agent := session.agent()) else ())
                processes.end({process.pid})
                if sway:
                    session.run(["swaymsg", "-s", max((session.folder / "run").glob("sway-ipc.*")), "reload"])

    return broken


@contextlib.contextmanager
def second_session(session):
    """Opens a second display of the same user on the same bus, for commands and input."""
    kept, started = session.input, []
    if session.desktop.wayland:
        before = set((session.folder / "run").glob("wayland-?"))
        with environment(session, {**desktops.SWAY.env, "XDG_CURRENT_DESKTOP": "sway"}):
            started.append(session.start("second", ["sway"]))
        new = lambda: set((session.folder / "run").glob("wayland-?")) - before  # noqa: E731
        more = {"WAYLAND_DISPLAY": until(new, "the second session has no display", 15, 0.2).pop().name}
        more["XDG_CURRENT_DESKTOP"] = "sway"
        more["SWAYSOCK"] = str(max((session.folder / "run").glob("sway-ipc.*"), key=os.path.getmtime))
    else:
        words = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-noreset", "-auth", session.folder / "authority"]
        with sessions.alone():
            started.append(session.start("second", words, stdout=subprocess.PIPE, text=True))
            number = started[0].stdout.readline().strip()
        entries = session.folder / "authority-2"
        entries.write_bytes(sessions.authority(session.cookie, number))
        more = {"DISPLAY": f":{number}", "XAUTHORITY": str(entries)}
    time.sleep(2)
    with environment(session, more):
        if session.desktop.wayland:
            session.input = inject.Lasting(session.start("injector-2", [*PYTHON, session.folder / "injector.py"], **inject.ASKED))
        else:
            session.input = inject.make("lasting", session.env)
        try:
            yield
        finally:
            session.input = kept
            processes.end({process.pid for process in started})
            time.sleep(1)
