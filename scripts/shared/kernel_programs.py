# SPDX-License-Identifier: MIT OR Apache-2.0
"""A process's BPF programs, with the kernel's count of their runs and time.

An empty program on the same tracepoint shows the cost of the counting itself, which is part of each figure.
"""

import contextlib
import ctypes
import os
import pathlib
import struct

# Numbers of bpf(2).
SYSCALL = 321
PROG_LOAD, PROG_GET_FD_BY_ID, INFO_BY_FD, RAW_TRACEPOINT_OPEN, ENABLE_STATS = 5, 13, 15, 17, 32
RAW_TRACEPOINT = 17
# Offsets of name, time and number of runs in bpf_prog_info, and the requested size.
NAME, RUNS, INFO_BYTES = 64, 192, 216
# Two instructions: r0 = 0, exit.
EMPTY = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
EMPTY_TITLE = "an empty program"

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
    """Returns name, time in nanoseconds and number of runs of a program."""
    buffer = ctypes.create_string_buffer(INFO_BYTES)
    bpf(INFO_BY_FD, struct.pack("<IIQ", fd, INFO_BYTES, ctypes.addressof(buffer)))
    name = buffer.raw[NAME : NAME + 16].rstrip(b"\0").decode()
    return name, *struct.unpack_from("<QQ", buffer.raw, RUNS)


@contextlib.contextmanager
def empty_program(tracepoint=b"sock_send_length"):
    """Loads an empty program at a tracepoint; returns its descriptor."""
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
    """Returns descriptors of the programs that a process has attached, by name."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        words = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        if "link_id" in words and "prog_id" in words:
            fd = bpf(PROG_GET_FD_BY_ID, struct.pack("<I", int(words["prog_id"])))
            found[info(fd)[0]] = fd
    if not found:
        raise OSError("the recorder's programs are not to be found")
    return found


@contextlib.contextmanager
def counting(pid, empty=None):
    """Yields the attached programs of a process, and an empty one beside them, while the kernel
    counts their time."""
    programs, stats = programs_of(pid), bpf(ENABLE_STATS, b"")
    try:
        yield programs | ({} if empty is None else {EMPTY_TITLE: empty})
    finally:
        for fd in (stats, *programs.values()):
            os.close(fd)


def spent(programs):
    """Returns nanoseconds and runs so far, by program."""
    return {name: info(fd)[1:] for name, fd in programs.items()}


def since(before, programs):
    """Returns nanoseconds and runs since an earlier `spent`, by program."""
    return {name: [late - early for late, early in zip(now, before[name])] for name, now in spent(programs).items()}
