# SPDX-License-Identifier: MIT OR Apache-2.0
"""Truth about a run: from the log of the input, the log of the screen, and the fault's own log.

The recorder and the analysis contribute nothing to it, and receive none of it."""

import statistics

from . import windows

# Duration from which a user notices that the screen stands still, in milliseconds; tipme reports it
# from the same value on.
CALM_STILL_MS = 100
# A change may answer an earlier input that is at most this far away, in nanoseconds.
NOTHING = 10**18
# Maximum time from the fault's end to the screen's answer, else something else was slow; then the
# time until it is quiet.
ANSWER_MAX_MS, AFTER_QUIET_MS = 1200, 400
# Maximum width of a caret, which is no answer: GTK 4 fades it in and out, GTK 3 draws a pixel more
# to each side.
CARET_WIDTH = 3


def in_region(changes, region):
    """Returns the changes that touch a region, or all, except for carets."""
    place = windows.Place(*region) if region else None
    wide = (change for change in changes if change[3] > CARET_WIDTH)
    return [change for change in wide if not place or place.holds(change[1:])]


def first_after(changes, ns, limit_ns=NOTHING):
    return next((change[0] for change in changes if ns < change[0] < limit_ns), None)


def longest_gap(changes, begin_ns, end_ns):
    """Returns the end and the length of the longest time without a change between two moments."""
    times = [begin_ns, *(change[0] for change in changes if begin_ns < change[0] < end_ns)]
    gaps = [(after - before, after) for before, after in zip(times, times[1:])]
    return max(gaps, default=(0, None))


def standstill(changes, begin_ns, end_ns):
    """Returns start and end of the longest time without a change."""
    length, after = longest_gap(changes, begin_ns, end_ns)
    return (after - length, after) if after else (begin_ns, None)


def last_before_quiet(changes, begin_ns, end_ns):
    """Returns the last change before the screen is quiet; the first one after the fault's end
    may take a second."""
    last = None
    for change in changes:
        if change[0] <= begin_ns:
            continue
        quiet_ms = AFTER_QUIET_MS if last and last > end_ns else ANSWER_MAX_MS
        if last and change[0] > end_ns and change[0] - max(last, end_ns) > quiet_ms * 1e6:
            break
        last = change[0]
    return last


def still(inputs, changes):
    """Returns input that must have an effect on the screen, with the time to the next change:
    the slowest first."""
    answers = []
    for event in inputs:
        if not event["expects"]:
            continue
        answer = first_after(changes, event["ns"])
        if answer:
            answers.append({"what": event["what"], "ns": event["ns"], "ms": (answer - event["ns"]) / 1e6})
    return sorted(answers, key=lambda answer: -answer["ms"])


def stands_still(truth, interval):
    """Returns the time in ms for which the screen really stood still in the interval of a
    verdict, from an input on. A press that need not have an effect, such as a click, counts only
    if the first change after it ends the interval."""
    slack = 30_000_000
    begin = interval["start_ns"] - slack
    near = [event for event in truth["inputs"] if begin < event["ns"] < begin + 2 * slack]
    wanted = [event for event in near if event["expects"]] or [event for event in near if event["what"].startswith("press ")]
    if not wanted:
        return 0.0
    answer = first_after(in_region([tuple(change) for change in truth["changes"]], None), wanted[0]["ns"])
    ends = answer and (wanted[0]["expects"] or abs(answer - interval["end_ns"]) <= slack)
    return (answer - wanted[0]["ns"]) / 1e6 if ends else 0.0


def letter_answers(changes, said, typed):
    """Returns the time at which each letter of a line was shown, if the last change is as wide
    as that number of letters and the caret. If keys wait before a compositor or a program, the
    first change after one may be a repeat of the previous key."""
    before = [change[3] for change in changes if change[0] < said["fault_begin_ns"]]
    if not before:
        return [(at, first_after(changes, at)) for at in typed]
    width = statistics.mode(before) // 2
    last_ns = last_before_quiet(changes, typed[-1], said["fault_end_ns"])
    wide = next((change[3] for change in changes if change[0] == last_ns), 0)
    together = len(typed) + 1 - wide // width
    return [(at, last_ns if index >= together else first_after(changes, at)) for index, at in enumerate(typed)]


def answers(changes, said):
    """Returns the input during the fault that must have an effect: time of sending, and time of
    the answer."""
    begin, end = said["fault_begin_ns"], said["fault_end_ns"]
    during = [event["ns"] for event in said["inputs"] if event["expects"] and begin <= event["ns"] <= end]
    by_letter = said["truth"].startswith("letters") and during
    found = letter_answers(changes, said, during) if by_letter else [(at, first_after(changes, at)) for at in during]
    return [(at, answer) for at, answer in found if answer]


def slowest(changes, said):
    """Returns the input with the latest answer."""
    return max(answers(changes, said), key=lambda pair: pair[1] - pair[0], default=(said["act_ns"], None))


# End of the true interval, by the word in the table: the first change after the act, the last one before the screen is
# quiet, the first one after the fault's end, the end of the longest time without a change (of `still`, that time is the
# interval), or the mark during the fault.
MODES = {
    "first": lambda changes, said: first_after(changes, said["act_ns"]),
    "last": lambda changes, said: last_before_quiet(changes, said["act_ns"], said["fault_end_ns"]),
    "after": lambda changes, said: first_after(changes, max(said["act_ns"], said["fault_end_ns"])),
    "gap": lambda changes, said: longest_gap(changes, said["act_ns"], said["mark_ns"])[1],
    "slowest": lambda changes, said: slowest(changes, said)[1],
    "letters": lambda changes, said: slowest(changes, said)[1],
    "still": lambda changes, said: standstill(changes, said["act_ns"], said["mark_ns"])[1],
    "mark": lambda changes, said: said["mark_ns"],
}


def alternatives(changes, said, end_ns):
    """Returns further input that the fault delayed, and its later effects: a verdict may be
    about any of these."""
    if said["truth"].startswith(("slowest", "letters")):
        pairs = answers(changes, said)
    else:
        pairs = [(at, end_ns) for at in [*said["acts_ns"], *said.get("begun_ns", [])]]
    least_ms = 0.7 * (end_ns - said["act_ns"]) / 1e6
    whole = [{"start_ns": at, "end_ns": end, "ms": (end - at) / 1e6} for at, end in pairs]
    return [one for one in whole if one["ms"] >= least_ms]
