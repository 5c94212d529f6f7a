# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables, charts and appendix of docs/papers, from the stored runs."""

import re

from . import charts, store
from .figures import FIGURES, MEASUREMENTS
from .published import CHARTS

DOCUMENTS, APPENDIX = sorted((store.ROOT / "docs/papers").glob("*.md")), store.ROOT / "docs/results/papers.md"
PLACE = re.compile(r"(<!-- figures (\w+) -->\n)(?:\|.*\n)*(?=\n)")
RUNS = re.compile(r"(<!-- runs -->\n).*\n")
HEAD = """# The papers: absolute times, and the last run of each measurement

Written by `make papers`, like the tables of [the papers](../papers/README.md), which have ratios and bars. Times and sizes
depend on the machine in the line above them. *All runs*: smallest and largest value of the kept runs on any machine, and their
number.
"""


def spread(figure):
    """Returns minimum, maximum and number of the values of all stored runs."""
    values = [run["figures"][figure.name] for run in store.runs(figure.measurement) if run["figures"].get(figure.name) is not None]
    ends = dict.fromkeys(figure.shown(end, unit=False) for end in (min(values), max(values))) if values else ()
    return f"{' to '.join(ends)} ({len(values)})" if values else ""


def last(figure):
    return next((run["figures"].get(figure.name) for run in store.runs(figure.measurement)[-1:]), None)


def here(figure):
    """Returns the value of the last run, with the bar that it meets or misses."""
    value = last(figure)
    met = "**MISSED**" if figure.misses(value) else "met"
    return figure.shown(value) + (f" (bar {figure.bar}: {met})" if figure.bar and value is not None else "")


def row_table(row):
    """Returns the table below a row."""
    lines = ["| figure | paper | here | all runs | measured by |", "|---|---|---|---|---|"]
    lines += [f"| {one.name} | {one.paper} | {here(one)} | {spread(one)} | `{one.measurement}` |"
              for one in FIGURES if one.row == row and not one.is_absolute]
    return "".join(f"{line}\n" for line in lines)


def conditions(rows):
    """Returns date, commits and machines of the last runs behind these rows."""
    names = {one.measurement for one in FIGURES if one.row in rows and not one.is_absolute}
    last_runs = [run for name in MEASUREMENTS if name in names for run in store.runs(name)[-1:]]
    days, commits, machines = (sorted({run[key][:length] for run in last_runs}) for key, length in (("date", 10), ("commit", 8), ("machine", None)))
    return f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, commit {', '.join(commits)}; {'; '.join(machines)}.\n"


def text(document):
    """Returns a page with its tables filled in."""
    filled = PLACE.sub(lambda place: place[1] + row_table(place[2]), document.read_text())
    rows = {row for _, row in PLACE.findall(filled)}
    return RUNS.sub(lambda place: place[1] + conditions(rows), filled)


def part(name):
    """Returns the appendix on one measurement."""
    runs, figures = store.runs(name), [one for one in FIGURES if one.measurement == name and one.is_absolute]
    where = [f"{run['date']}, commit {run['commit']}, {run['machine']}" + (f", load average {run['load']:.1f}" if run.get("load") is not None else "") + "."
             for run in runs[-1:]] or ["Not measured yet."]
    notes = [f"Noted: {run['notes']}." for run in runs[-1:] if run.get("notes")]
    rows = [f"| {one.row} | {one.name} | {one.paper} | {here(one)} | {spread(one)} |" for one in figures]
    table = "\n".join(["| row | figure | paper | here | all runs |", "|---|---|---|---|---|", *rows])
    return "\n\n".join([f"## {name}", f"`{MEASUREMENTS[name].command}`: " + where[0], *notes, *([table] if rows else [])]) + "\n"


def appendix():
    return "\n".join([HEAD, *(part(name) for name in MEASUREMENTS)])


def draw():
    """Draws the charts of the last runs."""
    for chart in CHARTS:
        kept = store.kept(chart.measurement)
        if chart.file in kept["charts"]:
            run = kept["runs"][-1]
            footer = [f"Paper: {chart.source}. Here: {run['date'][:10]}, commit {run['commit']},", run["machine"]]
            (store.RESULTS / chart.file).write_text(charts.svg(chart.title, chart.panels(kept["charts"][chart.file]), footer))


def missing_tests(words):
    """Returns missing tests that a document names: `name` (path)."""
    for name, path in re.findall(r"`(\w+)`\s\((\S+\.rs)\)", words):
        file = store.ROOT / path
        if not file.is_file() or not re.search(rf"^\s*fn {name}\(", file.read_text(), re.M):
            yield f"no such test: {path}::{name}"


def faults():
    """Returns the problems of the documents, a line each."""
    missing = [fault for document in DOCUMENTS for fault in missing_tests(document.read_text())]
    stale = APPENDIX.read_text() != appendix() or any(document.read_text() != text(document) for document in DOCUMENTS)
    return [*missing, *(["docs/papers is behind: make papers MEASURE=no"] if stale else [])]


def write():
    draw()
    for document in DOCUMENTS:
        document.write_text(text(document))
    APPENDIX.write_text(appendix())
