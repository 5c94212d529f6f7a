# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measurements of the manager in a guest with cgroup v2 and little memory.

Each measurement has a time limit, and its figures are stored at once, next to the document with the latest ones of each.
"""

import contextlib
import dataclasses
import datetime
import json
import os
import re
import subprocess
import threading
import time
import tomllib
import typing

from shared import programs
from shared.machine import commit, processor

from . import judge_others, places
from . import measure_judge as judge
from .guests import SERIES
from .machine import Failed
from .places import CannotRun, cache, say

# Memory of the guest, low enough for a load to exceed it.
MEMORY_MIB = 768
# Preparation: pages recently read or swapped in would otherwise stay longest, and little would be evicted.
FORGET = "sync; echo 3 >/proc/sys/vm/drop_caches; swapoff -a; swapon -a"
# Time for a command in the guest to terminate after its time limit, in seconds.
GRACE_S = 30
# Time limit of the warm-up, in seconds.
WARM_UP_MAX_S = 90
OLDEST, *_, NEWEST = SERIES
TABLE = tomllib.loads(places.HERE.joinpath("measurements.toml").read_text())
WORDS = TABLE.pop("words")
RESULT = WORDS["result"]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A command in the guest that writes a JSON document, its repeats, and the judge of the documents."""

    name: str
    title: str
    seconds: int
    command: str
    judged: typing.Callable
    repeats: int = 1
    scheduler: str = "none"
    kernel: str = NEWEST
    # Other measurement for `tipme compare`.
    against: str = None

    @property
    def names(self):
        """Returns its own name, and the one without the kernel."""
        return {self.name, self.name.removesuffix(f"-{self.kernel}")}

    @property
    def document(self):
        """Returns the path of its last complete document."""
        return cache() / "measured" / f"{self.name}-document.json"


def expanded(words):
    """Expands the placeholders of a command, which may be nested."""
    while (more := re.sub(r"\{(\w+)\}", lambda found: WORDS[found[1]], words)) != words:
        words = more
    return words


def of_row(name, row):
    """Returns the measurement of a row of the table, or one for each kernel."""
    row = row | {"judged": vars(judge_others).get(called := row.get("judged", name)) or vars(judge)[called], "command": expanded(row["command"])}
    if not row.pop("kernels", False):
        return [Measurement(name, **row)]
    against, title = row.pop("against", False), row.pop("title")
    return [Measurement(f"{name}-{series}", f"{title}, kernel {series}", kernel=series, **row,
                        against=f"{name}-{OLDEST}" if against and series != OLDEST else None) for series in SERIES]


MEASUREMENTS = [one for name, row in TABLE.items() for one in of_row(name, row)]


def measure(machine, wanted, folder, publish, tipme):
    """Runs measurements in a guest with their kernel, stores figures in `folder`, and passes all of them to `publish` after each.

    Returns the number of bars that were missed or could not be measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    warm_up(machine)
    missed = 0
    for one in wanted:
        figures = taken(machine, one, tipme)
        kept = folder / f"{one.name}.json"
        # A failure does not replace earlier figures.
        if figures["rows"] or not kept.exists():
            kept.write_text(json.dumps(figures, indent=1) + "\n")
        missed += sum(not bar["met"] for bar in figures["bars"])
        publish(latest(folder))
    return missed


def chosen(only, kernel=None):
    """Returns the measurements with these comma-separated names, or all; with `kernel`, only those for it."""
    there = [one for one in MEASUREMENTS if kernel in (None, one.kernel)]
    names = set(only.split(",")) if only else {one.name for one in there}
    unknown = ", ".join(sorted(names.difference(*(one.names for one in there))))
    if unknown or not there:
        raise CannotRun(f"no such measurement: {unknown or kernel}; there are {', '.join(one.name for one in there)}")
    return [one for one in there if one.names & names]


def warm_up(machine):
    """Opens a display once, since the first one takes long to load fonts. Its failure is ignored."""
    with contextlib.suppress(Failed, subprocess.TimeoutExpired):
        machine.run("tipme bench typing --load 0 --keys 1 --blocks 1", WARM_UP_MAX_S)


def taken(machine, one, tipme):
    """Returns the figures of a measurement, or the reason why there are none."""
    begin, load = time.monotonic(), os.getloadavg()[0]
    say(f"{one.name}: {one.repeats} times {one.seconds} s at most")
    try:
        figures = one.judged(*(document(machine, one) for _ in range(one.repeats))) | compared(tipme, one)
    except (Failed, CannotRun, subprocess.TimeoutExpired, ArithmeticError, LookupError, StopIteration, TypeError, ValueError) as error:
        figures = {"rows": [], "bars": [judge.bar("could be measured", False, f"{type(error).__name__}: {error}")]}
    for row in figures["bars"]:
        say(f"{'ok' if row['met'] else 'MISSED':7} {one.name}: {row['bar']}: {row['seen']}")
    when = datetime.datetime.now(datetime.timezone.utc).isoformat(" ", "minutes")[:16]
    busy = (load + os.getloadavg()[0]) / 2
    return figures | {"title": one.title, "when": when, "took_s": time.monotonic() - begin, "host": processor(),
                      "commit": commit(), "host_load": busy, "release": machine.kernel.release}  # fmt: skip


def document(machine, one):
    """Runs the command, prints its output, and returns its document."""
    machine.run(f"rm -f {RESULT}; {FORGET}; echo {one.scheduler} >/sys/block/vdc/queue/scheduler", 120)
    remote = [*machine.shell(), f"timeout -k {GRACE_S} {one.seconds} {one.command}"]
    job = subprocess.Popen(remote, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Needed if the guest itself hangs.
    bound = threading.Timer(one.seconds + 2 * GRACE_S, job.kill)
    bound.start()
    said = []
    try:
        for line in job.stdout:
            said = [*said[-20:], line.rstrip()]
            say(f"        {line.rstrip()}")
        code = job.wait()
    finally:
        bound.cancel()
        job.kill()
    if code != 0:
        raise Failed(f"code {code} after {one.seconds} s at most: {' / '.join(said[-3:])}")
    one.document.parent.mkdir(exist_ok=True)
    one.document.write_text(machine.run(f"cat {RESULT}"))
    return json.loads(one.document.read_text())


def compared(tipme, one):
    """Returns the difference from the other measurement by `tipme compare`, if that has a document."""
    for other in MEASUREMENTS:
        if other.name == one.against and other.document.exists():
            difference = programs.document(tipme, "compare", other.document, one.document)
            return {"notes": judge.compared(difference, one.kernel, other.kernel)}
    return {}


def latest(folder):
    """Returns the latest figures of each measurement, in order."""
    paths = (folder / f"{one.name}.json" for one in MEASUREMENTS)
    return [json.loads(path.read_text()) for path in paths if path.exists()]
