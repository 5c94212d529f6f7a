# SPDX-License-Identifier: MIT OR Apache-2.0
"""Processes that are stopped or frozen from outside."""

import os
import pathlib
import subprocess
import time

from . import fault, processes
from .fault import Fault


def signalled(session, number, pid):
    """Sends a signal by a process of its own, as a script does; gives when it was sent at the latest."""
    sender = processes.start(["kill", f"-{number}", pid], as_user=False)
    session.roles["sender"] = session.roles.get("sender") or sender.pid
    sender.wait()
    return processes.now_ns()


class Stop(Fault):
    """SIGSTOP of a role, or of a child of the program by its name: `stop manager`, `stop program/less`."""

    def target(self):
        role, _, name = self.words.partition("/")
        pid = os.getpid() if role == "session" else self.session.roles[role]
        return fault.child(pid, name=name) if name else pid

    def __init__(self, session, words="program"):
        super().__init__(session)
        self.words = words

    def begin(self):
        self.pid = self.session.roles["stopped"] = self.target()
        signalled(self.session, "STOP", self.pid)
        limit = time.monotonic() + 2
        while processes.status(self.pid)[0] != "T":
            if time.monotonic() > limit:
                raise processes.CannotRun("the process did not stop")
            time.sleep(0.005)
        time.sleep(0.1)

    def end(self):
        at = processes.now_ns()
        signalled(self.session, "CONT", self.pid)
        return at


class Selection(Stop):
    """The owner of a selection is stopped, then its text is wanted: `selection clipboard`."""

    def __init__(self, session, which="clipboard"):
        super().__init__(session, "owner")
        self.which = which

    def ready(self):
        text = self.session.folder / "home/copied"
        text.write_text("pasted text")
        os.chmod(text, 0o644)
        owner = self.session.start("owner", ["xclip", "-quiet", "-selection", self.which, "-in", text])
        time.sleep(0.3)
        if owner.poll() is not None:
            raise processes.CannotRun("xclip does not own the selection")

    def settle(self):
        text = self.session.folder / "home/copied"
        processes.end({self.session.roles["owner"]})
        self.session.start("owner", ["xclip", "-quiet", "-selection", self.which, "-in", text])
        time.sleep(0.5)


class Freeze(Fault):
    """The program and what it has started are frozen, as a suspended service is."""

    def ready(self):
        base = pathlib.Path("/sys/fs/cgroup/freezer")
        if not (base / "cgroup.procs").exists():
            raise processes.CannotRun("there is no freezer of version 1 here")
        self.group = base / f"tipme-field-{os.getpid()}"
        self.group.mkdir(exist_ok=True)
        self.join(self.session.roles["program"])

    def join(self, pid):
        for one in {pid} | processes.descendants(pid):
            (self.group / "cgroup.procs").write_text(str(one))

    def begin(self):
        (self.group / "freezer.state").write_text("FROZEN")
        time.sleep(0.2)

    def end(self):
        at = processes.now_ns()
        (self.group / "freezer.state").write_text("THAWED")
        return at

    def clean(self):
        if self.group.exists():
            (self.group / "freezer.state").write_text("THAWED")
            leave(self.group)


def leave(group):
    """Gives the processes back to the group above, and removes the group."""
    for pid in (group / "cgroup.procs").read_text().split():
        try:
            (group.parent / "cgroup.procs").write_text(pid)
        except OSError:
            pass
    group.rmdir()


class Traced(Fault):
    """A debugger attaches to the program, and lets it go."""

    def begin(self):
        words = ["gdb", "-nx", "-quiet", "-p", str(self.session.roles["program"])]
        self.debugger = self.session.start("debugger", words, as_user=False, stdin=subprocess.PIPE, text=True)
        limit = time.monotonic() + 20
        while processes.status(self.session.roles["program"])[0] != "t":
            if time.monotonic() > limit:
                raise processes.CannotRun("the debugger did not stop the program")
            time.sleep(0.01)
        time.sleep(0.5)

    def end(self):
        self.debugger.stdin.write("detach\nquit\n")
        self.debugger.stdin.flush()
        return processes.now_ns()


FAULTS = {"stop": Stop, "selection": Selection, "freeze": Freeze, "traced": Traced}
