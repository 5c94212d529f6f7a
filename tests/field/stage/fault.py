# SPDX-License-Identifier: MIT OR Apache-2.0
"""Base of all faults, and the programs that support faults beside the victim."""

import os
import pathlib
import random
import time

from shared import until

from . import processes


class Fault:
    """A fault without an effect; subclasses implement the effects."""

    # Attributes for the words after its name in the table, with their defaults.
    PARAMETERS = {}
    # Duration in seconds; one to two by default.
    HOLD_S = None
    # The screen answers only after the fault's end, which is known.
    bounded = True

    def __init__(self, session, words=""):
        given = words.split(" ", max(0, len(self.PARAMETERS) - 1)) if words else ()
        vars(self).update(self.PARAMETERS | dict(zip(self.PARAMETERS, given)))
        self.session, self.undo = session, []
        self.hold_s = self.HOLD_S or random.uniform(1.2, 2.4)

    def names(self):
        """Returns the names that the acts may refer to."""
        return {"home": str(self.session.folder / "home"), "port": self.session.port}

    @staticmethod
    def prepare(session, *words):
        """Makes files and environment for the session's programs."""

    def ready(self):
        """Starts helpers, before the baseline is learned."""

    def settle(self):
        """Runs between the baseline and the fault."""

    def begin(self):
        pass

    def end(self):
        """Ends the fault; returns the time of that."""
        return processes.now_ns()

    def clean(self):
        """Undoes everything after the mark, in reverse order."""
        while self.undo:
            self.undo.pop()()

    def grouped(self, mount, needed, role):
        """Makes a control group with the processes of a role."""
        group = Group(mount, needed)
        self.undo.append(group.remove)
        group.take(self.session.roles[role])
        return group

    def ends(self, process):
        """Registers a helper that ends with the fault."""
        self.undo.append(lambda: processes.end({process.pid}))
        return process

    def unmounts(self, place, lazily=False):
        """Registers a mount that is removed with the fault."""
        self.undo.append(lambda: unmount(place, lazily))


def unmount(place, lazily):
    for _ in range(0 if lazily else 20):
        if processes.start(["umount", place], as_user=False).wait() == 0:
            return
        time.sleep(0.3)
    processes.start(["umount", "-l", place], as_user=False).wait()


class Group:
    """A control group of one run, below one of the mounts of control groups that has the
    required file."""

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
        """Moves a process and its descendants into the group."""
        for one in {pid} | processes.descendants(pid):
            self.set("cgroup.procs", str(one))

    def set(self, file, words):
        (self.path / file).write_text(words)

    def remove(self):
        """Removes the group; moves its processes to the parent group first."""
        for pid in (self.path / "cgroup.procs").read_text().split():
            try:
                (self.path.parent / "cgroup.procs").write_text(pid)
            except OSError:
                pass
        self.path.rmdir()


def send(process, line=""):
    """Sends a line to a helper; returns the time after the helper has confirmed it."""
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def named(pid, name):
    """Finds a process by its name, or by a part of its command line after `~`."""
    if name.startswith("~"):
        return name[1:] in processes.command_line(pid)
    return processes.comm(pid) == name


def child(pid, timeout_s=5, name=None):
    """Returns the youngest descendant of a process, or the youngest with a name."""
    below = until(lambda: [one for one in processes.descendants(pid) if not name or named(one, name)],
                  f"process {pid} has no child {name or ''}", timeout_s, 0.1)
    return max(below, key=lambda one: (processes.status(one) or ("", 0, 0))[2])
