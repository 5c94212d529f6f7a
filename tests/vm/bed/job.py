# SPDX-License-Identifier: MIT OR Apache-2.0
"""The main job, with a real keyboard: a hitch, the hot key, a verdict that names the cause.

Keys are typed calmly, a fault is injected in the guest, keys are typed into it, and the hot key is pressed,
all by QEMU's keyboard. Whether there was a hitch at all is seen from outside, on the screen: a fault that held nothing
up is repeated. The diagnosis has nothing but the incident file. What it says of each key is then held against what was
seen from outside.
"""

import dataclasses
import json
import pathlib
import statistics
import time

from .places import TOOLS, cache, say
from .screen import Screen

# Keys before the fault, those into it, and the pause between keys, in seconds.
CALM_KEYS, PAUSE_S = 12, 0.25
# The time until the fault has its effect, in seconds.
ONSET_S = 0.3
# A hitch holds the screen up for so much longer than calm keys do, in milliseconds; so often it is tried.
HELD_MIN_MS, TRIES_MAX = 250, 5
# From one picture of a 60 Hz screen to the next.
REFRESH_MS = 1000 / 60
# A stamp of the device and tipme's time of input are the same number, in microseconds.
STAMP_TOLERANCE_NS = 1000
# An effect below this is no hitch, in milliseconds: emulation is too coarse for less.
EFFECT_MIN_MS = 50
DIAGNOSE_MAX_S = 180
# So far back an incident reaches, in seconds: the next fault is not to be in the window of the one before.
WINDOW_S = 42


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is done to the guest, and what has to be found."""

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
    pid = machine.run(f"{TOOLS}/await-focus", 90).strip()
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
    """Keeps what a failure can be understood from."""
    folder = cache() / "failed" / machine.kernel.series
    machine.copy_out(incident, folder)
    seen = [one and dataclasses.asdict(one) for one in typed]
    text = json.dumps({"seen": seen, "stamps": stamps}, indent=1)
    (folder / pathlib.PurePath(incident).with_suffix(".json").name).write_text(text)
    say(f"        kept in {folder}")


def type_into(machine, results, screen, fault, pid, mark_keys):
    """What was seen of each key, and the guest's own stamps of them. The first key of all, which loads fonts, is not one of them."""
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
    """Keys typed into the fault, which is repeated until the screen was held up."""
    usual = statistics.median(one.latency_ms for one in calm if one)
    typed, held = [], []
    while len(held) < TRIES_MAX and max(held, default=0) < HELD_MIN_MS:
        with machine.begun(fault.command.format(pid=pid), fault.seconds, "begun"):
            time.sleep(ONSET_S)
            tried = [type_one(screen, number, calm=False) for number in range(fault.keys)]
        typed += tried
        held.append(max((one.latency_ms - usual for one in tried if one), default=0))
    told = f"screen held up for {held[-1]:.0f} ms longer than the usual {usual:.0f} ms"
    if held[1:]:
        told += ", before that for " + ", ".join(f"{one:.0f}" for one in held[:-1])
    results.met(f"main job, {fault.name}: hitch", held[-1] >= HELD_MIN_MS, told)
    return typed


def type_one(screen, number, calm=True):
    seen = screen.press("asdfghjkl"[number % 9], quiet=calm)
    time.sleep(PAUSE_S)
    return seen


def judge(machine, results, fault, name, incident, typed):
    """The first finding names kind and culprit."""
    verdict = json.loads(machine.run(f"tipme diagnose --json {incident}", DIAGNOSE_MAX_S, codes=(0, 3)))
    findings = verdict["findings"]
    first = findings[0] if findings else {"kind": "nothing", "culprit": None, "ms": 0}
    culprit = first["culprit"] or {}
    took = verdict["interval"]["latency_ms"] if verdict.get("interval") else 0
    names = f"{culprit.get('comm')} {culprit.get('job')}"
    seen = max((one.latency_ms for one in typed if one), default=0)
    told = f"{first['kind']} by {culprit.get('comm')}, {first['ms']:.0f} of {took:.0f} ms; outside {seen:.0f} ms"
    right = first["kind"] == fault.kind and fault.culprit in names and took >= EFFECT_MIN_MS
    if not right:
        told += f"; expected {fault.kind} by {fault.culprit}; all: " + ", ".join(
            f"{one['kind']} {(one['culprit'] or {}).get('comm')} {one['ms']:.0f}" for one in findings[:4]
        )
    results.met(f"{name}: verdict", right, told)


def compare(machine, results, name, incident, typed, stamps):
    """What tipme says of each key, against the outside view."""
    command = f"tipme diagnose --interactions --json {incident}"
    listed = json.loads(machine.run(command, DIAGNOSE_MAX_S, codes=(0, 3)))
    keys = [one for one in listed["interactions"] if one["class"] == "key" and one.get("end_ns")]
    pairs, late_ms = [], []
    for seen, begin, end in zip(typed, stamps, stamps[1:]):
        # The next key was pressed only when this one was answered.
        near = [one for one in keys if begin - STAMP_TOLERANCE_NS <= one["input_ns"] < end - STAMP_TOLERANCE_NS]
        if seen and near:
            pairs.append((seen, (near[0]["end_ns"] - near[0]["input_ns"]) / 1e6))
            late_ms.append((near[0]["input_ns"] - begin) / 1e6)
    exact = sum(late <= STAMP_TOLERANCE_NS / 1e6 for late in late_ms)
    told = f"{exact} of {len(typed)} keys have the device's time stamp as time of input, {len(pairs)} were listed"
    if exact < len(typed) and late_ms:
        told += f"; the latest {max(late_ms):.1f} ms after it"
    results.met(f"{name}: input times", exact == len(typed), told)
    if pairs:
        results.met(f"{name}: latency", *agreement(pairs))


def agreement(pairs):
    """Whether each key's latency is that of the outside within one screen refresh and the sampling step."""
    worst, allowed = max(((seen.latency_ms - told, REFRESH_MS + seen.step_ms) for seen, told in pairs),
                         key=lambda one: abs(one[0]) - one[1])  # fmt: skip
    within = sum(abs(seen.latency_ms - told) <= REFRESH_MS + seen.step_ms for seen, told in pairs)
    outside = statistics.median(seen.latency_ms for seen, _ in pairs)
    inside = statistics.median(told for _, told in pairs)
    step = statistics.median(seen.step_ms for seen, _ in pairs)
    slowest, slowest_told = max(pairs, key=lambda pair: pair[0].latency_ms)
    text = (
        f"{within} of {len(pairs)} within {REFRESH_MS:.1f} ms + step (median {step:.1f} ms); medians outside "
        f"{outside:.1f}, tipme {inside:.1f} ms; longest outside {slowest.latency_ms:.0f}, tipme {slowest_told:.0f} ms; "
        f"largest difference {worst:+.1f} of {allowed:.1f} ms"
    )
    return within == len(pairs), text
