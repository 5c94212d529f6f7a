# SPDX-License-Identifier: MIT OR Apache-2.0
"""QEMU's control socket: keys, the pointer, the screen, and the threads of virtual CPUs."""

import json
import socket

from .places import CannotRun

# Maximum wait for an answer, in seconds.
ANSWER_MAX_S = 30


class Control:
    """Client of QEMU's control protocol: one JSON line per message."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER_MAX_S)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rwb")
        self.lines.readline()
        self.call("qmp_capabilities")

    def call(self, name, **arguments):
        self.lines.write(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        self.lines.flush()
        while True:
            line = self.lines.readline()
            if not line:
                raise CannotRun(f"QEMU closed its control socket at {name}")
            answer = json.loads(line)
            if "error" in answer:
                raise CannotRun(f"QEMU refuses {name}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def key(self, code, down):
        key = {"type": "qcode", "data": code}
        self.call("input-send-event", events=[{"type": "key", "data": {"down": down, "key": key}}])

    def pointer(self, x, y):
        moves = [{"type": "rel", "data": {"axis": axis, "value": value}} for axis, value in (("x", x), ("y", y))]
        self.call("input-send-event", events=moves)
