# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of rounds: medians with their range, intervals, percentiles, bars, and tables for
documents."""

import math
import random
import statistics


def shown(values, unit, digits):
    return f"{statistics.median(values):.{digits}f}{unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def interval(values, draws=10_000):
    """Returns the bootstrapped 95% interval of the median."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(draws * 0.025)], medians[int(draws * 0.975)]


def difference(stated):
    """Returns a difference as `tipme compare` states it, with its interval if there is one."""
    statement = stated["statement"].replace("-", " ")
    if stated["difference"] is None:
        return statement
    return f"{stated['difference']:+.2f} ms (95 % interval {stated['low']:+.2f} to {stated['high']:+.2f} ms): {statement}"


def nearest_rank(values, percent):
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)] if values else None


def bar(what, value, limit, unit):
    """Returns a line for the document, and True if the bar is met."""
    met = value <= limit
    return f"- {what}: **{value:.3g}{unit}** (bar {limit:g}{unit}: {'met' if met else 'MISSED'})", met


def in_turn(arms, number):
    """Returns the arms in the order of a round, which rotates."""
    arms = list(arms)
    shift = number % len(arms)
    return arms[shift:] + arms[:shift]


def table(rows):
    """Returns the lines of a table; the first row is the header."""
    lines = [f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows]
    return [*lines[:1], "|---" * len(rows[0]) + "|", *lines[1:]] if rows else []


def write_between(document, begin, end, lines):
    """Replaces the part of a document between two markers, which are added if missing."""
    known = document.read_text().splitlines()
    if begin not in known or end not in known:
        known += ["", begin, end]
    known[known.index(begin) + 1 : known.index(end)] = lines
    document.write_text("\n".join(known) + "\n")
