# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the documents of `tipme` to single numbers and to what charts are drawn from. Each returns a function of a document."""

import re
import statistics


def at(*path):
    """The value at a path of keys and numbers; None where a part of it is missing."""

    def of(document):
        for part in path:
            try:
                document = document[part]
            except (KeyError, IndexError, TypeError):
                return None
        return document

    return of


def scaled(of, times):
    def value(document):
        found = of(document)
        return None if found is None else found * times

    return value


def ratio(one, other):
    def value(document):
        above, below = one(document), other(document)
        return None if above is None or not below else above / below

    return value


def named(rows, key, name, *path):
    """The row of a list in which a key has a value, and what is at a path in it."""

    def of(document):
        found = [row for row in document.get(rows) or [] if row.get(key) == name]
        return at(*path)(found[0]) if found else None

    return of


def mechanism(name, *path):
    """Of `bench timer`: a mechanism's figure."""
    return named("mechanisms", "mechanism", name, *path)


def load(name, key):
    """Of `bench memory` and `bench fork`: a load's figure."""
    return named("loads", "load", name, "figures", key)


def turn(name, *path):
    """Of `bench typing`, `scroll` and `warmstart`: an arm's figure."""
    return named("arms", "turn", name, *path)


def beside(what, arm, key):
    """Of `bench system`."""

    def of(document):
        found = [row for row in document["rows"] if (row["beside"], row["arm"]) == (what, arm)]
        return found[0][key] if found else None

    return of


def cell(row, column):
    """Of a table of the test bed: the number at the begin of a cell; None where it has none."""

    def of(document):
        found = re.match(r"[+-]?\d[\d.]*", document["rows"][row][column])
        return float(found[0]) if found else None

    return of


def row_cell(name, column):
    """Of a table of the test bed, by the first cell of a row: the number at the begin of another cell."""

    def of(document):
        found = [number for number, row in enumerate(document["rows"]) if row[0] == name]
        return cell(found[0], column)(document) if found else None

    return of


def least(column):
    """Of a table of the test bed: the smallest of the numbers at the begin of a column's cells, below its name."""
    return lambda document: min(cell(row, column)(document) for row in range(1, len(document["rows"])))


def numbered(row, column):
    """Of a table of a document, by the first cell of a row: the number at the begin of another cell."""

    def of(document):
        found = re.match(r"[+-]?[\d.]+", at("rows", row, column)(document) or "")
        return float(found[0]) if found else None

    return of


def trial(method, *path):
    """Of `idle --validate`: errors of a method."""

    def of(document):
        found = [one for one in document["validation"]["trials"] if one["method"] == method]
        return at(*path)(found[0]) if found else None

    return of


def echo(key):
    return at("validation", "echoes", 0, key)


def within_limits(document):
    """Of `idle --validate`: how many of its limits were kept, of all; None where others had too much for a judgement."""
    taken = {"taken": None}
    if any(disturbing(one.get("taken")) for one in document["validation"]["trials"] if one["p50_us_max"] is not None):
        return None
    checks = document["validation"]["checks"]
    trials = [{**taken, **one} for one in document["validation"]["trials"] if one["p50_us_max"] is not None]
    kept = sum(abs(one["difference_points"]) <= one["difference_points_max"] + 100 * one.get("steal_share", 0)
               for one in checks if one["difference_points_max"] is not None)
    limited = sum(one["difference_points_max"] is not None for one in checks)
    return 100 * (kept + sum(map(trial_is_good, trials))) / (limited + len(trials))


def disturbing(taken):
    return taken is not None and taken["others_share"] + taken["steal_share"] > 0.05


def trial_is_good(one):
    taken = one["taken"] or {"others_share": 0, "steal_share": 0}
    share = taken["others_share"] + taken["steal_share"]
    middling, longest = (one["injected_ms_min"] + one["injected_ms_max"]) / 2, one["injected_ms_max"]
    errors = one["errors"]
    return errors["p50_us"] <= one["p50_us_max"] + 1e3 * middling * share and errors["p90_us"] <= one["p90_us_max"] + 1e3 * longest * share


# Of a late wake-up: who had the CPU. `outside` is the hypervisor, the firmware or the hardware where that is not decided. No cause are a
# timer that came late, an idle CPU, the thread's own way, many small shares, and what no record tells.
CULPRITS = ("thread", "held-off", "interrupt", "softirq", "hypervisor", "firmware", "device", "outside")


def held_by(kind):
    """Of `idle` with names: the share of the stolen time that holders of a kind had, in percent."""

    def of(document):
        shares = [one["share_of_stolen"] for one in document["residents"] if one["kind"] == kind]
        return None if document.get("named") is None else 100 * sum(shares)

    return of


def attributed_share(document):
    """Of `bench timer`: the share of very late wake-ups whose largest part has a culprit, in percent; one without records has none."""
    first = [(outlier["budget"] or [{"cause": "unexplained"}])[0]["cause"] for outlier in document["outliers"]]
    return 100 * sum(cause in CULPRITS for cause in first) / len(first) if first else None


def late_wake_ups(document):
    """Of `bench timer`: how many very late wake-ups were looked at."""
    return len(document["outliers"])


def marked_share(document):
    """Of `check-auto`: hitches that were marked and named, of all, in percent."""
    marked = [hitch["marked_after_s"] is not None for hitch in document["hitches"]]
    return 100 * sum(marked) / len(marked) if marked else None


def marked_after(document):
    """Of `check-auto`: seconds from the begin of a hitch to its mark, the middle one."""
    times = [hitch["marked_after_s"] for hitch in document["hitches"] if hitch["marked_after_s"] is not None]
    return statistics.median(times) if times else None


def false_marks(document):
    """Of `check-auto`: marks that name nobody who made a hitch, an hour."""
    return 3600 * len(document["false_marks"]) / document["wall_s"]


def recorder_cpu(document):
    """Of `check-auto`: CPU time of the recorder and its children, in percent of one."""
    return document["cpu"]["own_percent"] + document["cpu"]["children_percent"]


def short_share(below_ms):
    """Of `measure`: the share of the cumulative latency that is due to events below so many milliseconds, in percent."""

    def of(document):
        latencies = answered(document)
        total = sum(latencies)
        return 100 * sum(value for value in latencies if value < below_ms) / total if total else None

    return of


def answered(document):
    return [event["latency_ms"] for event in document["events"] if event["latency_ms"] is not None and event["class"] != "start"]


def longest_of(label):
    """Of `measure`: the longest latency of a label, in seconds."""

    def of(document):
        found = [row for row in document["long_events"] if row["label"].startswith(label)]
        values = [row[key] for row in found for key in ("first_ms", "later_max_ms") if row[key] is not None]
        return max(values) / 1e3 if values else None

    return of


def histogram(name):
    """What is kept of a load for its histogram: milliseconds and counts."""

    def of(document):
        found = [row for row in document["loads"] if row["load"] == name]
        return found[0]["histogram_10ms"] if found else []

    return of


def arm_histograms(document):
    """Of a measurement of the test bed beside a load: buckets by arm."""
    return {name.rpartition(" ")[2]: buckets for name, buckets in document["histograms"].items() if name.startswith("load ")}


def histograms(names):
    return lambda document: {name: histogram(name)(document) for name in names}


def timer_bins(names):
    """Bins of 100 µs by mechanism."""

    def of(document):
        return {row["mechanism"]: row["histogram_100us"] for row in document["mechanisms"] if row["mechanism"] in names}

    return of


def cumulative(document):
    """Of `measure`: points of the cumulative latency over latency, a hundred at most."""
    latencies, total, points = sorted(answered(document)), 0.0, []
    step = max(1, len(latencies) // 100)
    for number, value in enumerate(latencies, start=1):
        total += value
        if number % step == 0 or number == len(latencies):
            points.append([round(value, 3), round(total, 1)])
    return points


def levels(document):
    """Of `bench typing` and `scroll`: by arm, the load level and the p50 and p95 in seconds."""
    lines = {}
    for arm in document["arms"]:
        figures = arm["figures"]
        name = "managed" if arm["arm"] == "managed" else "unmanaged"
        lines.setdefault(name, []).append([arm["level"], seconds(figures["p50_ms"]), seconds(figures["p95_ms"])])
    return lines


def seconds(ms):
    return None if ms is None else round(ms / 1e3, 6)


def utilisation(document):
    """Of `idle`: how many gaps there were of which length, by powers of two in microseconds, over all CPUs."""
    counts = {}
    for run in document["runs"]:
        for events in run["classes"]:
            for latency in events["latencies_ns"]:
                least = 1 << max(0, (latency // 1000).bit_length() - 1)
                counts[least] = counts.get(least, 0) + 1
    return sorted([least, count] for least, count in counts.items())


def tick_ms(document):
    """The time between two timer ticks that the gaps show, in milliseconds."""
    rates = [cpu["ticks_per_s"] for cpu in document["cpus"] if cpu["ticks_per_s"]]
    return 1e3 / max(rates) if rates else None
