# SPDX-License-Identifier: MIT OR Apache-2.0
"""A hitch, the key, and the time until the banner is there: on the session bus and on the
screen."""

import dataclasses
import os
import signal
import time

from stage import processes
from stage.windows import Place

from . import bus, picture

KEY = "ctrl+alt+minus"
CAPTURED = ("Captured",)
HITCH_S = 1.5
# Maximum delay of a verdict, and the time for which pictures are taken after it.
VERDICT_MAX_S, SETTLE_S = 20, 1.2
USUAL = "the quick brown fox jumps over the lazy dog "


@dataclasses.dataclass
class Banner:
    """Result of a press: milliseconds after it, None if there was no banner."""

    note: bus.Shown | None
    captured_ms: float | None = None
    bus_ms: float | None = None
    screen_ms: float | None = None
    place: Place | None = None
    # Screen before the press, and with the verdict.
    before: object = None
    image: object = None

    def words(self):
        if not self.note:
            return "no verdict"
        times = (("captured", self.captured_ms), ("verdict on the bus", self.bus_ms), ("on the screen", self.screen_ms))
        seen = ", ".join(f"{what} {ms:.0f} ms" if ms is not None else f"{what}: not seen" for what, ms in times)
        return f"{seen} after the press: {self.note.summary} {self.note.body}"


def work(session, text=USUAL):
    """Performs usual work in the program."""
    session.input.write(text, pace_s=0.08)


def stop_program(session):
    """Stops the program while a key waits for it."""
    session.focus()
    pid = session.victim()
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(0.15)
        session.input.write("a")
        time.sleep(HITCH_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    time.sleep(0.6)


def press(session):
    """Presses the key through the desktop, and watches until the verdict is there."""
    session.clear()
    region, before = session.banner_region(), session.await_quiet()
    at = session.input.key(KEY)
    frames, note, limit = [], None, at + VERDICT_MAX_S * 1e9
    while processes.now_ns() < limit:
        frames.append(picture.frame(session, region))
        # Few before the verdict, since they would delay a desktop that takes pictures itself.
        if note:
            time.sleep(0.02)
        elif note := session.ear.wait(at, CAPTURED, 0.2, has=False):
            limit = note.ns + SETTLE_S * 1e9
    if note and session.desktop.hovered:
        for down in (0.08, 0.1):
            session.input.move(*region.at(0.5, down))
            time.sleep(SETTLE_S / 2)
    if not note:
        return Banner(None)
    captured, after = session.ear.wait(at, CAPTURED, 0), session.grab()
    shown = first_change(frames, note.ns)
    return Banner(
        note, ms(captured.ns, at) if captured else None, ms(note.ns, at), ms(shown, at) if shown else None,
        picture.changed(before, after, region), before, after,
    )  # fmt: skip


def first_change(frames, since_ns):
    """Returns the time at which the pictures first differed from the one before the verdict was
    sent."""
    earlier = [one for one in frames if one.end_ns < since_ns]
    for one in frames:
        whole = Place(0, 0, *one.image.size)
        if earlier and one.begin_ns >= since_ns and picture.changed(earlier[-1].image, one.image, whole, picture.WORDS_MIN):
            return one.end_ns
    return None


def ms(ns, since):
    return (ns - since) / 1e6
