# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many CPUs: each one has rings, all switches that the kernel counts are recorded, and one CPU goes offline and online.

Pairs of processes wake each other on every CPU; /proc has the number of their waits. The parser of the incident is based
on docs/reference/format.md alone, independently of tipme's counters and reader.
"""

import contextlib
import json

from shared.incident import LOSSES, META, RARE, SCHED, Unreadable, sections

from .checks import END, SERVICE, Step, beginning
from .incident_file import SAMPLE, SWITCH, rings
from .machine import Failed
from .marks import incidents, new_incident
from .places import TOOLS

# Durations in seconds of the pairs before, during and after the CPU's absence, and of the absence: all within a window.
BEFORE_S, BESIDE_S, AWAY_S, AFTER_S = 4, 10, 2, 4
# Time limit in seconds for sixteen programs to start on emulated CPUs, and for a mark.
LONGEST_S = 120
# Maximum time from the offline state of a CPU to its last record.
SETTLED_NS = 1_000_000


def steps(tipme):
    return [*beginning(tipme), SERVICE, Step("processors", check, needed=True), END]


def check(machine, results):
    cpus = list(range(int(machine.run("nproc"))))
    seen = scenario(machine, cpus)
    before = incidents(machine)
    machine.run("tipme mark", LONGEST_S)
    incident = new_incident(machine, before)
    machine.run(f"tipme diagnose --json {incident}", LONGEST_S, codes=(0, 3))
    try:
        found = dict(sections(machine.read(incident)))
        judge(results, cpus, seen, found, rings(found[SCHED]), rings(found[RARE]))
    except Unreadable as error:
        raise Failed(str(error)) from error


def scenario(machine, cpus):
    """Returns the kernel's counts of the pairs before, during and after the absence of the last CPU, and its times."""
    before = pairs(machine, cpus, BEFORE_S)
    with begun_pairs(machine, cpus[:-1], BESIDE_S) as beside:
        away = json.loads(machine.run(f"{TOOLS}/processors away {cpus[-1]} {AWAY_S}", LONGEST_S))
        beside = json.loads(beside.stdout.read())
    return before, beside, away, pairs(machine, cpus, AFTER_S)


@contextlib.contextmanager
def begun_pairs(machine, cpus, seconds):
    command = f"{TOOLS}/processors pairs {','.join(map(str, cpus))} {seconds}"
    with machine.begun(command, LONGEST_S, "begun") as running:
        yield running


def pairs(machine, cpus, seconds):
    with begun_pairs(machine, cpus, seconds) as running:
        return json.loads(running.stdout.read())


def judge(results, cpus, seen, found, sched, rare):
    before, beside, away, after = seen
    whole(results, cpus, away, sched, rare)
    kept(results, before + beside + after, found, sched)
    came_back(results, cpus[-1], before, away, after, sched)
    sampled(results, cpus[-1], before, after, rare, json.loads(found[META])["missing"])


def whole(results, cpus, away, sched, rare):
    """Checks that each CPU has rings without torn records, and that each switch is from the running thread.

    The kernel reports no switches of an offline CPU.
    """
    present = [cpu for cpu in cpus if sched[cpu].records and rare[cpu].records]
    everything = [*sched.values(), *rare.values()]
    gaps = sum(ring.gaps for ring in everything)
    breaks = sum(cpu != cpus[-1] or not away[0] <= ts <= away[3] for cpu, ring in sched.items() for ts in ring.breaks)
    strange = sorted((set(sched) | set(rare)) - set(cpus))
    detail = (
        f"{len(present)} of {len(cpus)} CPUs have both rings, {sum(ring.chunks for ring in everything)} chunks with "
        f"{sum(len(ring.records) for ring in everything)} records; {gaps} torn, {breaks} switches from another thread "
        f"than ran; other CPUs: {strange or 'none'}"
    )
    results.met("processors: rings", present == cpus and not (gaps or breaks or strange), detail)


def kept(results, threads, found, sched):
    """Checks that all switches that the kernel counted are recorded or counted as lost."""
    meta, losses = json.loads(found[META]), json.loads(found.get(LOSSES) or b"{}")
    counted = sum(one["count"] for one in losses.get("per_second", []))
    missing = more = waits = 0
    for one in threads:
        recorded = sum(is_wait(record, one) for record in sched[one["cpu"]].records)
        missing += max(0, one["waits"] - recorded)
        more += max(0, recorded - one["waits"])
        waits += one["waits"]
    held = min(one["begin"] for one in threads) >= meta["held_from_ns"]
    detail = (
        f"{len(threads)} threads waited {waits} times by /proc, {missing} of these are not recorded and {more} others are; "
        f"{counted} records are counted as lost"
    )
    # A thread may wait once while it reads its count.
    results.met("processors: nothing lost", held and waits and missing <= counted and more <= len(threads), detail)


def is_wait(record, one):
    return (record.kind, record.tid) == (SWITCH, one["tid"]) and record.state and one["begin"] <= record.ts <= one["end"]


def came_back(results, cpu, before, away, after, sched):
    """Checks the ring of the CPU before, during and after its absence."""
    went, gone, back, came = away
    own = sched[cpu].records
    counts = [sum(any(is_wait(record, one) for one in pairs_on(cpu, threads)) for record in own) for threads in (before, after)]
    going = sum(went <= record.ts <= gone + SETTLED_NS for record in own)
    coming = sum(back <= record.ts <= came for record in own)
    absent = sum(gone + SETTLED_NS < record.ts < back for record in own)
    detail = (
        f"CPU {cpu}: {counts[0]} waits of the pair before, {going} records while it went, {absent} while it was away for "
        f"{(back - gone) / 1e9:.1f} s, {coming} while it came, {counts[1]} waits of the pair afterwards"
    )
    results.met("processors: a CPU goes and comes back", all(counts) and going and coming and not absent, detail)


def sampled(results, cpu, before, after, rare, missing):
    """Checks that the CPU has samples before and after its absence, and no note on missing ones."""
    counts = [sum(is_sample(record, pairs_on(cpu, threads)) for record in rare[cpu].records) for threads in (before, after)]
    words = [one["why"] for one in missing if one["what"] == "samples" and f"CPU {cpu} " in one["why"]]
    detail = f"CPU {cpu}: {counts[0]} samples of the pair before, {counts[1]} afterwards; notes: {'; '.join(words) or 'nothing'}"
    results.met("processors: samples", all(counts) and not words, detail)


def pairs_on(cpu, threads):
    return [one for one in threads if one["cpu"] == cpu]


def is_sample(record, threads):
    inside = any(one["tid"] == record.tid and one["begin"] <= record.ts <= one["end"] for one in threads)
    return record.kind == SAMPLE and inside
