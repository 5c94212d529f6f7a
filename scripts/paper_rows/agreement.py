# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether runs of different days agree on a figure."""

# Machines of one name are of one class where a fixed piece of work takes as long but for this share of the longer time.
SPEED_SHARE = 0.35


def value_of(figure, run):
    return run["figures"].get(figure.name)


def day(run):
    """The day on which a run began, UTC."""
    return run["date"][:10]


def measured(figure, runs):
    """The runs that have the figure, the oldest first."""
    return [run for run in runs if value_of(figure, run) is not None]


def alike(one, other):
    """Whether two runs were on one class of machine: the same by name and kernel, and of the same speed where both tell it."""
    speeds = [run["work_ms"] for run in (one, other) if run.get("work_ms")]
    return one["machine"] == other["machine"] and (len(speeds) < 2 or max(speeds) - min(speeds) <= SPEED_SHARE * max(speeds))


def comparable(figure, runs):
    """The runs that have the figure, on the class of machine of the last of them."""
    known = measured(figure, runs)
    return [run for run in known if alike(run, known[-1])]


def earlier(figure, runs):
    """The newest run of another day than the last one, on the same class of machine where there is such; else None."""
    known = measured(figure, runs)
    before = [run for like in (comparable(figure, runs), known) for run in reversed(like) if day(run) != day(known[-1])]
    return next(iter(before), None)


def compared(figure, runs):
    """All runs on the class of machine of the last one; where these are of one day, the newest of another day, on any machine, too."""
    like, other = comparable(figure, runs), earlier(figure, runs)
    return like if other is None or other in like else [other, *like]


def agreement(figure, runs):
    """How the runs that are compared lie to each other: `agrees`, `FLAGGED`, or why neither can be said."""
    held = compared(figure, runs)
    if not held:
        return "not measured"
    if value_of(figure, runs[-1]) is None:
        return "not measured this time"
    values = [value_of(figure, run) for run in held]
    if max(values) - min(values) > tolerance(figure, values):
        return "FLAGGED"
    if len({day(run) for run in held}) == 1:
        return "one day so far"
    return "nothing to tell apart" if is_void(figure, values) else "agrees"


def is_void(figure, values):
    """Whether values are so small that the interval reaches down to nothing."""
    return max(map(abs, values)) <= figure.least or not any(values)


def tolerance(figure, values):
    return max(figure.least, figure.share * max(map(abs, values)))


def interval(figure):
    """The stated interval in words: a share in percent; what is absolute in the figure's unit, of percentages in points."""
    parts = [f"{100 * figure.share:.0f} %"] if figure.share else []
    parts += [f"{figure.least:g} {figure.unit.replace('%', 'points')}".strip()] if figure.least else []
    return "±" + " or ".join(parts) if parts else "exactly"
