# SPDX-License-Identifier: MIT OR Apache-2.0
"""Repeated diagnosis of stored runs: by one executable, or by two to compare them."""

import collections
import concurrent.futures
import os

from . import judge, keep, scenarios

GOOD = ("right", "silent", "still")
# Lower bounds of the buckets of the reliability table.
BUCKETS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.0)


def all_judged(tipme, folders):
    """Diagnoses every run with `tipme`, on all CPUs in parallel."""
    def one(folder):
        return judge.judged(folder, keep.diagnose(tipme, folder / "incident.tipme"))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, folders))


def tally(runs, group):
    """Counts good and all counted runs, grouped by `group`."""
    counts = collections.defaultdict(lambda: [0, 0])
    for run in runs:
        if run.result != "uncounted":
            counts[group(run)][0] += run.result in GOOD
            counts[group(run)][1] += 1
    return counts


def share(counts, name):
    good, whole = counts.get(name, (0, 0))
    return f"{good}/{whole}"


def by_program(run):
    program = "xterm" if run.truth["program"].startswith("xterm-") else run.truth["program"]
    return run.truth["kind"], program if display(run) == "X11" else f"{program} on {display(run)}"


def by_fault(run):
    words = [word for word in run.truth["fault"].split()[:2] if not word[0].isdigit()]
    return run.truth["kind"], " ".join(words).partition("/")[0] or run.truth["manager"]


def display(run):
    """Returns the compositor under Wayland, else X11."""
    return run.truth["manager"] if run.truth["manager"] in scenarios.WAYLAND else "X11"


def by_display(run):
    return run.truth["kind"], display(run)


def total(run):
    return run.truth["kind"], "all"


def tables(before, now):
    """Returns the lines of the tables; `before` may be empty."""
    for title, group in (("program", by_program), ("fault or window manager", by_fault), ("display", by_display), ("all", total)):
        old, new = tally(before, group), tally(now, group)
        yield f"{'kind':6} {title:26} {'before':>9} {'now':>9}" if before else f"{'kind':6} {title:26} {'now':>9}"
        for kind, name in sorted(new):
            then = f" {share(old, (kind, name)):>9}" if before else ""
            yield f"{kind:6} {name:26}{then} {share(new, (kind, name)):>9}"
        yield ""


def reliability(runs):
    """Returns the share of correct causes by the stated confidence of the first finding, as
    lines. A finding in a calm session counts as wrong. The confidence is not about the interval."""
    stated = collections.defaultdict(list)
    for run in runs:
        findings = run.verdict.get("findings")
        if findings and run.result not in ("silent", "still", "uncounted", "error"):
            confidence = findings[0]["confidence"]
            stated[next(low for low in BUCKETS if confidence >= low)].append((confidence, judge.right_cause(run)))
    yield f"{'confidence':12} {'runs':>5} {'stated':>6} {'right':>6}"
    for low in sorted(stated, reverse=True):
        runs_here = stated[low]
        mean, right = (sum(column) / len(runs_here) for column in zip(*runs_here))
        yield f"{f'from {low:.0%}':12} {len(runs_here):5} {mean:6.1%} {right:6.1%}"
    yield ""


def differences(before, now):
    for old, new in zip(before, now):
        if old.result != new.result:
            better = (new.result in GOOD) - (old.result in GOOD)
            sign = {1: "+", -1: "-", 0: "="}[better]
            yield f"{sign} {new.run}: {old.result} -> {new.result} {new.why}"
            yield f"    before: {old.line()}"
            yield f"    now:    {new.line()}"


def misses(now):
    for run in now:
        if run.result not in (*GOOD, "uncounted"):
            yield f"  {run.run}: {run.result}: {run.line()} [{run.why}]"


def replay(options, say=print):
    """Prints tables, differences and misses; returns the runs."""
    words = options.only.split(",") if options.only else [""]
    folders = [one for one in keep.runs(options.keep) if any(word in one.name for word in words)]
    now = all_judged(options.tipme, folders)
    before = all_judged(options.against, folders) if options.against else []
    for line in tables(before, now):
        say(line)
    for line in reliability(now):
        say(line)
    uncounted = [run for run in now if run.result == "uncounted"]
    if uncounted:
        say(f"not counted: {len(uncounted)}")
    still = [run for run in now if run.result == "still"]
    for run in still:
        say(f"calm, and the screen agrees with the finding: {run.run}: {run.line()} [{run.why}]")
    if before:
        say("differences:")
        for line in differences(before, now):
            say(line)
    say("misses:")
    for line in misses(now):
        say(line)
    return now
