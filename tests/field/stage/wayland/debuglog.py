# SPDX-License-Identifier: MIT OR Apache-2.0
"""Contents and times of a program's drawings, from the log of its own Wayland library with
WAYLAND_DEBUG=client.

The library stamps each message in the program's own process. A change is a commit of a surface
of the program. It was shown at its frame callback if the program requested one, else at the
commit."""

import re
import time

from .. import screen, truth

LINE = re.compile(r"\[ *([\d:.]+)\] (?:\{[^}]*\} )?( -> )?(\w+)[@#](\d+)\.(\w+)\((.*)\)")
NEW = re.compile(r"new id wl_callback[@#](\d+)")
# Libraries stamp with a wrapping counter of microseconds, newer ones with the time of day.
ROUND_US = 1 << 32
DAY_US = 24 * 3600 * 1_000_000


class Log(screen.Log):
    """Log of one program."""

    def __init__(self, path):
        super().__init__(path)
        self.pending, self.frames, self.focused = {}, {}, set()

    def look_at(self, _place):
        pass

    def changes(self):
        for line in self.new_lines():
            if found := LINE.search(line):
                self.take(*found.groups())
        return self.known

    def take(self, stamp, sent, interface, number, message, arguments):
        at = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - age_us(stamp) * 1000
        if interface == "wl_surface" and sent:
            self.request(at, number, message, arguments)
        elif interface == "wl_callback" and message == "done" and number in self.frames:
            self.known.append((at, *self.frames.pop(number)))
        elif interface == "wl_keyboard" and message in ("enter", "leave"):
            (self.focused.add if message == "enter" else self.focused.discard)(number)

    def request(self, at, surface, message, arguments):
        drawn = self.pending.setdefault(surface, {"places": [], "frame": None})
        if message.startswith("damage"):
            drawn["places"].append(tuple(map(int, arguments.split(", "))))
        elif message == "frame":
            drawn["frame"] = NEW.search(arguments).group(1)
        elif message == "commit" and self.pending.pop(surface)["places"]:
            self.commit(at, drawn)

    def commit(self, at, drawn):
        place = around(drawn["places"])
        if place[2] <= truth.CARET_WIDTH:
            return
        if drawn["frame"]:
            self.frames[drawn["frame"]] = place
        else:
            self.known.append((at, *place))


def around(places):
    """Returns the smallest rectangle that contains all."""
    left, top = min(place[0] for place in places), min(place[1] for place in places)
    right = max(place[0] + place[2] for place in places)
    return left, top, right - left, max(place[1] + place[3] for place in places) - top


def age_us(stamp):
    """Returns the age of a library's stamp in microseconds, within the last hour."""
    now_us = time.time_ns() // 1000
    whole, _, rest = stamp.rpartition(".")
    if ":" not in whole:
        return (now_us - int(whole) * 1000 - int(rest)) % ROUND_US
    hours, minutes, seconds = map(int, whole.split(":"))
    here_us = now_us + time.localtime().tm_gmtoff * 1_000_000
    return (here_us - ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 - int(rest)) % DAY_US
