# SPDX-License-Identifier: MIT OR Apache-2.0
"""Wayland client for injector and watcher: requests, events, and the compositor's globals."""

import array
import os
import socket
import struct
import sys

DISPLAY = 1


def text(words):
    """Encodes a string argument."""
    data = words.encode() + b"\0"
    return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4)


def words(*numbers):
    """Encodes integer arguments."""
    return b"".join(struct.pack("<I", number & 0xFFFFFFFF) for number in numbers)


def fixed(number):
    return int(number * 256)


class Client:
    """A connection to the compositor of $WAYLAND_DISPLAY."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.path.join(os.environ["XDG_RUNTIME_DIR"], os.environ["WAYLAND_DISPLAY"]))
        self.last, self.unread, self.offers = DISPLAY, b"", {}
        self.registry = self.new()
        self.request(DISPLAY, 1, words(self.registry))
        self.settle()

    def new(self):
        self.last += 1
        return self.last

    def request(self, target, opcode, arguments=b"", files=()):
        message = struct.pack("<IHH", target, opcode, 8 + len(arguments)) + arguments
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self.socket.sendmsg([message], control)

    def bind(self, interface, version):
        """Binds the global of this interface; returns None if the compositor has none."""
        if interface not in self.offers:
            return None
        number, known = self.offers[interface]
        target = self.new()
        self.request(self.registry, 0, words(number) + text(interface) + words(min(version, known), target))
        return target

    def event(self):
        """Returns the next event: object, opcode, arguments."""
        while len(self.unread) < 8 or len(self.unread) < struct.unpack_from("<HH", self.unread, 4)[1]:
            more = self.socket.recv(65536)
            if not more:
                sys.exit("the compositor is gone")
            self.unread += more
        target, opcode, size = struct.unpack_from("<IHH", self.unread)
        arguments, self.unread = self.unread[8:size], self.unread[size:]
        if target == DISPLAY and opcode == 0:
            sys.exit(f"protocol error: {arguments}")
        if target == self.registry and opcode == 0:
            number, length = struct.unpack_from("<II", arguments)
            name = arguments[8 : 7 + length].decode()
            self.offers.setdefault(name, (number, struct.unpack("<I", arguments[-4:])[0]))
        return target, opcode, arguments

    def settle(self):
        """Waits until the compositor has processed all requests."""
        callback = self.new()
        self.request(DISPLAY, 0, words(callback))
        while self.event()[0] != callback:
            pass
