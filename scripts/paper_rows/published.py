# SPDX-License-Identifier: MIT OR Apache-2.0
"""Charts with the papers' own numbers, if text or tables give them, in panels beside ours."""

import dataclasses
import pathlib
import tomllib
import typing

from .extract import answered

# The papers' own numbers.
PAPERS = tomllib.loads(pathlib.Path(__file__).with_name("published.toml").read_text())
TIMER = {name: {int(x): count for x, count in bins.items()} for name, bins in PAPERS["timer"].items()}
LOAD_MOST = 20
PAGE_AXIS, INTERVAL_AXIS = "ms from one page to the next, buckets of 10 ms", "ms from one stamp to the next, buckets of 10 ms"


@dataclasses.dataclass(frozen=True)
class Chart:
    file: str
    title: str
    # Section, figure or table of the paper.
    source: str
    measurement: str
    # Extracts the stored values from the document.
    keep: typing.Callable
    # Returns panels from the stored values, the paper's first.
    panels: typing.Callable


def pair(paper_title, paper, ours, ours_title="here", **axes):
    """Returns the paper's panel and ours, of series by name."""
    return [{"title": title, "series": list(series.items()), **axes} for title, series in ((f"paper, {paper_title}", paper), (ours_title, ours))]


def bars(paper_title, paper, ours, x, y="number", ours_title="here", x_log=True):
    return pair(paper_title, paper, ours, ours_title, x=x, y=y, y_log=True, x_log=x_log)


def timer(kept):
    middle = {name: sorted((x + 50, count) for x, count in bins.items()) for name, bins in TIMER.items()}
    ours = {name: [(x + 50, count) for x, count in bins] for name, bins in kept.items()}
    return bars("tables 2 and 3", middle, ours, "µs between two wake-ups, bins of 100 µs")


def memory(kept):
    return bars("figure 4, from its text", PAPERS["page_ins"], kept, PAGE_AXIS)


def remedies(kept):
    marks = [(8000, "paper, before: over 8 s"), (370, "paper, after: 0.37 s")]
    names = {"unmanaged": "before", "managed": "after: the manager", "idle-io": "after: idle I/O class", "limit": "after: limit of memory"}
    paper, _ = memory({})
    axes = {"x": "ms waited for pages, buckets of 10 ms", "y": "number", "y_log": True, "x_log": True, "marks": marks}
    return [paper, *({"title": words, "series": [(words, [(x + 5, count) for x, count in kept[arm]])], **axes} for arm, words in names.items() if arm in kept)]


def levels(letters, y):
    def panels(kept):
        paper = {name: [(LOAD_MOST * number / (len(values) - 1), value) for number, value in enumerate(values)] for name, values in letters.items()}
        ours = {name: [(level, p50) for level, p50, _ in sorted(points)] for name, points in kept.items()}
        axis = "load of the paper at even steps; here: runnable processes beside it"
        return pair("figure 2: levels of the letters", paper, ours, "here, medians", kind="points", x=axis, y=y, y_log=True)

    return panels


def system(kept):
    places = {name: list(zip((1, 2, 3), values)) for name, values in PAPERS["system"].items()}
    ours = {name: list(zip((1, 2, 3), values)) for name, values in kept.items()}
    return pair("table 1", places, ours, kind="points", x="1 beside nothing, 2 build, 3 heavy synthetic", y="s", y_log=True)


def added(seconds):
    """Returns points of the cumulative latency over latency, in milliseconds."""
    values = sorted(seconds)
    return [(1e3 * value, 1e3 * sum(values[: number + 1])) for number, value in enumerate(values)]


def over_latency(paper_title, paper, ours, y):
    return pair(paper_title, paper, {"cumulative latency": ours}, "here, all repeats together", kind="points", x="latency, ms", y=y, x_log=True)


def notepad(kept):
    """Returns shares only, since the paper's text gives no absolute values."""
    ours = [(latency, 100 * total / kept[-1][1]) for latency, total in kept]
    return over_latency("figure 7, from its text", PAPERS["notepad"], ours, "% of the cumulative latency, by events up to that long")


def powerpoint(kept):
    paper = {name: added(seconds) for name, seconds in PAPERS["powerpoint"].items()}
    return over_latency("table 1: the events over a second alone", paper, kept, "cumulative latency, ms")


# --- what is kept of a document --------------------------------------------------------------


def histograms(*names):
    return lambda document: {one["load"]: one["histogram_10ms"] for name in names for one in document["loads"] if one["load"] == name}


def by_level(document):
    """Returns the load with p50 and p95 in seconds, by arm."""
    lines = {}
    for arm in document["arms"]:
        percentiles = (arm["figures"][key] for key in ("p50_ms", "p95_ms"))
        name = "managed" if arm["arm"] == "managed" else "unmanaged"
        lines.setdefault(name, []).append([arm["level"], *(None if ms is None else round(ms / 1e3, 6) for ms in percentiles)])
    return lines


def cumulative(document):
    """Returns about a hundred points of the cumulative latency over latency."""
    latencies, total, points = sorted(answered(document)), 0.0, []
    for number, value in enumerate(latencies, start=1):
        total += value
        if number % max(1, len(latencies) // 100) == 0 or number == len(latencies):
            points.append([round(value, 3), round(total, 1)])
    return points


def gap_lengths(document):
    """Counts the gaps of all CPUs by length, in powers of two in microseconds."""
    counts = {}
    for latency in (one for run in document["runs"] for events in run["classes"] for one in events["latencies_ns"]):
        shortest = 1 << max(0, (latency // 1000).bit_length() - 1)
        counts[shortest] = counts.get(shortest, 0) + 1
    return sorted([shortest, count] for shortest, count in counts.items())


def elapsed(document):
    seconds = {(row["arm"], row["beside"]): row["median_s"] for row in document["rows"]}
    return {arm: [seconds.get((arm, beside)) for beside in ("nothing", "build", "synthetic")] for arm in ("unmanaged", "managed")}


CHARTS = (
    Chart("memory.svg", "Page-ins beside writers", "§4.1.1, §4.1.2, figure 4", "memory", histograms("no children", "1 child", "4 children", "8 children"), memory),
    Chart("remedies.svg", "Page-ins beside page-outs on a slow disk, with each remedy", "§4.1.1, §4.1.2, figure 4", "vm-slowdisk",
          lambda document: {name.rpartition(" ")[2]: buckets for name, buckets in document["histograms"].items() if name.startswith("load ")}, remedies),
    Chart("fork.svg", "Beside newborn processes", "§4.2.1", "fork", histograms("hog", "fork", "wide", "nice"),
          lambda kept: bars("section 4.2.1, from its text", PAPERS["newborn"], kept, INTERVAL_AXIS)),
    Chart("timer.svg", "Times between wake-ups", "§3.2, tables 1 to 3", "timer",
          lambda document: {row["mechanism"]: row["histogram_100us"] for row in document["mechanisms"] if row["mechanism"] in ("absolute", "relative", "poll")}, timer),
    Chart("idle.svg", "An idle system", "§2.5, §2.6, figures 3 and 4", "idle", gap_lengths, lambda kept: bars(
        "section 2.5, from its text", PAPERS["clock"], {"gaps": kept}, "length of a gap of the idle loop, µs", "number in 30 s", "here, all CPUs")),
    Chart("editor.svg", "Plain-text editing", "§5, figure 7", "task-editor", cumulative, notepad),
    Chart("writer.svg", "Word processing: events above a threshold", "§5, table 2", "task-writer",
          lambda document: [[row["threshold_ms"], row["n"]] for row in document["inter_arrival"] if row["n"]], lambda kept: bars(
              "table 2", PAPERS["inter_arrival"], {"events of the middle repeat": kept}, "threshold, ms", "events above", x_log=False)),
    Chart("impress.svg", "A presentation", "§5, table 1", "task-impress", cumulative, powerpoint),
    Chart("typing.svg", "Typing beside a load", "§5.2, figure 2", "typing", by_level, levels(PAPERS["typing"], "delay, s")),
    Chart("scroll.svg", "Scrolling beside a load", "§5.3, figure 2", "scroll", by_level, levels(PAPERS["scrolling"], "time, s")),
    Chart("system.svg", "The system test", "§5.4, table 1", "system", elapsed, system),
)
