# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stored results: the last runs of each measurement, as small JSON files below
docs/results/papers."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from shared import CannotRun
from shared.machine import ROOT, commit_of_program, machine

from . import published
from .extract import evaluate
from .figures import FIGURES

RESULTS = ROOT / "docs/results/papers"
RUNS_MAX = 12
# Load average below which the next measurement begins, or the maximum wait in seconds.
QUIET_LOAD, QUIET_WITHIN_S = 1.0, 150
# Time limit on a busy machine: a multiple of the measurement's time, plus seconds.
SLOWER, SPARE_S = 4, 180
PLOTS = ("latency-profile.svg", "cumulative-by-count.svg", "histogram.svg")


def kept(name):
    """Returns the stored runs of a measurement, the oldest first, and the chart data of the last
    one."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else {"runs": [], "charts": {}}


def runs(name):
    return kept(name)["runs"]


def keep(name, document, where):
    """Stores the figures of a document, with its conditions."""
    run = where | {"figures": {one.name: evaluate(one.expression, document) for one in FIGURES if one.measurement == name}}
    if notes := document.get("notes"):
        run["notes"] = notes if isinstance(notes, str) else "; ".join(notes)
    charts = {chart.file: chart.keep(document) for chart in published.CHARTS if chart.measurement == name}
    lines = [json.dumps(one, ensure_ascii=False) for one in [*runs(name), run][-RUNS_MAX:]]
    text = '{"runs": [\n' + ",\n".join(lines) + '\n],\n"charts": ' + json.dumps(charts, ensure_ascii=False) + "}\n"
    RESULTS.mkdir(parents=True, exist_ok=True)
    beside = RESULTS / f"{name}.new"
    beside.write_text(text)
    beside.rename(RESULTS / f"{name}.json")


def is_fresh(name, minutes):
    """Returns True if the last run is recent and of this commit, so that an interrupted series
    continues behind it."""
    oldest = time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() - 60 * minutes))
    return any(run["commit"] == commit_of_program() and run["date"] >= oldest for run in runs(name)[-1:])


def settle():
    """Waits until the load of the previous run has ended."""
    until = time.monotonic() + QUIET_WITHIN_S
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < until:
        time.sleep(1)


def measure(tipme, measurement):
    """Runs the command; returns its document and the conditions."""
    where = {"date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "commit": commit_of_program(), "machine": machine()}
    with tempfile.TemporaryDirectory(prefix="tipme-papers-") as folder:
        path, plots = pathlib.Path(folder, "result.json"), pathlib.Path(folder, "plots")
        words = [{"FILE": path, "DIR": plots}.get(word, word) for word in measurement.command.removeprefix("setsid -w ").split()]
        words[:1] = [tipme] if words[0] == "tipme" else [ROOT / words[0], "--tipme", tipme]
        code, said = run([str(word) for word in words], SLOWER * measurement.takes_s + SPARE_S)
        # Codes 1 and 2 come with a document that misses its bars or reports itself unusable.
        if code not in (0, 1, 2) or not path.is_file():
            raise CannotRun(f"{' '.join(map(str, words))}: {said.strip()[-600:]}")
        document = json.loads(path.read_text())
        for plot in PLOTS if plots.is_dir() else ():
            shutil.copyfile(plots / plot, RESULTS / f"{measurement.name}-{plot}")
    load = document.get("machine", {}).get("load_average") or os.getloadavg()
    return document, where | {"load": round(load[0], 2)}


def run(words, limit):
    """Returns exit code and standard error of a command, which is terminated on a timeout or
    interrupt. It has a session of its own: the manager weights a session only if its leader is
    below the benchmark."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=SPARE_S)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise CannotRun(f"{' '.join(words)}: not done within {limit} s") from error
    return process.returncode, said


def overhead(text, title):
    """Parses a section of `make bench-recorder`'s document: its tables by first cell, its
    bullets, and its conditions."""
    part = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    bullets = dict(re.findall(r"^- (.*?): \**(-?[\d.]+)", part, re.M))
    head = re.search(r"(?P<when>\d{4}-\d\d-\d\d), commit (?P<commit>[\w-]+), (?P<machine>.*)\.\n", part).groupdict()
    load = re.search(r"Load average ([\d.]+) at the begin", part)
    return {"rows": {row[0]: row[1:] for row in cells}, "bullets": bullets, "host_load": load and float(load[1])} | head


SECTIONS = {"recorder": "Scheduler events", "compile": "A compile", "records": "Records and gestures"}


def written(measurement):
    """Returns the document of a `make` command, and its conditions; None if it is missing or not
    newer than the stored one."""
    path = ROOT / measurement.file
    if not path.is_file():
        return None
    text, title = path.read_text(), SECTIONS.get(measurement.name)
    document = overhead(text, title) if title else json.loads(text)
    guest = f"{document.get('host')}, guest of the test bed (emulated, 768 MiB), Linux {document.get('release')}"
    load = document.get("host_load")
    where = {"date": document["when"][:16], "commit": document["commit"], "machine": document.get("machine", guest), "load": load and round(load, 2)}
    known = any(one["date"] > where["date"] or (one["date"], one["commit"]) == (where["date"], where["commit"]) for one in runs(measurement.name))
    return None if known else (document, where)
