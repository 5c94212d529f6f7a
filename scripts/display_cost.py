# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a send or receive on a local socket costs while tipme records: time per run of the kernel programs, counted by the kernel.

An empty program on the same tracepoint runs beside them: what it takes is the kernel's own counting, and is part of each figure.
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import socket
import statistics
import struct
import sys
import tempfile
import time

# Numbers of bpf(2).
SYSCALL = 321
PROG_LOAD, PROG_GET_FD_BY_ID, INFO_BY_FD, RAW_TRACEPOINT_OPEN, ENABLE_STATS = 5, 13, 15, 17, 32
RAW_TRACEPOINT = 17
# Where in bpf_prog_info the name, the time and the number of runs are, and how much of it is asked for.
NAME, RUNS, INFO_BYTES = 64, 192, 216
# Two instructions: r0 = 0, exit.
EMPTY = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
HOT, FRAMES, RATE = 20_000, 3_000, 1_000
# Numbers from here on are of no display, unless another of these scripts runs.
NUMBERS = range(100, 200)
# Bars: nanoseconds, and percent of one CPU.
OTHER_NS, HOT_NS, FRAMES_PERCENT = 90, 400, 0.3
SENT, TAKEN = "message_sent", "message_taken"

LIBC = ctypes.CDLL(None, use_errno=True)
KEPT = []


def bpf(command, attributes):
    size = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = LIBC.syscall(SYSCALL, command, size, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}: {os.strerror(ctypes.get_errno())}")
    return result


def address(buffer):
    KEPT.append(buffer)
    return ctypes.addressof(buffer)


def info(fd):
    """Name of a program, its time in nanoseconds and its runs so far."""
    buffer = ctypes.create_string_buffer(INFO_BYTES)
    bpf(INFO_BY_FD, struct.pack("<IIQ", fd, INFO_BYTES, ctypes.addressof(buffer)))
    name = buffer.raw[NAME : NAME + 16].rstrip(b"\0").decode()
    return name, *struct.unpack_from("<QQ", buffer.raw, RUNS)


@contextlib.contextmanager
def empty_program(tracepoint=b"sock_send_length"):
    """An empty program at the same tracepoint; gives its descriptor."""
    code, words = ctypes.create_string_buffer(EMPTY), ctypes.create_string_buffer(b"GPL")
    program = bpf(PROG_LOAD, struct.pack("<IIQQ", RAW_TRACEPOINT, 2, address(code), address(words)))
    where = ctypes.create_string_buffer(tracepoint)
    link = bpf(RAW_TRACEPOINT_OPEN, struct.pack("<QI", address(where), program))
    try:
        yield program
    finally:
        os.close(link)
        os.close(program)


def programs_of(pid):
    """Descriptors of the programs that a process has attached, by name."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        words = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        if "link_id" in words and "prog_id" in words:
            fd = bpf(PROG_GET_FD_BY_ID, struct.pack("<I", int(words["prog_id"])))
            found[info(fd)[0]] = fd
    if SENT not in found:
        raise OSError("the recorder's programs on sockets are not to be found")
    return found


@contextlib.contextmanager
def counting(pid):
    """The programs that a process has attached, while the kernel counts what programs take."""
    programs, stats = programs_of(pid), bpf(ENABLE_STATS, b"")
    try:
        yield programs
    finally:
        for fd in (stats, *programs.values()):
            os.close(fd)


def spent(programs):
    """By program, nanoseconds and runs so far."""
    return {name: info(fd)[1:] for name, fd in programs.items()}


# --- what is sent -----------------------------------------------------------------------------


@contextlib.contextmanager
def other():
    """A connection that is no display's."""
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def bind_free(listener, names):
    """Binds to the first name that nobody has."""
    for name in names:
        try:
            return listener.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"all of these are taken: {names[0]!r} to {names[-1]!r}")


@contextlib.contextmanager
def display(kind):
    """A client's and a server's end of a connection to a display of this kind, `wayland` or `x11`."""
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
    """A filled rectangle of X11, behind the set-up."""
    client, server = ends
    move(client, server, struct.pack("<cxHHHHxx", b"l", 11, 0, 0, 0))
    for _ in range(HOT):
        move(client, server, struct.pack("<BxHIIHHHH", 70, 5, 1, 2, 0, 0, 9, 9))


def frames(ends):
    """A thousand frames a second: the client commits one, and is told when it is done."""
    client, server = ends
    begin = time.monotonic()
    for number in range(FRAMES):
        new = 10 + number % 2
        drawing = message(5, 1, 6, 0, 0) + message(5, 9, 0, 0, 80, 20) + message(5, 3, new) + message(5, 6)
        move(client, server, drawing)
        move(server, client, message(new, 0, now_ms()) + message(1, 1, new))
        time.sleep(max(0, begin + (number + 1) / RATE - time.monotonic()))


# Title: the connection, what is sent over it, the program whose time is told, and the bar.
HOT_LOADS = {
    "another unix socket, sent": (other, ping_pong, SENT, OTHER_NS),
    "another unix socket, received": (other, ping_pong, TAKEN, OTHER_NS),
    "Wayland, one commit, sent": (lambda: display("wayland"), commits, SENT, HOT_NS),
    "Wayland, one commit, received": (lambda: display("wayland"), commits, TAKEN, None),
    "Wayland, one key, sent": (lambda: display("wayland"), keys, SENT, HOT_NS),
    "X11, one rectangle, sent": (lambda: display("x11"), fills, SENT, None),
}
EMPTY_TITLE, FRAMES_TITLE = "an empty program", "1,000 frames a second"


# --- rounds -----------------------------------------------------------------------------------


def run(programs, connection, load):
    """What each program took of a load: nanoseconds and runs; and how long it lasted."""
    with connection() as ends:
        load(ends)  # to become hot
        before, begin = spent(programs), time.monotonic()
        load(ends)
        lasted, after = time.monotonic() - begin, spent(programs)
    return {name: [late - early for late, early in zip(after[name], before[name])] for name in programs}, lasted


def measure_once(pid, empty):
    """Nanoseconds by title, and what a thousand frames a second take of a CPU, in percent."""
    programs = programs_of(pid) | {EMPTY_TITLE: empty}
    try:
        figures = {}
        for title, (connection, load, name, _) in HOT_LOADS.items():
            took, _ = run(programs, connection, load)
            figures[title] = took[name][0] / took[name][1]
            if connection is other:
                figures[EMPTY_TITLE] = took[EMPTY_TITLE][0] / took[EMPTY_TITLE][1]
        took, lasted = run(programs, lambda: display("wayland"), frames)
        figures[FRAMES_TITLE] = (took[SENT][0] + took[TAKEN][0]) / lasted / 1e7
        return figures
    finally:
        for fd in set(programs.values()) - {empty}:
            os.close(fd)


def rounds(options, recorder):
    """By executable, the figures of each round; they take turns."""
    tools = [options.tipme] + ([options.against] if options.against else [])
    figures = {tool: [] for tool in tools}
    stats = bpf(ENABLE_STATS, b"")
    with empty_program() as empty:
        for number in range(options.rounds):
            for tool in tools[number % len(tools) :] + tools[: number % len(tools)]:
                with recorder(tool) as pid:
                    figures[tool].append(measure_once(pid, empty))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    os.close(stats)
    return figures


def shown(values, unit, digits):
    return f"{statistics.median(values):.{digits}f}{unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def report(options, recorder, bar):
    """Lines and whether the bars are met."""
    figures = list(rounds(options, recorder).values())
    column = lambda title, one: [figure[title] for figure in one]  # noqa: E731
    head = "| per run of the program | ns, median (least to most) |" + (" the other |" if options.against else "")
    rows = [head, "|---" * (head.count("|") - 1) + "|"]
    for title in (EMPTY_TITLE, *HOT_LOADS):
        rows.append(f"| {title} | " + "".join(f"{shown(column(title, one), '', 0)} | " for one in figures).rstrip())
    shares = "".join(f"{shown(column(FRAMES_TITLE, one), ' %', 3)} | " for one in figures).rstrip()
    rows.append(f"| {FRAMES_TITLE}, of a CPU | {shares}")
    bars = []
    for title, limit, unit in [(title, row[3], " ns") for title, row in HOT_LOADS.items()] + [(FRAMES_TITLE, FRAMES_PERCENT, " %")]:
        if limit:
            bars.append(bar(title, statistics.median(column(title, figures[0])), limit, unit))
    title = f"`{SENT}` and `{TAKEN}`, {HOT:,} messages one after the other, {options.rounds} rounds"
    return [title + ":", "", *rows, "", *[line for line, _ in bars]], all(met for _, met in bars)
