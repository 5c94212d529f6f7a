# SPDX-License-Identifier: MIT OR Apache-2.0
"""Table of results, for docs/results."""

import datetime
import platform

from shared import machine

from . import replay, truth

HEAD = """# The field test

Unmodified programs under real X11 window managers and Wayland compositors: faults from outside, and calm sessions without any
finding. The truth is measured independently of the recorder and the analysis, see
`tests/field`. Written by `make field` or `make replay`.
"""
RULE = f"""
A fault is right if kind and culprit of the first finding and the interval are all right, the interval within 15% or 50 ms. A
calm session with a finding is false, unless the screen itself stood still for more than {truth.CALM_STILL_MS} ms after that input;
these are listed.
"""


def conditions(runs):
    known = sorted({run.truth["time"][:10] for run in runs})
    dates = f"{known[0]} to {known[-1]}" if known else "no runs"
    diagnosed = datetime.date.today().isoformat()
    kernel = ".".join(platform.release().split(".")[:2])
    return f"Recorded {dates}, diagnosed {diagnosed} at commit {machine.commit()}; {machine.processor()}, kernel {kernel}."


def rows(title, counts):
    yield f"\n| {title} | right |\n|---|---|"
    for name in sorted(counts):
        good, whole = counts[name]
        yield f"| {name} | {good} of {whole} |"


def of_kind(runs, kind, group):
    return {name[1]: counts for name, counts in replay.tally(runs, group).items() if name[0] == kind}


# Buckets of the confidence of a first finding, by their lower bounds.
SURE = (("high, 0.85 and more", 0.85), ("medium", 0.7), ("low, less than 0.7", 0.0))


def by_confidence(runs):
    """Counts the correct first findings by their stated confidence; those of calm sessions are
    never correct."""
    counts = {name: [0, 0] for name, _ in SURE}
    for run in runs:
        findings = run.verdict.get("findings")
        if findings and run.result != "uncounted":
            level = next(name for name, least in SURE if findings[0]["confidence"] >= least)
            counts[level][0] += run.result in ("right", "still")
            counts[level][1] += 1
    yield "\n| confidence of the first finding | right |\n|---|---|"
    for name, (good, whole) in counts.items():
        yield f"| {name} | {good} of {whole} |"


def missed(runs):
    for run in runs:
        if run.result not in (*replay.GOOD, "uncounted"):
            yield f"- missed: {run.run}: {run.line()}; {run.why or run.result}"


def text(runs):
    calm, faults = (sum(run.truth["kind"] == kind and run.result != "uncounted" for run in runs) for kind in ("calm", "fault"))
    lines = [HEAD, conditions(runs), RULE]
    silent = sum(run.result == "silent" for run in runs)
    still = [run for run in runs if run.result == "still"]
    right = sum(run.result == "right" for run in runs)
    lines.append(f"**Faults: {right} of {faults} right. Calm sessions: {silent} of {calm} silent, {len(still)} stood still.**")
    for kind, title, group in (
        ("fault", "faults by display", replay.by_display),
        ("calm", "calm by display", replay.by_display),
        ("fault", "faults by program", replay.by_program),
        ("fault", "faults by kind", replay.by_fault),
        ("calm", "calm by program", replay.by_program),
        ("calm", "calm by window manager", replay.by_fault),
    ):
        lines.extend(rows(title, of_kind(runs, kind, group)))
    lines.extend(by_confidence(runs))
    lines.append("")
    lines.extend(missed(runs))
    lines.extend(f"- stood still: {run.run}: {run.line()}; {run.why}" for run in still)
    lines.extend(f"- not counted: {run.run}: {run.why}" for run in runs if run.result == "uncounted")
    return "\n".join(lines).rstrip() + "\n"


def write(path, runs):
    path.write_text(text(runs))
