# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/papers.md and its charts, from what is kept of the runs."""

import re

from . import charts, store
from .agreement import SPEED_SHARE, agreement, compared, earlier, interval, measured, value_of
from .measurements import BY_NAME
from .rows import PAPERS, ROWS

DOCUMENT = store.ROOT / "docs/papers.md"
# Rows below which the notes of their measurements stand; others share those measurements.
NOTED = ("E8", "S8")
# Rows below which the plots of their measurements are linked.
PLOTTED = ("E7",)
HEAD = f"""# The papers, row by row

Written by `make papers`, which measures the rows and keeps the figures of the last runs of each in
[results/papers](results/papers); `make papers ROWS="J1 E6"` measures single rows, `make papers MEASURE=no` writes this document
again from what is kept. Commands are those of `tipme`. The papers: their sections, figures and tables are named in each row.

A figure's *interval* is how far two runs may be apart: a share of the larger one, or so much of its unit, of percentages in points. *All runs* are
the least and the largest value of all runs that are kept (at most {store.RUNS_MAX}), on any machine, and how many they are. Compared are those on the
class of machine of the last one: the same CPU and kernel by name (of a guest its own kernel and the CPU of its host), and, where both tell it, a fixed
piece of work that takes as long but for {100 * SPEED_SHARE:.0f} %. Where all of these are of one day, the newest run of another day is compared too,
on whatever machine it was.

- *agrees*: all of these lie within the interval of each other, and are of two days at least (UTC, by their begin);
- **FLAGGED**: two of these do not, be it of one day or on two machines; below the table stands what the machine had to do beside each of them, and how fast it was;
- *nothing to tell apart*: they do, but are so small that the interval reaches down to nothing, so it could not fail;
- *one day so far*: they do, and are of one day;
- *not measured this time*: the last run does not have the figure;
- *nothing to measure*: it cannot have it, since there was too little of what the figure is about.

What another script measures is taken up from the file that it writes. A commit with `-dirty` is one from which the program's own tree differed.

"""


def value(figure, number):
    return "-" if number is None else f"{number:,.{figure.digits}f} {figure.unit}".strip()


def shown(figure):
    """The last run, and the newest before it that has the figure, of another day; None where there is none."""
    runs = store.runs(figure.measurement)
    known, last = measured(figure, runs), (runs or [None])[-1]
    return last, earlier(figure, runs) if last in known else (known or [None])[-1]


def command(measurement):
    """As a person types it: the manager weighs only sessions that begin below the benchmark, which therefore has one of its own."""
    if measurement.file:
        return f"`{measurement.written_by}`"
    session = ["setsid", "-w"] if "--managed" in measurement.command else []
    return "`" + " ".join([*session, measurement.program, *measurement.command]).format(json="FILE", svg="DIR") + "`"


def origin(runs):
    """When, by which commit, where and beside what the runs were."""
    return "; before: ".join(f"{run['date']}, {run['commit']}, {short(run['machine'])}{load_words(run)}" for run in runs) or "not measured yet"


def short(machine):
    """CPU and kernel, and whether it was a guest: its host's CPU then, and its own kernel."""
    parts = machine.split(", ")
    return ", ".join([parts[0], *(["guest"] if " guest of " in machine else []), parts[-1]])


def load_words(run):
    load = run["load_average"]
    return f", load {load[0]:.1f}" if load else ""


def figure_row(row, figure):
    runs = [run for run in shown(figure) if run]
    now, before = [*(value(figure, value_of(figure, run)) for run in runs), "", ""][:2]
    word = state_of(figure)
    told = {"FLAGGED": "**FLAGGED**", "agrees": f"agrees ({interval(figure)})", "nothing to tell apart": f"within {interval(figure)}: nothing to tell apart"}
    return f"| {row.id} | {figure.name} | {figure.paper} | {now or '-'} | {before} | {spread(figure)} | {told.get(word, word)} | {command(BY_NAME[figure.measurement])} | {origin(runs)} |"


def state_of(figure):
    """How the runs lie to each other; where the last one cannot have the figure, why."""
    runs = store.runs(figure.measurement)
    return lacking(figure, runs[-1:]) or agreement(figure, runs)


def lacking(figure, last):
    """Why the last run cannot have a figure: there was too little of what it is about."""
    name, least = figure.needs or (None, 0)
    had = last[0]["figures"].get(name) if last and value_of(figure, last[0]) is None else None
    return f"nothing to measure: it takes {least}, there were {had:g}" if had is not None and had < least else None


def flagged(figure):
    return state_of(figure) == "FLAGGED"


def spread(figure):
    """The least and the largest value of all runs that are kept, on any machine, and how many they are."""
    values = [value_of(figure, run) for run in measured(figure, store.runs(figure.measurement))]
    ends = dict.fromkeys(f"{end:,.{figure.digits}f}" for end in (min(values), max(values))) if values else ()
    return f"{' to '.join(ends)} ({len(values)})" if values else ""


def beside(figure):
    """What the machine had to do beside the runs that are compared, and how fast it was."""
    runs = compared(figure, store.runs(figure.measurement))
    several = len({run["machine"] for run in runs}) > 1
    return "; ".join(f"{run['date']}{', ' + short(run['machine']) if several else ''}: {state(run)}" for run in runs)


def state(run):
    """The run's conditions, as far as its script tells them."""
    told = {"load average": ("load_average", lambda load: f"{load[0]:.1f}"), "steal": ("steal_percent", percent),
            "whole run": ("took_s", lambda took: f"{took:.0f} s"), "a fixed piece of work": ("work_ms", lambda work: f"{work:.0f} ms"),
            "speed of the guest:": ("speed", str)}
    words = [f"{name} {tell(run[key])}" for name, (key, tell) in told.items() if run.get(key) is not None]
    return ", ".join(words) or "its conditions are not told"


def percent(number):
    return f"{number:.1f} %"


def causes(row):
    """Beside what figures are flagged, by what the runs themselves tell."""
    told = [f"Flagged, {command(BY_NAME[figure.measurement])}: {beside(figure)}." for figure in row.figures if flagged(figure)]
    return list(dict.fromkeys(told))


def test_words(row):
    names = [f"`{test.rpartition('::')[2]}` ({test.partition('::')[0]})" for test in row.tests]
    return ["Tests: " + "; ".join(names) + "."] if names else []


def bar_words(figure):
    """Whether the last run kept the bar, and why not, as the measurement itself says."""
    run = store.runs(figure.measurement)[-1:]
    number = value_of(figure, run[0]) if run else None
    limit, side = (figure.bar, "most") if figure.floor is None else (figure.floor, "least")
    name = f"{figure.name}, bar {limit:g} {figure.unit}".rstrip() + f" at {side}"
    if number is None:
        return f"{name}: not measured."
    met = number <= limit if figure.floor is None else number >= limit
    cause = "" if met else f". Cause, as the measurement tells it: {run[0].get('notes', 'none')}. Meanwhile: {state(run[0])}"
    return f"{name}: {'met' if met else '**MISSED**'}, {value(figure, number)}{cause}."


def missed_in_guest(name):
    """The bars that a measurement of the test bed missed, with what it tells of them; what it could not show is told there."""
    measurement = BY_NAME[name]
    document = store.of_file(measurement)[0] if measurement.guest and store.is_written(measurement) else {"bars": []}
    return [f"{document['title']}, {bar['bar']}: **MISSED**, {bar['seen']}." for bar in document["bars"] if not (bar["met"] or bar.get("unclear"))]


def plot_words(name):
    """Where the plots of the last run are."""
    measurement = BY_NAME[name]
    paths = [store.plot_path(measurement, plot) for plot in measurement.plots]
    links = [f"[{path.stem.removeprefix(name + '-').replace('-', ' ')}](results/papers/{path.name})" for path in paths if path.is_file()]
    return [f"Plots of {name.removeprefix('task-')}, all repeats: {', '.join(links)}."] if links else []


def note_words(name):
    """What the last run told besides its figures: why the repeats of a task differ, what a comparison comes to."""
    last = store.runs(name)[-1:]
    return [f"{name.removeprefix('task-')}: {run['notes']}" for run in last if run.get("notes")]


def row_text(row):
    """The part of a row below the table."""
    names = dict.fromkeys(figure.measurement for figure in row.figures)
    told = [word for name in names for word in note_words(name)] if row.id in NOTED else []
    told += [word for name in names for word in plot_words(name)] if row.id in PLOTTED else []
    told += [bar_words(figure) for figure in row.figures if (figure.bar, figure.floor) != (None, None)]
    told += [word for name in names for word in missed_in_guest(name)]
    words = [row.words] if row.words else []
    words += test_words(row) + causes(row) + told
    pictures = [f"![{chart.title}](results/papers/{chart.file})" for chart in row.charts if (store.RESULTS / chart.file).is_file()]
    body = "\n".join(f"- {word}" for word in words)
    return "\n\n".join([f"**{row.id}, {row.feature}** ({row.source}).", *[part for part in (body, *pictures) if part]]) + "\n"


def conditions():
    """The line that a table of figures stands behind: when, which commit, which machine, by what."""
    runs = [run for measurement in BY_NAME.values() if measurement.command for run in store.runs(measurement.name)[-1:]]
    if not runs:
        return "Nothing is measured yet: `make papers`."
    dates, commits, machines = ({run[key][:length] for run in runs} for key, length in (("date", 10), ("commit", None), ("machine", None)))
    loads = sorted(run["load_average"][0] for run in runs)
    middle = loads[len(loads) // 2]
    return (f"{' to '.join(sorted({min(dates), max(dates)}))}, commit {', commit '.join(sorted(commits))}, {'; '.join(sorted(machines))}; load average while "
            f"measuring {loads[0]:.1f} to {loads[-1]:.1f}, {middle:.1f} in the middle; written by `make papers`.")


def paper_text(title, rows):
    table = ["| row | figure | paper | here | on a day before | all runs | days | command | when, commit, machine, load |", "|---|---|---|---|---|---|---|---|---|"]
    table += [figure_row(row, figure) for row in rows for figure in row.figures]
    return f"## {title}\n\n{conditions()}\n\n" + "\n".join(table) + "\n\n" + "\n".join(row_text(row) for row in rows) + "\n"


def summary():
    """How many of the figures agree."""
    words = [state_of(figure).partition(":")[0] for row in ROWS for figure in row.figures]
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    return "Of all figures: " + ", ".join(f"{count} {word}" for word, count in counts.items()) + ".\n\n"


def text():
    return HEAD + summary() + "\n".join(paper_text(title, rows) for title, rows in PAPERS).rstrip() + "\n"


def drawn(chart):
    """What a chart is drawn from: what is kept of the last run, when and by which commit, and where beside what load."""
    run, measurement = store.runs(chart.measurement)[-1], BY_NAME[chart.measurement]
    of_whom = " of the host" if measurement.guest else ""
    return run["charts"][chart.file], f"{run['date'][:10]}, commit {run['commit']}", f"{run['machine']}, load average{of_whom} {run['load_average'][0]:.1f}"


def draw():
    """The charts of the last runs."""
    for row in ROWS:
        for chart in row.charts:
            if store.runs(chart.measurement):
                kept, when, where = drawn(chart)
                footer = [f"Paper: {row.source}. Here: {when},", where]
                (store.RESULTS / chart.file).write_text(charts.svg(chart.title, chart.panels(kept), footer))


def missing_tests():
    """Tests that rows name and that are not there."""
    found = []
    for row in ROWS:
        for test in row.tests:
            path, _, name = test.partition("::")
            file = store.ROOT / path
            if not file.is_file() or not re.search(rf"^\s*fn {name}\(", file.read_text(), re.M):
                found.append(f"{row.id}: {test}")
    return found


def write():
    draw()
    DOCUMENT.write_text(text())
