# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the manager is worth, measured in a guest with control groups of version 2 and little memory.

Each measurement has a bound, and its figures are kept when it ends: what comes after it cannot spoil them. They lie beside
the document, which has the latest of each, whichever machine they are from.
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

from shared.machine import commit, processor

from . import judge_others, places
from . import measure_judge as judge
from .guests import SERIES
from .machine import Failed
from .places import CannotRun, cache, say

# Memory of the guest: little, so that a load is soon larger than what is free.
MEMORY_MIB = 768
# Before each: what was read or came back from swap in the run before would be kept longest, and little would go.
FORGET = "sync; echo 3 >/proc/sys/vm/drop_caches; swapoff -a; swapon -a"
# A command in the guest is given so many seconds to end by itself after its bound.
GRACE_S = 30
# Before the first measurement, in seconds.
WARM_UP_MAX_S = 90
OLDEST, *_, NEWEST = SERIES
TABLE = tomllib.loads(places.HERE.joinpath("measurements.toml").read_text())
WORDS = TABLE.pop("words")
RESULT = WORDS["result"]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A command in the guest that leaves a JSON document, run so often, and what is made of the documents."""

    name: str
    title: str
    seconds: int
    command: str
    judged: typing.Callable
    repeats: int = 1
    scheduler: str = "none"
    kernel: str = NEWEST
    # Another measurement, whose document `tipme compare` holds this one's against.
    against: str = None

    @property
    def names(self):
        """What it is asked for by: its own name, and without the kernel that of all which differ by that alone."""
        return {self.name, self.name.removesuffix(f"-{self.kernel}")}

    @property
    def document(self):
        """Where its last document is kept, whole."""
        return cache() / "measured" / f"{self.name}-document.json"


def expanded(words):
    """A command with the words that stand for parts of it; these may have such words themselves."""
    while (more := re.sub(r"\{(\w+)\}", lambda found: WORDS[found[1]], words)) != words:
        words = more
    return words


def of_row(name, row):
    """The measurement of a row of the table, or one for each kernel."""
    row = row | {"judged": vars(judge_others).get(called := row.get("judged", name)) or vars(judge)[called], "command": expanded(row["command"])}
    if not row.pop("kernels", False):
        return [Measurement(name, **row)]
    against, title = row.pop("against", False), row.pop("title")
    return [Measurement(f"{name}-{series}", f"{title}, kernel {series}", kernel=series, **row,
                        against=f"{name}-{OLDEST}" if against and series != OLDEST else None) for series in SERIES]


MEASUREMENTS = [one for name, row in TABLE.items() for one in of_row(name, row)]


def measure(machine, wanted, folder, publish, tipme):
    """Makes the measurements `wanted` in a guest with their kernel; `publish` is called with all figures after each.

    Figures are kept in `folder`. Gives how many bars were missed, or could not be looked at.
    """
    folder.mkdir(parents=True, exist_ok=True)
    warm_up(machine)
    missed = 0
    for one in wanted:
        figures = taken(machine, one, tipme)
        kept = folder / f"{one.name}.json"
        # What could not be measured takes no earlier figures away.
        if figures["rows"] or not kept.exists():
            kept.write_text(json.dumps(figures, indent=1) + "\n")
        missed += sum(not bar["met"] for bar in figures["bars"])
        publish(latest(folder))
    return missed


def chosen(only, kernel=None):
    """The measurements with these names, with commas between; all where none is named. With `kernel`, those in a guest with it."""
    there = [one for one in MEASUREMENTS if kernel in (None, one.kernel)]
    names = set(only.split(",")) if only else {one.name for one in there}
    unknown = ", ".join(sorted(names.difference(*(one.names for one in there))))
    if unknown or not there:
        raise CannotRun(f"no such measurement: {unknown or kernel}; there are {', '.join(one.name for one in there)}")
    return [one for one in there if one.names & names]


def warm_up(machine):
    """Opens a display once: the first one takes long, for its fonts. That it fails says nothing yet."""
    with contextlib.suppress(Failed, subprocess.TimeoutExpired):
        machine.run("tipme bench typing --load 0 --keys 1 --blocks 1", WARM_UP_MAX_S)


def taken(machine, one, tipme):
    """One measurement: its figures, or why there are none."""
    begin, load = time.monotonic(), os.getloadavg()[0]
    say(f"{one.name}: {one.repeats} times {one.seconds} s at most")
    try:
        figures = one.judged(*(document(machine, one) for _ in range(one.repeats))) | compared(tipme, one)
    except (Failed, subprocess.TimeoutExpired, ArithmeticError, LookupError, StopIteration, TypeError, ValueError) as error:
        figures = {"rows": [], "bars": [judge.bar("could be measured", False, f"{type(error).__name__}: {error}")]}
    for row in figures["bars"]:
        say(f"{'ok' if row['met'] else 'MISSED':7} {one.name}: {row['bar']}: {row['seen']}")
    when = datetime.datetime.now(datetime.timezone.utc).isoformat(" ", "minutes")[:16]
    busy = (load + os.getloadavg()[0]) / 2
    return figures | {"title": one.title, "when": when, "took_s": time.monotonic() - begin, "host": processor(),
                      "commit": commit(), "host_load": busy, "release": machine.kernel.release}  # fmt: skip


def document(machine, one):
    """Runs the command, tells what it says, and gives the document that it leaves."""
    machine.run(f"rm -f {RESULT}; {FORGET}; echo {one.scheduler} >/sys/block/vdc/queue/scheduler", 120)
    remote = [*machine.shell(), f"timeout -k {GRACE_S} {one.seconds} {one.command}"]
    job = subprocess.Popen(remote, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Where the guest itself hangs, its bound does not count.
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
    """What `tipme compare` says of the last document against the other measurement's, where that was made."""
    others = [other for other in MEASUREMENTS if other.name == one.against and other.document.exists()]
    if not others:
        return {}
    [other] = others
    path = one.document.with_name("compared.json")
    words = [tipme, "compare", other.document, one.document, "--json", path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=GRACE_S, check=False)
    # Code 1: the second is slower in something.
    if done.returncode not in (0, 1):
        raise Failed(f"tipme compare: code {done.returncode}: {done.stderr.strip()}")
    return {"notes": judge.compared(json.loads(path.read_text()), one.kernel, other.kernel)}


def latest(folder):
    """The latest figures of each measurement, in their order."""
    paths = (folder / f"{one.name}.json" for one in MEASUREMENTS)
    return [json.loads(path.read_text()) for path in paths if path.exists()]
