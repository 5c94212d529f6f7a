# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many processors: every one has rings, what the kernel counted is recorded, and one of them goes and comes back.

Pairs of processes wake each other on every CPU; the kernel counts in /proc how often each of them waited. The incident is
read by docs/format.md alone, so that neither tipme's counters nor its reader are taken at their word.
"""

import contextlib
import json
import pathlib
import tempfile

from shared.incident import LOSSES, META, RARE, SCHED, Unreadable, sections

from .checks import boot, install, losses, service
from .incident_file import SAMPLE, SWITCH, rings
from .machine import Failed
from .marks import incidents, new_incident
from .places import TOOLS

# So long pairs run before, beside and after the CPU's absence, and so long it is away, in seconds: all within a window.
BEFORE_S, BESIDE_S, AWAY_S, AFTER_S = 4, 10, 2, 4
# Emulated CPUs start sixteen programs in so many seconds, and mark.
LONGEST_S = 120
# A CPU that goes writes its last records within so many nanoseconds of the kernel's word that it is gone.
SETTLED_NS = 1_000_000


def steps(tipme):
    """As `checks.steps`."""
    yield "boot", boot, True, False
    yield "install", lambda machine, results: install(machine, results, tipme), True, False
    yield "recorder as a service", service, True, False
    yield "processors", check, True, False
    yield "recorder at the end", losses, False, False


def check(machine, results):
    cpus = list(range(int(machine.run("nproc"))))
    seen = scenario(machine, cpus)
    before = incidents(machine)
    machine.run("tipme mark", LONGEST_S)
    incident = new_incident(machine, before)
    machine.run(f"tipme diagnose --json {incident}", LONGEST_S, codes=(0, 3))
    with tempfile.TemporaryDirectory(prefix="tipme-vm-incident-") as folder:
        machine.copy_out(incident, pathlib.Path(folder))
        data = (pathlib.Path(folder) / pathlib.PurePath(incident).name).read_bytes()
    try:
        found = dict(sections(data))
        judge(results, cpus, seen, found, rings(found[SCHED]), rings(found[RARE]))
    except Unreadable as error:
        raise Failed(str(error)) from error


def scenario(machine, cpus):
    """What the kernel counted of pairs before, beside and after the absence of the last CPU, and when it was away."""
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
    """Every CPU has rings, without a torn record; each switch is from the thread that the one before was to.

    The kernel tells of no switch of a CPU that it no longer counts as there.
    """
    present = [cpu for cpu in cpus if sched[cpu].records and rare[cpu].records]
    everything = [*sched.values(), *rare.values()]
    gaps = sum(ring.gaps for ring in everything)
    breaks = sum(cpu != cpus[-1] or not away[0] <= ts <= away[3] for cpu, ring in sched.items() for ts in ring.breaks)
    strange = sorted((set(sched) | set(rare)) - set(cpus))
    told = (
        f"{len(present)} of {len(cpus)} CPUs have both rings, {sum(ring.chunks for ring in everything)} chunks with "
        f"{sum(len(ring.records) for ring in everything)} records; {gaps} torn, {breaks} switches from another thread "
        f"than ran; other CPUs: {strange or 'none'}"
    )
    results.met("processors: rings", present == cpus and not (gaps or breaks or strange), told)


def kept(results, threads, found, sched):
    """As many switches as the kernel counted, or the loss is counted."""
    meta, losses = json.loads(found[META]), json.loads(found.get(LOSSES) or b"{}")
    counted = sum(one["count"] for one in losses.get("per_second", []))
    missing = more = waits = 0
    for one in threads:
        recorded = sum(is_wait(record, one) for record in sched[one["cpu"]].records)
        missing += max(0, one["waits"] - recorded)
        more += max(0, recorded - one["waits"])
        waits += one["waits"]
    held = min(one["begin"] for one in threads) >= meta["held_from_ns"]
    told = (
        f"{len(threads)} threads waited {waits} times by /proc, {missing} of these are not recorded and {more} others are; "
        f"{counted} records are counted as lost"
    )
    # Who reads the count may have to wait meanwhile.
    results.met("processors: nothing lost", held and waits and missing <= counted and more <= len(threads), told)


def is_wait(record, one):
    return (record.kind, record.tid) == (SWITCH, one["tid"]) and record.state and one["begin"] <= record.ts <= one["end"]


def came_back(results, cpu, before, away, after, sched):
    """The ring of a CPU that went and came back has what was before, meanwhile and afterwards."""
    went, gone, back, came = away
    own = sched[cpu].records
    counts = [sum(any(is_wait(record, one) for one in pairs_on(cpu, threads)) for record in own) for threads in (before, after)]
    going = sum(went <= record.ts <= gone + SETTLED_NS for record in own)
    coming = sum(back <= record.ts <= came for record in own)
    absent = sum(gone + SETTLED_NS < record.ts < back for record in own)
    told = (
        f"CPU {cpu}: {counts[0]} waits of the pair before, {going} records while it went, {absent} while it was away for "
        f"{(back - gone) / 1e9:.1f} s, {coming} while it came, {counts[1]} waits of the pair afterwards"
    )
    results.met("processors: a CPU goes and comes back", all(counts) and going and coming and not absent, told)


def sampled(results, cpu, before, after, rare, missing):
    """Samples of that CPU before it went and after it came back, and no word that there are none."""
    counts = [sum(is_sample(record, pairs_on(cpu, threads)) for record in rare[cpu].records) for threads in (before, after)]
    words = [one["why"] for one in missing if one["what"] == "samples" and f"CPU {cpu} " in one["why"]]
    told = f"CPU {cpu}: {counts[0]} samples of the pair before, {counts[1]} afterwards; told: {'; '.join(words) or 'nothing'}"
    results.met("processors: samples", all(counts) and not words, told)


def pairs_on(cpu, threads):
    return [one for one in threads if one["cpu"] == cpu]


def is_sample(record, threads):
    inside = any(one["tid"] == record.tid and one["begin"] <= record.ts <= one["end"] for one in threads)
    return record.kind == SAMPLE and inside
