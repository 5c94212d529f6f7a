# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of recording by kind of record. Each kind is written by one kernel program, or by two at
the begin and end of something, and has a load that makes them run. The kernel counts time and
runs."""

import contextlib
import errno
import os
import pty
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import tty

from shared import progress
from shared.figures import shown, table
from shared.kernel_programs import EMPTY_TITLE, counting, empty_program, since, spent
from shared.programs import recorder

from . import PAIRS, gestures

# Display numbers from here on are free, unless another of these scripts runs.
NUMBERS = range(100, 200)
# The kernel truncates program names to this length.
NAME_CHARS = 15


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def passes():
    command("taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", "20000")


def moves():
    """Moves from CPU to CPU and back."""
    cpus = os.sched_getaffinity(0)
    for _ in range(500):
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, cpus)


def sleep_often():
    for _ in range(50):
        time.sleep(0.01)


def sleeps():
    sleepers = [threading.Thread(target=sleep_often) for _ in range(10)]
    for sleeper in sleepers:
        sleeper.start()
    for sleeper in sleepers:
        sleeper.join()


def processes():
    for _ in range(100):
        command("true")


def bind_free(listener, names):
    """Binds to the first free name."""
    for name in names:
        try:
            return listener.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"all of these are taken: {names[0]!r} to {names[-1]!r}")


@contextlib.contextmanager
def display():
    """Returns both ends of a connection to a display of X11."""
    with socket.socket(socket.AF_UNIX) as listener:
        bind_free(listener, [f"\0/tmp/.X11-unix/X{number}" for number in NUMBERS])
        listener.listen(1)
        client = socket.socket(socket.AF_UNIX)
        client.connect(listener.getsockname())
        server, _ = listener.accept()
    with client, server:
        yield client, server


def move(source, sink, data):
    source.sendmsg([data])
    sink.recv(4096)


def draws():
    """Filled rectangles of X11, after the connection setup."""
    with display() as (client, server):
        move(client, server, struct.pack("<cxHHHHxx", b"l", 11, 0, 0, 0))
        for _ in range(20_000):
            move(client, server, struct.pack("<BxHIIHHHH", 70, 5, 1, 2, 0, 0, 9, 9))


def signals():
    for _ in range(5_000):
        os.kill(os.getpid(), signal.SIGCONT)


def writes():
    with tempfile.NamedTemporaryFile(prefix="tipme-bench-", dir="/var/tmp") as file:
        for _ in range(100):
            os.write(file.fileno(), b"x" * 4096)
            os.fsync(file.fileno())


def terminal():
    ends = pty.openpty()
    tty.setraw(ends[1])
    for _ in range(3_000):
        os.write(ends[0], b"x")
        os.read(ends[1], 1)
    for end in ends:
        os.close(end)


# Kind of record: the load, and the programs that run once for each.
KINDS = {
    "switch": (passes, ("sched_switch",)),
    "waking": (passes, ("sched_waking",)),
    "waking after a long wait, with the wait's stack": (sleeps, ("sched_waking",)),
    "migrate": (moves, ("sched_migrate_task",)),
    "message sent (X11, one rectangle)": (draws, ("message_sent",)),
    "message taken (X11)": (draws, ("message_taken",)),
    "fork": (processes, ("fork",)),
    "exec": (processes, ("exec",)),
    "exit": (processes, ("exit_task",)),
    "rename": (processes, ("rename",)),
    "signal": (signals, ("signal_sent",)),
    "block I/O, issued and completed": (writes, ("block_issue", "block_complete")),
    "terminal, written and delivered": (terminal, ("tty_written", "tty_delivered")),
    "softirq, begun and ended": (draws, ("softirq_entry", "softirq_exit")),
    "timer interrupt, begun and ended": (sleeps, ("timer_entry", "timer_exit")),
    EMPTY_TITLE: (draws, (EMPTY_TITLE,)),
}


def kinds_once(programs):
    """Returns nanoseconds by kind; none for a kind whose programs did not run."""
    took = {}
    for load in dict.fromkeys(load for load, _ in KINDS.values()):
        before = spent(programs)
        load()
        took[load] = since(before, programs)
    return {kind: each(took[load], names) for kind, (load, names) in KINDS.items()}


def each(took, names):
    """Returns the total time of a run of each of these programs."""
    runs = [took.get(name) or took.get(name[:NAME_CHARS], (0, 0)) for name in names]
    return sum(nanos / count for nanos, count in runs) if all(count for _, count in runs) else None


def kinds(options):
    rounds, rows = [], [("record", "programs", "ns, median (least to most)")]
    with empty_program() as empty:
        for number in range(options.rounds):
            with recorder(options.tipme) as (process, _), counting(process.pid, empty) as programs:
                rounds.append(kinds_once(programs))
            progress(f"records, round {number + 1} of {options.rounds}")
    for kind, (_, names) in KINDS.items():
        values = [one[kind] for one in rounds if one[kind] is not None]
        listed = "" if kind == EMPTY_TITLE else ", ".join(f"`{name}`" for name in names)
        rows.append((kind, listed, shown(values, "", 0) if values else "did not run"))
    return table(rows)


def report(options):
    """Returns the lines of the document; there is no bar."""
    return [
        f"Kernel programs by the kind of record that they write, {options.rounds} rounds. Each kind has a load that makes its programs",
        "run: a pipe on one CPU, a thread that is moved from CPU to CPU, sleeps of 10 ms, processes that are made and end, drawing requests, signals,",
        "synced writes, a pseudo-terminal. The kernel's own counting is part of each figure: what an empty program takes. The programs of",
        "interrupts keep a time at each, and leave a record of the long ones only.",
        "",
        *kinds(options),
        "",
        "Four gestures on a private X server with a window manager, three at mousepad; the pointer moves over an xterm whose program shows where",
        f"it is. {PAIRS} rounds in which three arms take turns: no recorder, a recorder, and one whose programs are counted. Latency is until",
        "the last drawing of a start or menu, the first of a key or move. The runs and their time are those of all programs on all CPUs, from the",
        "begin of the gesture until 250 ms later or the next input, without what comes while nobody does anything; the share is what they would be of",
        "the latency if all of them delayed it.",
        "",
        *gestures.table(options),
    ], True
