# SPDX-License-Identifier: MIT OR Apache-2.0
"""Processes that are stopped or frozen from outside."""

import os
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
        owner = self.session.start("owner", self.session.owner(self.which))
        time.sleep(0.3)
        if owner.poll() is not None:
            raise processes.CannotRun("nobody owns the selection")

    def settle(self):
        processes.end({self.session.roles["owner"]})
        self.session.start("owner", self.session.owner(self.which))
        time.sleep(0.5)


class Freeze(Fault):
    """A role and what it has started are frozen, as a suspended service is, by the freezer of either version of control groups:
    `freeze server unified`."""

    WORDS = 2
    # The mount of the control groups, the file, and what is written to freeze and to thaw.
    FREEZERS = {"freezer": ("freezer.state", "FROZEN", "THAWED"), "unified": ("cgroup.freeze", "1", "0")}

    def __init__(self, session, role="program", version="freezer"):
        super().__init__(session)
        self.role, self.version = role, version
        self.file, self.frozen, self.thawed = self.FREEZERS[version]

    def ready(self):
        self.group = fault.Group(self.version, "cgroup.procs")
        self.group.take(self.session.roles[self.role])

    def begin(self):
        self.group.set(self.file, self.frozen)
        time.sleep(0.2)

    def end(self):
        at = processes.now_ns()
        self.group.set(self.file, self.thawed)
        return at

    def clean(self):
        if hasattr(self, "group"):
            self.group.set(self.file, self.thawed)
            self.group.remove()


class Traced(Fault):
    """A debugger attaches to a role, and lets it go: `traced server`."""

    def __init__(self, session, role="program"):
        super().__init__(session)
        self.role = role

    def begin(self):
        pid = self.session.roles[self.role]
        words = ["gdb", "-nx", "-quiet", "-p", str(pid)]
        self.debugger = self.session.start("debugger", words, as_user=False, stdin=subprocess.PIPE, text=True)
        limit = time.monotonic() + 20
        while processes.status(pid)[0] != "t":
            if time.monotonic() > limit:
                raise processes.CannotRun("the debugger did not stop the process")
            time.sleep(0.01)
        time.sleep(0.5)

    def end(self):
        self.debugger.stdin.write("detach\nquit\n")
        self.debugger.stdin.flush()
        return processes.now_ns()


FAULTS = {"stop": Stop, "selection": Selection, "freeze": Freeze, "traced": Traced}
