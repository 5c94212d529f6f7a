# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a person in front of the guest would see: keys go in, pixels change.

All times are CLOCK_MONOTONIC of the host, taken outside the guest, without anything that tipme says.
"""

import dataclasses
import pathlib
import time

# How long a key is held, and the pause between two looks at the screen.
HELD_S, PAUSE_S = 0.03, 0.001
# Longest wait for an answer on the screen, in seconds.
ANSWER_MAX_S = 20
# The screen counts as quiet when it did not change for so long.
QUIET_S = 0.4


@dataclasses.dataclass(frozen=True)
class Seen:
    """One key and the change of pixels that followed."""

    pressed: float
    # The last look that showed no change began then; None where the very first look shows it.
    unchanged: float
    # The first look that showed it was over then.
    changed: float

    @property
    def latency_ms(self):
        """From the key to the end of the look that showed its effect: the change came at most `step_ms` before."""
        return (self.changed - self.pressed) * 1000

    @property
    def step_ms(self):
        return (self.changed - self.unchanged) * 1000


class Screen:
    """Looks at the guest's screen."""

    def __init__(self, machine):
        self.control, self.path = machine.control, pathlib.Path(machine.folder) / "screen.ppm"

    def look(self):
        self.control.call("screendump", filename=str(self.path))
        return self.path.read_bytes()

    def await_quiet(self, seconds=ANSWER_MAX_S):
        """Until nothing changes any more; gives the picture."""
        picture, since = self.look(), time.monotonic()
        deadline = since + seconds
        while time.monotonic() < deadline and time.monotonic() - since < QUIET_S:
            time.sleep(0.02)
            now = self.look()
            if now != picture:
                picture, since = now, time.monotonic()
        return picture

    def press(self, code, quiet=True):
        """Presses a key and watches; None where the screen does not change.

        With `quiet` the screen is first waited for to be still, or an older key's answer would count as this one's.
        """
        before = self.await_quiet(2) if quiet else self.look()
        pressed = time.monotonic()
        self.control.key(code, True)
        held, unchanged, deadline = True, pressed, pressed + ANSWER_MAX_S
        found = None
        while time.monotonic() < deadline and not found:
            begin = time.monotonic()
            if held and begin - pressed >= HELD_S:
                self.control.key(code, False)
                held = False
            elif self.look() != before:
                found = Seen(pressed, unchanged, time.monotonic())
            else:
                unchanged = begin
                time.sleep(PAUSE_S)
        if held:
            time.sleep(max(0, pressed + HELD_S - time.monotonic()))
            self.control.key(code, False)
        return found

    def chord(self, *codes):
        """Presses keys together, as a hot key; gives when the last went down."""
        for code in codes:
            self.control.key(code, True)
            time.sleep(0.02)
        pressed = time.monotonic()
        time.sleep(HELD_S)
        for code in reversed(codes):
            self.control.key(code, False)
            time.sleep(0.02)
        return pressed
