# SPDX-License-Identifier: MIT OR Apache-2.0
"""The papers' own numbers, where their text or tables give them, and the panels that stand beside ours."""

# Jones and Regehr 1999, table 2 (and 3): from so many microseconds, how many times between callbacks; a Pentium Pro and a Pentium 2.
TIMER = {
    "PPro, NT4": {0: 34, 100: 1, 500: 4, 600: 6, 700: 22, 800: 150, 900: 571, 1000: 9014, 1100: 161, 1200: 28, 1300: 6, 1400: 1, 2300: 2},
    "PPro, NT5": {0: 62, 300: 1, 500: 2, 600: 1, 800: 10, 900: 1281, 1000: 8627, 1100: 10, 1200: 1, 1300: 1, 1400: 1, 7700: 2, 18100: 1},
    "P2, NT4": {0: 4880, 1700: 2, 1800: 9, 1900: 5107, 2100: 2},
    "P2, NT5": {0: 4880, 1400: 2, 1700: 5, 1800: 91, 1900: 5014, 2000: 4, 2100: 2, 2300: 2},
    "P2, NT5 fixed": {0: 1, 500: 1, 600: 3, 700: 2, 800: 7, 900: 9609, 1000: 127, 1100: 4, 1200: 2, 1300: 2, 1400: 2, 1900: 240},
}
# Evans et al. 1993, table 1: elapsed seconds beside nothing, a build, a heavy synthetic load.
SYSTEM = {"control": [50, 89, 789], "with the prototype": [49, 56, 96]}
# Endo et al. 1996, table 2: threshold in milliseconds, events above it, seconds between them on average.
INTERARRIVAL = [(100, 101, 3.1), (110, 26, 12.4), (120, 8, 41.1)]
# The same, table 1: seconds under Windows NT 3.51 and 4.0.
POWERPOINT = {"save": (8.082, 9.580), "start": (7.166, 5.773), "first chart": (7.050, 5.844), "open": (5.680, 4.151), "second chart": (2.897, 2.009),
              "third chart": (2.697, 1.305)}
# Endo and Seltzer 2000, figure 4, as its text tells it: of 10,000 stamps about 100 ms apart two were over a second before, the longest over 8 s; 0.37 s after.
PAGEINS = {"before": [(100, 9998), (1000, 1), (8000, 1)], "after both remedies": [(100, 9999), (370, 1)]}
# Evans et al. 1993, figure 2: a plot of letters, whose blanks are lost. The rows of the letters are seconds, half-way between two ticks where there is none;
# their order is that of the load, from 0 to 20.
TYPING = {"control": [0.1, 0.3, 1, 3, 10, 10, 10, 10], "prototype: below 0.1 s": 12 * [0.05]}
SCROLLING = {"prototype": 7 * [15] + 16 * [12.5]}
LOAD_MOST = 20
# Endo et al. 1996, figure 7, as its text tells it: milliseconds, and the share of the cumulative latency that is due to events up to these.
NOTEPAD = [(10, 80), (28, 80)]
# The same, section 2.5: a clock interrupt every 10 ms, of which the smallest takes 4 µs; as many as that are in the time of our run.
CLOCK = [(4, 3000)]


def bars(title, series, x, y="number", marks=(), x_log=False):
    return {"title": title, "series": series, "x": x, "y": y, "y_log": True, "x_log": x_log, "marks": marks}


def timer(kept):
    """Table 2 beside the same bins here: a timer that follows its deadlines, and one that sleeps after each wake-up."""
    paper = [(name, sorted((x + 50, count) for x, count in bins.items())) for name, bins in TIMER.items()]
    ours = [(name, [(x + 50, count) for x, count in bins]) for name, bins in kept.items()]
    axis = "µs between two wake-ups, bins of 100 µs"
    return [bars("paper, tables 2 and 3", paper, axis, x_log=True), bars("here", ours, axis, x_log=True)]


def pageins():
    """Figure 4 as far as the paper's text gives it."""
    return bars("paper, figure 4, as its text tells it", list(PAGEINS.items()), "ms from one page to the next, buckets of 10 ms", x_log=True)


def memory(kept):
    """Figure 4 beside ours."""
    ours = [(name, points) for name, points in kept.items()]
    return [pageins(), bars("here", ours, "ms from one page to the next, buckets of 10 ms", x_log=True)]


def remedies(kept):
    """The same figure, before and after each remedy."""
    marks = [("x", 8000, "paper, before: over 8 s"), ("x", 370, "paper, after: 0.37 s")]
    names = {"unmanaged": "before", "managed": "after: the manager", "idle-io": "after: idle I/O class", "limit": "after: limit of memory"}
    titles = {arm: words for arm, words in names.items() if arm in kept}
    ours = [bars(words, [(words, [(x + 5, count) for x, count in kept[arm]])], "ms waited for pages, buckets of 10 ms", marks=marks, x_log=True)
            for arm, words in titles.items()]
    return [pageins(), *ours]


def fork(kept):
    """Section 4.2.1: ten thousand intervals, all of 60 ms beside one old hog, up to 561 ms beside newborn ones."""
    paper = [("old hog", [(60, 10000)]), ("newborn hogs: nearly 10 % over 150 ms, seven of 561 ms", [(60, 9000), (150, 993), (561, 7)])]
    ours = [(name, points) for name, points in kept.items()]
    axis = "ms from one stamp to the next, buckets of 10 ms"
    return [bars("paper, section 4.2.1, as its text tells it", paper, axis, x_log=True), bars("here", ours, axis, x_log=True)]


def levels(letters, what):
    def panels(kept):
        paper = [(name, [(LOAD_MOST * number / (len(values) - 1), value) for number, value in enumerate(values)]) for name, values in letters.items()]
        ours = [(name, [(level, p50) for level, p50, _ in sorted(points)]) for name, points in kept.items()]
        told = (("paper, figure 2: levels of the letters, at even loads", paper, "load average"), ("here, medians", ours, "runnable processes beside it"))
        return [{"title": title, "kind": "points", "series": series, "x": axis, "y": what, "y_log": True} for title, series, axis in told]

    return panels


def system(kept):
    places = ["beside nothing", "build", "heavy synthetic"]
    axis = f"1 {places[0]}, 2 {places[1]}, 3 {places[2]}"
    paper = [(name, list(zip((1, 2, 3), values))) for name, values in SYSTEM.items()]
    ours = [(name, list(zip((1, 2, 3), values))) for name, values in kept.items()]
    return [{"title": title, "kind": "points", "series": series, "x": axis, "y": "s", "y_log": True} for title, series in (("paper, table 1", paper), ("here", ours))]


def added(values):
    """Points of the cumulative latency over latency, in milliseconds."""
    values = sorted(values)
    return [(1e3 * value, 1e3 * sum(values[: number + 1])) for number, value in enumerate(values)]


def both(paper_title, paper, ours, y):
    told = ((paper_title, paper), ("here, all repeats together", [("cumulative latency", ours)]))
    return [{"title": title, "kind": "points", "series": series, "x": "latency, ms", "y": y, "x_log": True} for title, series in told]


def notepad(kept):
    """The cumulative latency of figure 7 in shares, since the text gives no more."""
    ours = [(latency, 100 * total / kept[-1][1]) for latency, total in kept]
    return both("paper, figure 7, as its text tells it", [("Notepad, at least", NOTEPAD)], ours, "% of the cumulative latency, by events up to that long")


def powerpoint(kept):
    """Table 1: the events over a second, of which most of the cumulative latency in figure 8 is."""
    paper = [(name, added([values[at] for values in POWERPOINT.values()])) for at, name in enumerate(("PowerPoint on NT 3.51", "NT 4.0"))]
    return both("paper, table 1: the events over a second alone", paper, kept, "cumulative latency, ms")


def interarrival(kept):
    """Table 2 beside the same thing here: how many events are above a threshold."""
    paper = [("Word on Windows NT 3.51", [(threshold, count) for threshold, count, _ in INTERARRIVAL])]
    ours = [("events of the middle repeat", kept)]
    axis = "threshold, ms"
    return [bars("paper, table 2", paper, axis, "events above"), bars("here", ours, axis, "events above")]


def gaps(kept):
    """Figure 3: the paper's bursts come with each clock interrupt, every 10 ms; ours by their length."""
    told = (("paper, section 2.5, as its text tells it", [("the smallest clock interrupts of NT 4.0", CLOCK)]), ("here, all CPUs", [("gaps", kept)]))
    return [bars(title, series, "length of a gap of the idle loop, µs", "number in 30 s", x_log=True) for title, series in told]
