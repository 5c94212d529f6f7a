# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of a send or receive on a local socket while tipme records: time per run of the kernel
programs, as the kernel counts it."""

import contextlib
import errno
import socket
import statistics
import struct
import tempfile
import time

from shared import progress
from shared.figures import bar, in_turn, shown, table
from shared.kernel_programs import EMPTY_TITLE, counting, empty_program, since, spent
from shared.programs import recorder

HOT, FRAMES, RATE = 20_000, 3_000, 1_000
# Display numbers from here on are free, unless another of these scripts runs.
NUMBERS = range(100, 200)
# Bars: nanoseconds, and percent of one CPU.
OTHER_NS, HOT_NS, FRAMES_PERCENT = 90, 400, 0.3
SENT, TAKEN = "message_sent", "message_taken"


@contextlib.contextmanager
def other():
    """Makes a connection that belongs to no display."""
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


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
def display(kind):
    """Returns both ends of a connection to a display of this kind, `wayland` or `x11`."""
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder:
        begin = f"{folder}/wayland-" if kind == "wayland" else "\0/tmp/.X11-unix/X"
        with socket.socket(socket.AF_UNIX) as listener:
            bind_free(listener, [f"{begin}{number}" for number in NUMBERS])
            listener.listen(1)
            client = socket.socket(socket.AF_UNIX)
            client.connect(listener.getsockname())
            server, _ = listener.accept()
        with client, server:
            yield client, server


def message(target, opcode, *words):
    return struct.pack(f"<IHH{len(words)}I", target, opcode, 8 + 4 * len(words), *words)


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000 & 0xFFFFFFFF


def move(source, sink, data):
    source.sendmsg([data])
    sink.recv(4096)


def ping_pong(ends):
    for _ in range(HOT // 2):
        move(*ends, b"x" * 16)
        move(*reversed(ends), b"y" * 16)


def commits(ends):
    for _ in range(HOT):
        move(*ends, message(5, 6))


def keys(ends):
    client, server = ends
    for number in range(HOT):
        move(server, client, message(7, 3, number, now_ms(), 30, 1 - number % 2))


def fills(ends):
    """A filled rectangle of X11, after the connection setup."""
    client, server = ends
    move(client, server, struct.pack("<cxHHHHxx", b"l", 11, 0, 0, 0))
    for _ in range(HOT):
        move(client, server, struct.pack("<BxHIIHHHH", 70, 5, 1, 2, 0, 0, 9, 9))


def frames(ends):
    """A thousand frames a second: the client commits each, and receives its frame callback."""
    client, server = ends
    begin = time.monotonic()
    for number in range(FRAMES):
        new = 10 + number % 2
        move(client, server, message(5, 1, 6, 0, 0) + message(5, 9, 0, 0, 80, 20) + message(5, 3, new) + message(5, 6))
        move(server, client, message(new, 0, now_ms()) + message(1, 1, new))
        time.sleep(max(0, begin + (number + 1) / RATE - time.monotonic()))


# Title: the connection, its traffic, the program to time, and the bar.
HOT_LOADS = {
    "another unix socket, sent": (other, ping_pong, SENT, OTHER_NS),
    "another unix socket, received": (other, ping_pong, TAKEN, OTHER_NS),
    "Wayland, one commit, sent": (lambda: display("wayland"), commits, SENT, HOT_NS),
    "Wayland, one commit, received": (lambda: display("wayland"), commits, TAKEN, None),
    "Wayland, one key, sent": (lambda: display("wayland"), keys, SENT, HOT_NS),
    "X11, one rectangle, sent": (lambda: display("x11"), fills, SENT, None),
}
FRAMES_TITLE = "1,000 frames a second"


def run(programs, connection, load):
    """Returns nanoseconds and runs of each program under a load, and the load's duration."""
    with connection() as ends:
        load(ends)  # to become hot
        before, begin = spent(programs), time.monotonic()
        load(ends)
        return since(before, programs), time.monotonic() - begin


def measure_once(pid, empty):
    """Returns nanoseconds by title, and the share of a CPU that a thousand frames a second take,
    in percent."""
    with counting(pid, empty) as programs:
        figures = {}
        for title, (connection, load, name, _) in HOT_LOADS.items():
            took, _ = run(programs, connection, load)
            figures[title] = took[name][0] / took[name][1]
            if connection is other:
                figures[EMPTY_TITLE] = took[EMPTY_TITLE][0] / took[EMPTY_TITLE][1]
        took, lasted = run(programs, lambda: display("wayland"), frames)
        return figures | {FRAMES_TITLE: (took[SENT][0] + took[TAKEN][0]) / lasted / 1e7}


def rounds(options):
    """Returns the figures of each round, by executable; they alternate."""
    tools = [options.tipme] + ([options.against] if options.against else [])
    figures = {tool: [] for tool in tools}
    with empty_program() as empty:
        for number in range(options.rounds):
            for tool in in_turn(tools, number):
                with recorder(tool) as (process, _):
                    figures[tool].append(measure_once(process.pid, empty))
            progress(f"round {number + 1} of {options.rounds}")
    return list(figures.values())


def report(options):
    figures = rounds(options)
    columns = {title: [[figure[title] for figure in one] for one in figures] for title in (EMPTY_TITLE, *HOT_LOADS, FRAMES_TITLE)}
    rows = [("per run of the program", "ns, median (least to most)", "the other")[: 1 + len(figures)]]
    for title, found in columns.items():
        name, unit, digits = (f"{title}, of a CPU", " %", 3) if title == FRAMES_TITLE else (title, "", 0)
        rows.append((name, *(shown(one, unit, digits) for one in found)))
    limits = [(title, row[3], " ns") for title, row in HOT_LOADS.items() if row[3]] + [(FRAMES_TITLE, FRAMES_PERCENT, " %")]
    bars = [bar(title, statistics.median(columns[title][0]), limit, unit) for title, limit, unit in limits]
    title = f"`{SENT}` and `{TAKEN}`, {HOT:,} messages one after the other, {options.rounds} rounds"
    return [title + ":", "", *table(rows), "", *[line for line, _ in bars]], all(met for _, met in bars)
