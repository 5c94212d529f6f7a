# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parser for the records of an incident file, based on docs/reference/format.md alone and independent of tipme's own reader."""

import collections
import dataclasses
import struct

from shared.incident import Unreadable

# Size of chunks, and of the end of a chunk in which no record begins.
CHUNK_BYTES, LAST_BYTES, SLACK_NS = 65536, 504, 1_000_000
CHUNK_HEAD, RECORD_HEAD, WORD = struct.Struct("<QQIIQ"), struct.Struct("<QIHBB"), struct.Struct("<Q")
GAP_BYTES = 512
# Parsed kinds of records, and the body of a switch.
SWITCH, WAKING, MIGRATE, SAMPLE = 1, 2, 3, 25
SWITCH_BODY = struct.Struct("<IHBB")
STEP_BITS, TIME_BITS, TIME_AT, TID_BITS = 5, 18, 38, 22
# Bits of a packed state: mask, shift.
STATES = ((0x0007, 0), (0x0780, 4), (0x2000, 6), (0x8000, 7))

Record = collections.namedtuple("Record", "ts kind tid other state")


@dataclasses.dataclass
class Ring:
    """Records of one class and CPU, in the order of writing."""

    chunks: int = 0
    records: list = dataclasses.field(default_factory=list)
    # Number of gaps without a valid record before another one, and times of switches from a thread that did not run.
    gaps: int = 0
    breaks: list = dataclasses.field(default_factory=list)


def rings(section):
    """Returns the rings of a section of chunks, by CPU."""
    found = collections.defaultdict(Ring)
    pieces = [section[at : at + CHUNK_BYTES] for at in range(0, len(section), CHUNK_BYTES)]
    for chunk in sorted(pieces, key=lambda chunk: CHUNK_HEAD.unpack_from(chunk)[1]):
        taken, opened, cpu, kind, closed = CHUNK_HEAD.unpack_from(chunk)
        if not taken or len(chunk) != CHUNK_BYTES:
            raise Unreadable(f"a chunk of CPU {cpu} was taken {taken} times and has {len(chunk)} bytes")
        ring = found[cpu]
        ring.chunks += 1
        read_chunk(chunk, taken, opened - SLACK_NS, ring)
    return found


def read_chunk(chunk, taken, earliest, ring):
    """Adds a chunk's records, with packed ones expanded."""
    at, base, running = CHUNK_HEAD.size, 0, None
    while at <= CHUNK_BYTES - LAST_BYTES:
        word = WORD.unpack_from(chunk, at)[0]
        kind = word >> 61 & 3
        if word >> 63 and word >> 56 & 31 == taken & 31 and kind:
            record = unpacked(word, kind, base, running)
            at += WORD.size
        else:
            found = whole(chunk, at, taken, earliest)
            if not found:
                gap = next((gap for gap in range(8, GAP_BYTES + 8, 8) if whole(chunk, at + gap, taken, earliest)), None)
                if gap is None:
                    return
                ring.gaps, at, running = ring.gaps + 1, at + gap, None
                continue
            record, size = found
            base, at = max(base, record.ts), at + size
            if record.kind == SWITCH and running not in (None, record.tid):
                ring.breaks.append(record.ts)
        if record.kind in (WAKING, MIGRATE) and running is None:
            running = record.other
        if record.kind == SWITCH:
            running = record.other
        ring.records.append(record)


def whole(chunk, at, taken, earliest):
    """Returns the unpacked record at an offset and its size; None if there is none."""
    if at + RECORD_HEAD.size > CHUNK_BYTES:
        return None
    ts, tid, size, kind, generation = RECORD_HEAD.unpack_from(chunk, at)
    fits = RECORD_HEAD.size < size <= GAP_BYTES and size % 8 == 0 and at + size <= CHUNK_BYTES
    if not (fits and kind and generation == taken & 0xFF and earliest <= ts < 1 << 60):
        return None
    other = state = 0
    if kind == SWITCH:
        other, state, _, _ = SWITCH_BODY.unpack_from(chunk, at + RECORD_HEAD.size)
    elif kind == WAKING:
        other = struct.unpack_from("<I", chunk, at + RECORD_HEAD.size)[0]
    elif kind == MIGRATE:
        other = struct.unpack_from("<I", chunk, at + RECORD_HEAD.size + 4)[0]
    return Record(ts, kind, tid, other, state), size


def unpacked(word, kind, base, running):
    """Expands a packed record."""
    steps, tid = base >> STEP_BITS, word & (1 << TID_BITS) - 1
    further = ((word >> TIME_AT) - steps) & (1 << TIME_BITS) - 1
    ts = steps + further << STEP_BITS
    if kind != SWITCH:
        return Record(ts, kind, tid, running, 0)
    packed = word >> 29 & 0x1FF
    state = 0
    for mask, shift in STATES:
        state |= packed << shift & mask
    return Record(ts, kind, running, tid, state)
