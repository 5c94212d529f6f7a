# SPDX-License-Identifier: MIT OR Apache-2.0
"""Readers of /proc. Ended processes give empty results."""

import os
import pathlib


def read(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def fields(pid):
    """Returns the fields of proc_pid_stat(5) from the third one, the state, on."""
    return read(pid, "stat").rpartition(")")[2].split()


def status(pid):
    """Returns state, parent and start time."""
    found = fields(pid)
    return (found[0], int(found[1]), int(found[19])) if found else None


def comm(pid):
    return read(pid, "comm").strip()


def command_line(pid):
    return read(pid, "cmdline").replace("\0", " ").strip()


def parents():
    """Returns the parents of all processes except zombies."""
    found = {int(name): status(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: known[1] for pid, known in found.items() if known and known[0] != "Z"}


def descendants(root=None):
    """Returns the descendants of a process, by default of this one."""
    root = root or os.getpid()
    table, below, grown = parents(), {root}, True
    while grown:
        more = {pid for pid, parent in table.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return below - {root}


def family(pid):
    """Returns a process and its descendants without a scan of all processes; may miss some that end meanwhile."""
    found = [pid]
    for one in found:
        for thread in pathlib.Path(f"/proc/{one}/task").glob("*"):
            found += [int(child) for child in read(f"{one}/task/{thread.name}", "children").split()]
    return found


def cpu_seconds(pid):
    """Returns user and system CPU time of a process, its descendants, and its ended children."""
    tick, total = os.sysconf("SC_CLK_TCK"), [0.0, 0.0]
    for one in family(pid):
        utime, stime, cutime, cstime = (int(field) / tick for field in fields(one)[11:15] or [0] * 4)
        total = [total[0] + utime + cutime, total[1] + stime + cstime]
    return total


def number(pid, file, name):
    """Returns the number in a line such as `VmHWM: 1234 kB`; `pid` is empty for a file of the machine."""
    return next((int(line.split()[1]) for line in read(pid, file).splitlines() if line.startswith(name)), 0)
