# SPDX-License-Identifier: MIT OR Apache-2.0
"""The main job with a real keyboard: a hitch, the hot key, a verdict that names the cause.

QEMU's keyboard types before and during a fault in the guest, and presses the hot key. The screen, seen from outside,
shows the hitch; a fault without effect is repeated. The diagnosis of the incident file is then compared with the latency
of each key as seen from outside.
"""

import dataclasses
import json
import pathlib
import statistics
import time

from .places import TOOLS, cache, say
from .screen import Screen

# Keys before the fault, and the pause between keys in seconds.
CALM_KEYS, PAUSE_S = 12, 0.25
# Time until the fault has its effect, in seconds.
ONSET_S = 0.3
# Minimum delay of a hitch beyond the usual latency, in milliseconds, and number of attempts.
HELD_MIN_MS, TRIES_MAX = 250, 5
# Refresh interval of a 60 Hz screen.
REFRESH_MS = 1000 / 60
# Tolerance between the device's time stamp and tipme's input time, which has microseconds.
STAMP_TOLERANCE_NS = 1000
# Minimum effect of a fault in the verdict, in milliseconds; emulation is too coarse for less.
EFFECT_MIN_MS = 50
DIAGNOSE_MAX_S = 180
# Length of an incident's window, in seconds; two faults must not be in the same one.
WINDOW_S = 42


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault in the guest, and the expected finding."""

    name: str
    command: str
    kind: str
    culprit: str
    keys: int
    seconds: int


FAULTS = (
    Fault("stopped program", f"{TOOLS}/power-saver {{pid}} 1.5", "stopped", "power-saver", 1, 20),
    Fault("real-time hogs", f"setsid --wait {TOOLS}/batch-render 4 3", "cpu-competition", "batch-render", 3, 40),
)


def main_job(machine, results, fault, new_incident, mark_keys):
    time.sleep(max(0, results.alone_from - time.monotonic()))
    pid = machine.focused()
    screen = Screen(machine)
    screen.await_quiet()
    name = f"main job, {fault.name}"
    typed, stamps = type_into(machine, results, screen, fault, pid, mark_keys)
    incident = new_incident()
    if not results.met(f"{name}: hot key", incident is not None, incident or "no incident came of it"):
        return
    before = results.failed
    judge(machine, results, fault, name, incident, typed)
    compare(machine, results, name, incident, typed, stamps)
    if results.failed > before:
        keep(machine, incident, typed, stamps)


def keep(machine, incident, typed, stamps):
    """Keeps incident and measurements of a failure for analysis."""
    folder = cache() / "failed" / machine.kernel.series
    folder.mkdir(parents=True, exist_ok=True)
    (folder / pathlib.PurePath(incident).name).write_bytes(machine.read(incident))
    seen = [one and dataclasses.asdict(one) for one in typed]
    text = json.dumps({"seen": seen, "stamps": stamps}, indent=1)
    (folder / pathlib.PurePath(incident).with_suffix(".json").name).write_text(text)
    say(f"        kept in {folder}")


def type_into(machine, results, screen, fault, pid, mark_keys):
    """Returns the effect of each key on the screen, and the guest's time stamps. A first key, which loads fonts, is not included."""
    type_one(screen, 0)
    with machine.begun(f"{TOOLS}/evdev-stamps", 400, "ready") as listening:
        typed = [type_one(screen, number) for number in range(CALM_KEYS)]
        typed += type_until_held(machine, results, screen, fault, pid, typed)
        time.sleep(0.5)
        screen.chord(*mark_keys)
        results.alone_from = time.monotonic() + WINDOW_S
        time.sleep(1)
        stamps = [int(line) for line in listening.communicate(timeout=60)[0].split()]
    return typed, stamps


def type_until_held(machine, results, screen, fault, pid, calm):
    """Types during the fault, which is repeated until the screen is delayed."""
    usual = statistics.median(one.latency_ms for one in calm if one)
    typed, held = [], []
    while len(held) < TRIES_MAX and max(held, default=0) < HELD_MIN_MS:
        with machine.begun(fault.command.format(pid=pid), fault.seconds, "begun"):
            time.sleep(ONSET_S)
            tried = [type_one(screen, number, calm=False) for number in range(fault.keys)]
        typed += tried
        held.append(max((one.latency_ms - usual for one in tried if one), default=0))
    detail = f"screen held up for {held[-1]:.0f} ms longer than the usual {usual:.0f} ms"
    if held[1:]:
        detail += ", before that for " + ", ".join(f"{one:.0f}" for one in held[:-1])
    results.met(f"main job, {fault.name}: hitch", held[-1] >= HELD_MIN_MS, detail)
    return typed


def type_one(screen, number, calm=True):
    seen = screen.press("asdfghjkl"[number % 9], quiet=calm)
    time.sleep(PAUSE_S)
    return seen


def judge(machine, results, fault, name, incident, typed):
    """Checks kind and culprit of the first finding."""
    verdict = json.loads(machine.run(f"tipme diagnose --json {incident}", DIAGNOSE_MAX_S, codes=(0, 3)))
    findings = verdict["findings"]
    first = findings[0] if findings else {"kind": "nothing", "culprit": None, "ms": 0}
    culprit = first["culprit"] or {}
    took = verdict["interval"]["latency_ms"] if verdict.get("interval") else 0
    names = f"{culprit.get('comm')} {culprit.get('job')}"
    seen = max((one.latency_ms for one in typed if one), default=0)
    detail = f"{first['kind']} by {culprit.get('comm')}, {first['ms']:.0f} of {took:.0f} ms; outside {seen:.0f} ms"
    right = first["kind"] == fault.kind and fault.culprit in names and took >= EFFECT_MIN_MS
    if not right:
        detail += f"; expected {fault.kind} by {fault.culprit}; all: " + ", ".join(
            f"{one['kind']} {(one['culprit'] or {}).get('comm')} {one['ms']:.0f}" for one in findings[:4]
        )
    results.met(f"{name}: verdict", right, detail)


def compare(machine, results, name, incident, typed, stamps):
    """Compares tipme's input time and latency of each key with the outside view."""
    command = f"tipme diagnose --interactions --json {incident}"
    listed = json.loads(machine.run(command, DIAGNOSE_MAX_S, codes=(0, 3)))
    keys = [one for one in listed["interactions"] if one["class"] == "key" and one.get("end_ns")]
    pairs, late_ms = [], []
    for seen, begin, end in zip(typed, stamps, stamps[1:]):
        # Each key is pressed after the answer to the previous one.
        near = [one for one in keys if begin - STAMP_TOLERANCE_NS <= one["input_ns"] < end - STAMP_TOLERANCE_NS]
        if seen and near:
            pairs.append((seen, (near[0]["end_ns"] - near[0]["input_ns"]) / 1e6))
            late_ms.append((near[0]["input_ns"] - begin) / 1e6)
    exact = sum(late <= STAMP_TOLERANCE_NS / 1e6 for late in late_ms)
    detail = f"{exact} of {len(typed)} keys have the device's time stamp as time of input, {len(pairs)} were listed"
    if exact < len(typed) and late_ms:
        detail += f"; the latest {max(late_ms):.1f} ms after it"
    results.met(f"{name}: input times", exact == len(typed), detail)
    if pairs:
        results.met(f"{name}: latency", *agreement(pairs))


def agreement(pairs):
    """Returns whether all latencies agree with the outside view within one screen refresh and the sampling step, with details."""
    worst, allowed = max(((seen.latency_ms - own, REFRESH_MS + seen.step_ms) for seen, own in pairs),
                         key=lambda one: abs(one[0]) - one[1])  # fmt: skip
    within = sum(abs(seen.latency_ms - own) <= REFRESH_MS + seen.step_ms for seen, own in pairs)
    outside = statistics.median(seen.latency_ms for seen, _ in pairs)
    inside = statistics.median(own for _, own in pairs)
    step = statistics.median(seen.step_ms for seen, _ in pairs)
    slowest, slowest_own = max(pairs, key=lambda pair: pair[0].latency_ms)
    text = (
        f"{within} of {len(pairs)} within {REFRESH_MS:.1f} ms + step (median {step:.1f} ms); medians outside "
        f"{outside:.1f}, tipme {inside:.1f} ms; longest outside {slowest.latency_ms:.0f}, tipme {slowest_own:.0f} ms; "
        f"largest difference {worst:+.1f} of {allowed:.1f} ms"
    )
    return within == len(pairs), text
