# SPDX-License-Identifier: MIT OR Apache-2.0
"""Expressions of figures.toml, evaluated in the JSON document of a measurement.

    loads[load=hog].figures.p50_ms / 10        terms, joined by +, *, / from left to right
    rows[0=hog][2]                             third cell of the row with `hog` in its first cell
    rows[beside=build&arm=managed].median_s    the row with both values
    marked_share()                             a function of this file, with words for its arguments

A cell's value is the number at its beginning; that of a missing path is None.
"""

import operator
import re
import statistics

from shared.validation import checked_points, is_disturbed, is_within, limits_us

# Causes of a late wakeup that name a culprit: something else had the CPU. `outside` is the hypervisor, firmware or
# hardware, undecided. A late timer, a slow exit from idle, the thread's own path and unexplained time are no culprits.
CULPRITS = ("thread", "held-off", "interrupt", "softirq", "hypervisor", "firmware", "device", "outside")


def evaluate(expression, document):
    first, *rest = re.split(r" ([+*/]) (?![^\[]*\])", expression)
    value = term(first, document)
    for sign, word in zip(rest[::2], rest[1::2]):
        other = term(word, document)
        if value is None or other is None or (sign == "/" and not other):
            return None
        value = {"+": operator.add, "*": operator.mul, "/": operator.truediv}[sign](value, other)
    return value


def term(word, document):
    if re.fullmatch(r"[\d.]+", word):
        return float(word)
    if call := re.fullmatch(r"(\w+)\((.*)\)", word):
        return FUNCTIONS[call[1]](document, *filter(None, [call[2]]))
    value = found(word, document)
    if isinstance(value, str):
        number = re.match(r"[+-]?\d[\d.]*", value)
        return float(number[0]) if number else None
    return value


def found(path, value):
    """Returns the value at a path, or None."""
    for bracket, name in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", path):
        key = bracket or name
        try:
            if "=" in bracket:
                pairs = [pair.split("=") for pair in bracket.split("&")]
                value = next(one for one in value if all(str(one[number(k)]) == v for k, v in pairs))
            else:
                value = value[number(key)]
        except (KeyError, IndexError, TypeError, StopIteration):
            return None
    return value


def number(key):
    return int(key) if key.isdigit() else key


def count(document, path):
    return len(found(path, document))


def least(document, column):
    """Returns the smallest number of a column in a table of the test bed."""
    return min(term(f"rows[{row}][{column}]", document) for row in range(1, len(document["rows"])))


def within_limits(document):
    """Returns the share of the limits of `idle --validate` that were met; None if other
    processes took too much CPU time for a judgment."""
    trials = [one for one in document["validation"]["trials"] if limits_us(one)]
    if any(map(is_disturbed, trials)):
        return None
    checks = [checked_points(one) for one in document["validation"]["checks"] if one["difference_points_max"] is not None]
    kept = [apart <= most for apart, most in checks] + [is_within(one, limits_us(one)) for one in trials]
    return 100 * sum(kept) / len(kept)


def held_by(document, kind):
    """Returns the share of the stolen time of `idle` with names that holders of a kind had, in
    percent."""
    shares = [one["share_of_stolen"] for one in document["residents"] if one["kind"] == kind]
    return None if document.get("named") is None else 100 * sum(shares)


def attributed_share(document):
    """Returns the share of very late wakeups of `bench timer` whose largest part has a culprit,
    in percent."""
    first = [(outlier["budget"] or [{"cause": "unexplained"}])[0]["cause"] for outlier in document["outliers"]]
    return 100 * sum(cause in CULPRITS for cause in first) / len(first) if first else None


def marked_share(document):
    """Returns the share of hitches of `check-auto` that were marked with the right culprit, in
    percent."""
    marked = [hitch["marked_after_s"] is not None for hitch in document["hitches"]]
    return 100 * sum(marked) / len(marked) if marked else None


def marked_after(document):
    """Returns the median time from the beginning of a hitch of `check-auto` to its mark, in
    seconds."""
    times = [hitch["marked_after_s"] for hitch in document["hitches"] if hitch["marked_after_s"] is not None]
    return statistics.median(times) if times else None


def waiting_share(document):
    """Returns the share of the time of `measure` in which the user waits, in percent."""
    whole = document["wait_ms"] + document["think_ms"]
    return 100 * document["wait_ms"] / whole if whole else None


def answered(document):
    return [event["latency_ms"] for event in document["events"] if event["latency_ms"] is not None and event["class"] != "start"]


def short_share(document, below_ms):
    """Returns the share of the cumulative latency of `measure` due to events below a latency, in
    percent."""
    latencies = answered(document)
    return 100 * sum(one for one in latencies if one < float(below_ms)) / sum(latencies) if latencies else None


def longest_of(document, label):
    """Returns the maximum latency of a label of `measure`, in seconds."""
    rows = [row for row in document["long_events"] if row["label"].startswith(label)]
    values = [row[key] for row in rows for key in ("first_ms", "later_max_ms") if row[key] is not None]
    return max(values) / 1e3 if values else None


def tick_ms(document):
    """Returns the timer tick interval that the gaps of `idle` show, in milliseconds."""
    rates = [cpu["ticks_per_s"] for cpu in document["cpus"] if cpu["ticks_per_s"]]
    return 1e3 / max(rates) if rates else None


FUNCTIONS = {one.__name__: one for one in (count, least, within_limits, held_by, attributed_share, marked_share, marked_after, waiting_share,
                                           short_share, longest_of, tick_ms)}
