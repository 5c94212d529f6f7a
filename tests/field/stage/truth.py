# SPDX-License-Identifier: MIT OR Apache-2.0
"""The truth about a run: from the log of the input, the log of the screen, and the fault's own log.

The recorder and the analysis have no part in it, and are told none of it.
"""

from . import windows

# An input is answered late where the screen stands still for longer than this, in milliseconds.
CALM_STILL_MS = 150
# Input that comes this soon after another may be what a change answers, in nanoseconds.
NOTHING = 10**18


def in_region(changes, region):
    place = windows.Place(*region) if region else None
    return [change for change in changes if not place or place.holds(change[1:])]


def first_after(changes, ns, limit_ns=NOTHING):
    return next((change[0] for change in changes if ns < change[0] < limit_ns), None)


def longest_gap(changes, begin_ns, end_ns):
    """The end of the longest time without a change between two moments, and how long it was."""
    times = [begin_ns, *(change[0] for change in changes if begin_ns < change[0] < end_ns)]
    gaps = [(after - before, after) for before, after in zip(times, times[1:])]
    return max(gaps, default=(0, None))


def last_before_quiet(changes, begin_ns, end_ns, quiet_ms):
    """The last change before nothing changes for a while; the fault's own time does not count as quiet."""
    last = None
    for change in changes:
        if change[0] <= begin_ns:
            continue
        if last and change[0] > end_ns and change[0] - max(last, end_ns) > quiet_ms * 1e6:
            break
        last = change[0]
    return last


def still(inputs, changes):
    """Input that must show something, with the time until the screen changed: the slowest first."""
    answers = []
    for event in inputs:
        if not event["expects"]:
            continue
        answer = first_after(changes, event["ns"])
        if answer:
            answers.append({"what": event["what"], "ns": event["ns"], "ms": (answer - event["ns"]) / 1e6})
    return sorted(answers, key=lambda answer: -answer["ms"])


def stands_still(truth, interval):
    """Whether the screen really stood still in the interval of a verdict, from an input on: for how long, in ms."""
    begin, end = interval["start_ns"] - 30_000_000, interval["end_ns"] + 30_000_000
    inputs = [event["ns"] for event in truth["inputs"] if event["expects"] and begin < event["ns"] < begin + 60_000_000]
    if not inputs:
        return 0.0
    changes = [tuple(change) for change in truth["changes"]]
    answer = first_after(changes, inputs[0])
    return (answer - inputs[0]) / 1e6 if answer else 0.0
