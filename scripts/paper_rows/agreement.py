# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether runs of different days agree on a figure."""


def value_of(figure, run):
    return run["figures"].get(figure.name)


def day(run):
    """The day on which a run began, UTC."""
    return run["date"][:10]


def measured(figure, runs):
    """The runs that have the figure, the oldest first."""
    return [run for run in runs if value_of(figure, run) is not None]


def earlier(figure, runs):
    """The newest run of another day than the last one; None where there is none."""
    known = measured(figure, runs)
    return next((run for run in reversed(known) if day(run) != day(known[-1])), None)


def agreement(figure, runs):
    """How the last run and the newest of another day lie to each other: `agrees`, `FLAGGED`, or why there is nothing to compare."""
    known = measured(figure, runs)
    if not known:
        return "not measured"
    before = earlier(figure, runs)
    if before is None:
        return "one day so far"
    one, other = value_of(figure, before), value_of(figure, known[-1])
    return "agrees" if abs(one - other) <= tolerance(figure, one, other) else "FLAGGED"


def tolerance(figure, one, other):
    return max(figure.least, figure.share * max(abs(one), abs(other)))


def interval(figure):
    """The stated interval in words."""
    parts = [f"{100 * figure.share:.0f} %"] if figure.share else []
    parts += [f"{figure.least:g} {figure.unit}".strip()] if figure.least else []
    return "±" + " or ".join(parts) if parts else "exactly"
