# SPDX-License-Identifier: MIT OR Apache-2.0
"""Processes that are stopped or frozen from outside."""

import os
import subprocess
import time

from shared import until

from . import fault, processes
from .fault import Fault


def signalled(session, number, pid):
    """Sends a signal by a process of its own, as a script does; returns the latest time at which
    it was sent."""
    sender = processes.start(["kill", f"-{number}", pid], as_user=False)
    session.roles["sender"] = session.roles.get("sender") or sender.pid
    sender.wait()
    return processes.now_ns()


class Stop(Fault):
    """SIGSTOP of a role, or of a child of the program by its name: `stop manager`, `stop
    program/less`."""

    PARAMETERS = {"who": "program"}

    def target(self):
        role, _, name = self.who.partition("/")
        pid = os.getpid() if role == "session" else self.session.roles[role]
        return fault.child(pid, name=name) if name else pid

    def begin(self):
        self.pid = self.session.roles["stopped"] = self.target()
        signalled(self.session, "STOP", self.pid)
        until(lambda: processes.status(self.pid)[0] == "T", "the process did not stop", 2, 0.005)
        time.sleep(0.1)

    def end(self):
        at = processes.now_ns()
        signalled(self.session, "CONT", self.pid)
        return at


class Selection(Stop):
    """The owner of a selection is stopped, then its text is requested: `selection clipboard`."""

    PARAMETERS, who = {"which": "clipboard"}, "owner"

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
    """A role and its descendants are frozen, like a suspended service, by the freezer of either
    version of control groups: `freeze server unified`."""

    PARAMETERS = {"role": "program", "version": "freezer"}
    # Mount of the control groups, the file, and the values to freeze and to thaw.
    FREEZERS = {"freezer": ("freezer.state", "FROZEN", "THAWED"), "unified": ("cgroup.freeze", "1", "0")}

    def ready(self):
        self.file, self.frozen, self.thawed = self.FREEZERS[self.version]
        self.group = self.grouped(self.version, "cgroup.procs", self.role)
        self.undo.append(lambda: self.group.set(self.file, self.thawed))

    def begin(self):
        self.group.set(self.file, self.frozen)
        time.sleep(0.2)

    def end(self):
        at = processes.now_ns()
        self.group.set(self.file, self.thawed)
        return at


class Traced(Fault):
    """A debugger attaches to a role, and detaches: `traced server`."""

    PARAMETERS = {"role": "program"}

    def begin(self):
        pid = self.session.roles[self.role]
        words = ["gdb", "-nx", "-quiet", "-p", str(pid)]
        self.debugger = self.session.start("debugger", words, as_user=False, stdin=subprocess.PIPE, text=True)
        until(lambda: processes.status(pid)[0] == "t", "the debugger did not stop the process", 20, 0.01)
        time.sleep(0.5)

    def end(self):
        self.debugger.stdin.write("detach\nquit\n")
        self.debugger.stdin.flush()
        return processes.now_ns()


FAULTS = {"stop": Stop, "selection": Selection, "freeze": Freeze, "traced": Traced}
