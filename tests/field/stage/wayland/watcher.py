# SPDX-License-Identifier: MIT OR Apache-2.0
"""Watcher: copies the screen by zwlr_screencopy_v1 after each change, and prints the time and
the changed rectangle: `ns x y width height` a line."""

import mmap
import os
import struct

import wire

BUFFER, READY, FAILED, DONE = 0, 2, 3, 6
PIXEL = 4


class Copier:
    """Copies the only output repeatedly into one buffer."""

    def __init__(self):
        self.client = wire.Client()
        self.memory = self.client.bind("wl_shm", 1)
        self.output = self.client.bind("wl_output", 1)
        self.manager = self.client.bind("zwlr_screencopy_manager_v1", 3)
        self.buffer = self.pixels = self.before = None

    def make_buffer(self, form, width, height, stride):
        self.width, self.height, self.stride = width, height, stride
        file = os.memfd_create("screen")
        os.ftruncate(file, stride * height)
        self.pixels = mmap.mmap(file, stride * height)
        pool, self.buffer = self.client.new(), self.client.new()
        self.client.request(self.memory, 0, wire.words(pool, stride * height), [file])
        self.client.request(pool, 0, wire.words(self.buffer, 0, width, height, stride, form))

    def copy(self):
        """Waits for the next change of the screen; returns its time, or None if it could not be
        copied."""
        frame = self.client.new()
        self.client.request(self.manager, 0, wire.words(frame, 0, self.output))
        while True:
            target, opcode, arguments = self.client.event()
            if target != frame:
                continue
            if opcode == BUFFER and not self.buffer:
                self.make_buffer(*struct.unpack("<IIII", arguments))
            elif opcode == DONE:
                self.client.request(frame, 2, wire.words(self.buffer))
            elif opcode in (READY, FAILED):
                self.client.request(frame, 1)
                return shown_ns(arguments) if opcode == READY else None

    def difference(self):
        """Returns the rectangle that differs from the previous copy: x, y, width, height."""
        now = self.pixels[:]
        before, self.before = self.before or bytes(len(now)), now
        rows = [at for at in range(self.height) if self.row(now, at) != self.row(before, at)]
        if not rows:
            return None
        differing = 0
        for at in rows:
            differing |= number(self.row(now, at)) ^ number(self.row(before, at))
        left = ((differing & -differing).bit_length() - 1) // (8 * PIXEL)
        right = (differing.bit_length() - 1) // (8 * PIXEL)
        return left, rows[0], right - left + 1, rows[-1] - rows[0] + 1

    def row(self, pixels, at):
        return pixels[at * self.stride : (at + 1) * self.stride]


def number(row):
    return int.from_bytes(row, "little")


def shown_ns(arguments):
    high, low, nanos = struct.unpack("<III", arguments)
    return ((high << 32) + low) * 1_000_000_000 + nanos


def main():
    copier = Copier()
    while True:
        at = copier.copy()
        place = copier.difference() if at else None
        if place:
            print(at, *place, flush=True)


main()
