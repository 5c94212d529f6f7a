# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was measured: the last runs of each measurement, as small JSON files below docs/results/papers."""

import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "docs/results/papers"
# Runs of a measurement that are kept: what was seen once is to be compared with for a while.
RUNS_MAX = 12
# A fixed piece of work is so many rounds of Python's own loop; the quickest of so many tells how fast the machine is.
WORK_ROUNDS, WORK_TRIES = 1_000_000, 5
# The next measurement begins where the load average is no more than this, or after so many seconds: it falls to a third in a minute.
QUIET_LOAD, QUIET_WITHIN_S = 1.0, 150
# A measurement may take so many times its time, and so many seconds more, on a busy machine.
SLOWER, SPARE_S = 4, 180


class CannotMeasure(Exception):
    pass


def runs(name):
    """What is kept of a measurement, the oldest first."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["runs"] if path.is_file() else []


def keep(name, run):
    """Adds a run, in the order of time; what charts are drawn from is kept of the last one only."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = sorted([*runs(name), run], key=lambda one: one["date"])[-RUNS_MAX:]
    kept = [*({**one, "charts": {}} for one in kept[:-1]), kept[-1]]
    path = RESULTS / f"{name}.json"
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"measurement": name, "runs": kept}, indent=1, ensure_ascii=False) + "\n")
    beside.rename(path)


def is_fresh(name, minutes):
    """Whether the last run is of this commit and of the last so many minutes: a run that was broken off goes on there."""
    last = runs(name)[-1:]
    return any(run["commit"] == commit() and time.time() - run["unix_s"] < 60 * minutes for run in last)


# What the program is built from.
PROGRAM = ("crates", "Cargo.toml", "Cargo.lock")


def commit():
    """The commit, with `-dirty` where the program's own tree differs from it."""
    short = git("rev-parse", "--short", "HEAD").strip() or "unknown"
    return short + ("-dirty" if git("status", "--porcelain", "--", *PROGRAM).strip() else "")


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout


def machine():
    """As the figures of all documents name it."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"model name\s*: (.*)", info)
    kind = "virtual machine" if " hypervisor" in info else "no hypervisor"
    return f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} CPUs, {kind}, Linux {platform.release()}"


def work_ms():
    """How long a fixed piece of work takes: virtual machines of one name differ in speed."""
    tries = []
    for _ in range(WORK_TRIES):
        begun = time.perf_counter()
        sum(number * number for number in range(WORK_ROUNDS))
        tries.append(1e3 * (time.perf_counter() - begun))
    return round(min(tries), 1)


def conditions(document, begun, by):
    """When, by which commit, where, and what else the machine had to do."""
    told = document.get("machine", {})
    load = told.get("load_average") or os.getloadavg()
    return {
        "date": datetime.datetime.fromtimestamp(begun, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "unix_s": int(begun),
        "commit": by,
        "machine": machine(),
        "load_average": [round(value, 2) for value in load],
        "steal_percent": told.get("steal_percent"),
        "took_s": round(time.time() - begun, 1),
        "work_ms": work_ms(),
    }


def settle():
    """Waits until what ran before has left the load average, which tells then of what runs beside."""
    until = time.monotonic() + QUIET_WITHIN_S
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < until:
        time.sleep(1)


def measure(tipme, measurement):
    """Runs the command, and returns its document and the conditions."""
    begun, by = time.time(), commit()
    with tempfile.TemporaryDirectory(prefix="tipme-papers-") as folder:
        path, plots = pathlib.Path(folder) / "result.json", pathlib.Path(folder) / "plots"
        begin = [str(tipme)] if measurement.program == "tipme" else [str(ROOT / measurement.program), "--tipme", str(tipme)]
        words = [*begin, *(word.format(json=path, svg=plots) for word in measurement.command)]
        code, said = run(words, SLOWER * measurement.takes_s + SPARE_S)
        # A document may say of itself that it could not be judged: code 2.
        if code not in (0, 1, 2) or not path.is_file():
            raise CannotMeasure(f"{' '.join(words)}: {said.strip()[-600:]}")
        document = json.loads(path.read_text())
        for plot in measurement.plots:
            shutil.copyfile(plots / plot, plot_path(measurement, plot))
    return document, conditions(document, begun, by)


def plot_path(measurement, plot):
    return RESULTS / f"{measurement.name}-{plot}"


def run(words, limit):
    """Its exit code and what it said. It ends by itself where it takes too long or is interrupted, and puts everything back.

    In a session of its own: the manager weighs a session only where its leader is below the benchmark.
    """
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=SPARE_S)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise CannotMeasure(f"{' '.join(words)}: not done within {limit} s") from error
    return process.returncode, said


def is_written(measurement):
    """Whether it is one of another script, which has written its result."""
    return bool(measurement.file) and (ROOT / measurement.file).is_file()


def of_file(measurement):
    """The document of a result that another script wrote, and its conditions as far as that script tells them."""
    text = (ROOT / measurement.file).read_text()
    document = measurement.read(text) if measurement.read else json.loads(text)
    load = document.get("host_load")
    return document, {
        "date": document["when"][:16],
        "commit": document["commit"],
        "machine": f"{document['host']}, {measurement.guest}, Linux {document['release']}" if measurement.guest else document["machine"],
        "load_average": None if load is None else [load],
        "took_s": document.get("took_s"),
        "work_ms": document.get("work_ms"),
        **({"speed": measurement.speed(document)} if measurement.speed else {}),
    }


def is_kept(name, conditions):
    """Whether the run of these conditions is kept already, or is older than one that is: a file that nobody has rewritten."""
    return any(run["date"] > conditions["date"] or (run["date"], run["commit"]) == (conditions["date"], conditions["commit"]) for run in runs(name))
