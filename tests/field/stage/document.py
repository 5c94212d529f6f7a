# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of results, for docs/results."""

import datetime
import os
import pathlib
import platform

from . import play, replay, truth

HEAD = """# The field test

Unmodified programs under real window managers; faults from outside, and calm sessions in which nothing may be found.
The truth is measured beside the recorder, and never told to the analysis: [tests/field](../../tests/field/README.md) says
how. Written by `make field` or `make replay`.
"""
RULE = f"""
A fault counts as right where the first finding's kind, its culprit and the interval are right, all three; the interval
within 15 % or 50 ms. A calm session with a finding is false, unless the screen itself stood still for more than
{truth.CALM_STILL_MS} ms after that input; those are listed.
"""


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def conditions(runs):
    known = sorted({run.truth["time"][:10] for run in runs})
    dates = f"{known[0]} to {known[-1]}" if known else "no runs"
    diagnosed = datetime.date.today().isoformat()
    kernel = ".".join(platform.release().split(".")[:2])
    return f"Recorded {dates}, diagnosed {diagnosed} at commit {play.commit()}; {processor()}, {cpus()}, kernel {kernel}."


def cpus():
    return f"{len(os.sched_getaffinity(0))} CPUs"


def rows(title, counts):
    yield f"\n| {title} | right |\n|---|---|"
    for name in sorted(counts):
        good, whole = counts[name]
        yield f"| {name} | {good} of {whole} |"


def of_kind(runs, kind, group):
    return {name[1]: counts for name, counts in replay.tally(runs, group).items() if name[0] == kind}


def text(runs):
    calm, faults = (sum(run.truth["kind"] == kind and run.result != "uncounted" for run in runs) for kind in ("calm", "fault"))
    lines = [HEAD, conditions(runs), RULE]
    silent = sum(run.result == "silent" for run in runs)
    still = [run for run in runs if run.result == "still"]
    right = sum(run.result == "right" for run in runs)
    lines.append(f"**Faults: {right} of {faults} right. Calm sessions: {silent} of {calm} silent, {len(still)} stood still.**")
    for kind, title, group in (
        ("fault", "faults by program", replay.by_program),
        ("fault", "faults by kind", replay.by_fault),
        ("calm", "calm by program", replay.by_program),
        ("calm", "calm by window manager", replay.by_fault),
    ):
        lines.extend(rows(title, of_kind(runs, kind, group)))
    lines.append("")
    lines.extend(f"- stood still: {run.run}: {run.line()}; {run.why}" for run in still)
    lines.extend(f"- not counted: {run.run}: {run.why}" for run in runs if run.result == "uncounted")
    return "\n".join(lines).rstrip() + "\n"


def write(path, runs):
    path.write_text(text(runs))
