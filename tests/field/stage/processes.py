# SPDX-License-Identifier: MIT OR Apache-2.0
"""Processes that the test starts, and their end.

All processes started here stay descendants of this process, even daemons: it is a child
subreaper. So each is ended by its own process id, and nothing else on the machine is touched."""

import ctypes
import os
import pwd
import signal
import subprocess
import time

from shared import CannotRun
from shared.proc import comm, command_line, descendants, parents, status

USER = "tipme-field"
PR_SET_CHILD_SUBREAPER = 36
# Time for processes to end by themselves, in seconds.
END_MAX_S = 1.0


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def adopt_orphans():
    """Makes this process the parent of orphaned descendants, which needs root like recording."""
    if os.geteuid() != 0:
        raise CannotRun("recording needs root")
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise CannotRun("orphans cannot be adopted here")


def user():
    """Returns the unprivileged user of the sessions; creates it if missing."""
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", USER], check=True)
        return pwd.getpwnam(USER)


def start(words, env=None, as_user=True, **options):
    """Starts a program in a session of its own, so that no signal of a terminal reaches it."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.DEVNULL)
    if as_user:
        entry = user()
        options.update(user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
    return subprocess.Popen([str(word) for word in words], env=env, start_new_session=True, **options)


def table(root=None):
    """Returns id, parent, name and command line of all descendants of a process."""
    above = parents()
    return [
        {"pid": pid, "parent": above.get(pid, 0), "comm": comm(pid), "cmdline": command_line(pid)[:200]}
        for pid in sorted(descendants(root))
    ]


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def reap():
    """Reaps ended processes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end(pids):
    """Ends processes: by SIGTERM first, then by SIGKILL."""
    pids = set(pids)
    for pid in pids:
        send(pid, signal.SIGTERM)
        send(pid, signal.SIGCONT)
    limit = time.monotonic() + END_MAX_S
    while pids and time.monotonic() < limit:
        time.sleep(0.02)
        reap()
        pids = {pid for pid in pids if status(pid)}
    for pid in pids:
        send(pid, signal.SIGKILL)


def end_descendants():
    """Ends all descendants of this process."""
    for _ in range(20):
        left = descendants()
        if not left:
            break
        end(left)
        time.sleep(0.02)
        reap()
    reap()
