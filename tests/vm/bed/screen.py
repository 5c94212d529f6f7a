# SPDX-License-Identifier: MIT OR Apache-2.0
"""View of a user in front of the guest: keys go in, pixels change.

All times are CLOCK_MONOTONIC of the host, taken outside the guest, without any report of tipme."""

import dataclasses
import pathlib
import time

# Time for which a key is held, and the pause between checks of the screen.
HELD_S, PAUSE_S = 0.03, 0.001
# Maximum wait for an answer on the screen, in seconds.
ANSWER_MAX_S = 20
# Time without a change after which the screen is quiet.
QUIET_S = 0.4


@dataclasses.dataclass(frozen=True)
class Seen:
    """One key and the following change of pixels."""

    pressed: float
    # Start of the last check without a change; None if the very first check shows it.
    unchanged: float
    # End of the first check with the change.
    changed: float

    @property
    def latency_ms(self):
        """Time from the key to the end of the check that showed its effect: the change came at
        most `step_ms` before."""
        return (self.changed - self.pressed) * 1000

    @property
    def step_ms(self):
        return (self.changed - self.unchanged) * 1000


class Screen:
    """Watches the guest's screen."""

    def __init__(self, machine):
        self.control, self.path = machine.control, pathlib.Path(machine.folder) / "screen.ppm"

    def look(self):
        self.control.call("screendump", filename=str(self.path))
        return self.path.read_bytes()

    def await_quiet(self, seconds=ANSWER_MAX_S):
        """Waits until nothing changes any more; returns the picture."""
        picture, since = self.look(), time.monotonic()
        deadline = since + seconds
        while time.monotonic() < deadline and time.monotonic() - since < QUIET_S:
            time.sleep(0.02)
            now = self.look()
            if now != picture:
                picture, since = now, time.monotonic()
        return picture

    def press(self, code, quiet=True):
        """Presses a key and watches; returns None if the screen does not change. With `quiet` it
        first waits until the screen is still, since an older key's answer would count as this
        one's."""
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
        """Presses keys together, as a hot key; returns the time of the last press."""
        for code in codes:
            self.control.key(code, True)
            time.sleep(0.02)
        pressed = time.monotonic()
        time.sleep(HELD_S)
        for code in reversed(codes):
            self.control.key(code, False)
            time.sleep(0.02)
        return pressed
