# SPDX-License-Identifier: MIT OR Apache-2.0
"""What every fault has, and the programs that serve faults beside the victim."""

import os
import pathlib
import random
import subprocess
import sys
import time

from . import processes


class Fault:
    """A fault does nothing by itself; kinds of faults say what."""

    # Words after its name in the table, at most.
    WORDS = 1
    # The screen answers only after the fault's end, which is known.
    bounded = True

    def __init__(self, session):
        self.session = session
        self.hold_s = random.uniform(1.2, 2.4)

    def names(self):
        """What the acts may refer to."""
        return {"home": str(self.session.folder / "home"), "port": self.session.port}

    @staticmethod
    def prepare(session, *words):
        """Files and environment that the session's programs find at their start."""

    def ready(self):
        """Before anything is usual: helpers are started."""

    def settle(self):
        """After what is usual, before the fault."""

    def begin(self):
        pass

    def end(self):
        """Ends it; gives when."""
        return processes.now_ns()

    def clean(self):
        """After the mark."""


class Group:
    """A control group of one run below one of the mounts of control groups, which has a file for what is wanted."""

    def __init__(self, mount, needed):
        base = pathlib.Path("/sys/fs/cgroup") / mount
        self.path = base / f"tipme-field-{os.getpid()}"
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise processes.CannotRun(f"no control group below {base}: {error}") from error
        if not (self.path / needed).exists():
            self.path.rmdir()
            raise processes.CannotRun(f"control groups below {base} have no {needed}")

    def take(self, pid):
        """A process and all that it has started."""
        for one in {pid} | processes.descendants(pid):
            self.set("cgroup.procs", str(one))

    def set(self, file, words):
        (self.path / file).write_text(words)

    def remove(self):
        """Gives the processes back to the group above first."""
        for pid in (self.path / "cgroup.procs").read_text().split():
            try:
                (self.path.parent / "cgroup.procs").write_text(pid)
            except OSError:
                pass
        self.path.rmdir()


def helper(session, role, source, *words, as_user=True):
    """A program of a few lines beside the victim; gives it when it has said that it is ready."""
    command = [sys.executable, "-B", "-u", "-c", source, *words]
    process = session.start(role, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, as_user=as_user)
    said = process.stdout.readline().strip()
    if not said.startswith("ready"):
        raise processes.CannotRun(f"{role} did not start: {(session.folder / f'{role}.log').read_text()[-300:]}")
    process.said = said.removeprefix("ready").strip()
    return process


def tell(process, line=""):
    """A line to a helper; gives when, after the helper has confirmed it."""
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def named(pid, name):
    """By its name, or by a part of its command line after `~`."""
    if name.startswith("~"):
        return name[1:] in processes.command_line(pid)
    return processes.comm(pid) == name


def child(pid, timeout_s=5, name=None):
    """The youngest descendant of a process, or the youngest of a name."""
    limit = time.monotonic() + timeout_s
    while time.monotonic() < limit:
        below = [one for one in processes.descendants(pid) if not name or named(one, name)]
        if below:
            return max(below, key=lambda one: (processes.status(one) or ("", 0, 0))[2])
        time.sleep(0.1)
    raise processes.CannotRun(f"process {pid} has no child {name or ''}")
