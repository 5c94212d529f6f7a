# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts a session beside another one, or on a desktop with a portal that does not serve, for as long as a context lasts."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import time

from stage import inject, processes, session as sessions
from stage.wayland.session import PYTHON

from .breaking import owner

HERE = pathlib.Path(__file__).resolve().parent
SILENT_S = 25
# A desktop of which nothing is known but its portal.
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
        with environment(session, UNKNOWN_DESKTOP):
            process = session.start("portal", [*PYTHON, program, *mode], stdout=subprocess.PIPE, text=True)
            if not process.stdout.readline():
                raise processes.CannotRun("the portal did not start: " + (session.folder / "portal.log").read_text()[-300:])
            try:
                yield
            finally:
                processes.end({agent} if (agent := session.agent()) else ())
                processes.end({process.pid})
                session.run(["swaymsg", "-s", max((session.folder / "run").glob("sway-ipc.*")), "reload"])

    return broken


@contextlib.contextmanager
def second_session(session):
    """Another display of the same person, on the same bus; what is asked and pressed is there."""
    kept, started = session.input, []
    if session.desktop.wayland:
        before = set((session.folder / "run").glob("wayland-?"))
        started.append(session.start("second", ["sway"]))
        more = {"WAYLAND_DISPLAY": until_new(session.folder / "run", "wayland-?", before), "SWAYSOCK": ""}
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


def until_new(folder, pattern, before):
    limit = time.monotonic() + 15
    while time.monotonic() < limit:
        if new := set(folder.glob(pattern)) - before:
            return new.pop().name
        time.sleep(0.2)
    raise processes.CannotRun("the second session has no display")
