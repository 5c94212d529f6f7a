# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the manager is worth, measured in a guest with control groups of version 2 and little memory.

Each measurement has a bound, and its figures are kept when it ends: what comes after it cannot spoil them. They lie beside
the document, which has the latest of each, whichever machine they are from.
"""

import contextlib
import datetime
import json
import os
import subprocess
import threading
import time

from . import measure_judge as judge
from .checks import TOOLS
from .machine import Failed
from .places import CannotRun, say
from .results import commit, processor

# Memory of the guest: little, so that a load is soon larger than what is free.
MEMORY_MIB = 768
# The level of each load. The memory of one that is somewhat larger than what is free: with much more, it waits for its
# own pages and pushes out nothing else.
LEVEL, LARGE = 20, "$(awk '/MemAvailable/ {print int($2 / 1024) + 200}' /proc/meminfo)M"
# Before each: what was read or came back from swap in the run before would be kept longest, and little would go.
FORGET = "sync; echo 3 >/proc/sys/vm/drop_caches; swapoff -a; swapon -a"
# A command in the guest is given so many seconds to end by itself after its bound.
GRACE_S = 30
# Before the first measurement, in seconds.
WARM_UP_MAX_S = 90
GROUP, SESSIONS = f"{TOOLS}/measure-run group", f"{TOOLS}/measure-run root"
# The slice of a desktop's programs is a group of the CPU controller, as the manager of a user makes it one; the programs in it are not.
DESKTOP = "systemctl set-property --runtime app.slice CPUWeight=100"
MANAGED = "--managed --backend cgroup --cgroup /sys/fs/cgroup/tipme-measure"
RESULT = "/var/tmp/measure.json"
TYPING = f"tipme bench typing --load {LEVEL} --keys 500 --blocks 5 --json {RESULT}"


class Measurement:
    """A command in the guest that leaves a JSON document, run so often, and what is made of the documents."""

    def __init__(self, name, title, seconds, command, judged, repeats=1, scheduler="none"):
        self.name, self.title, self.seconds, self.command = name, title, seconds, command
        self.judged, self.repeats, self.scheduler = judged, repeats, scheduler


MEASUREMENTS = [
    Measurement("typing", "Typing, all in one control group", 700,
                f"{GROUP} {TYPING} --sessions 20 {MANAGED} --against nice19 --against weight", judge.typing),
    Measurement("typing-sessions-20", "Typing, each process of the load in a session of its own", 700,
                f"{SESSIONS} {TYPING} --sessions 20 --managed --backend autogroup --against nice19 "
                "--against autogroup --against weight", judge.typing),
    Measurement("typing-sessions-1", "Typing, the load in one session", 450,
                f"{SESSIONS} {TYPING} --sessions 1 --managed --backend autogroup", judge.typing),
    Measurement("typing-sessions-0", "Typing, the load in the session of the display's programs", 500,
                f"{SESSIONS} {TYPING} --sessions 0 --managed --backend autogroup", judge.typing),
    Measurement("typing-units", "Typing, each process of the load in a unit of systemd", 1200,
                f"bash -c '{DESKTOP}; exec {TYPING} --sessions 20 --units --managed --backend systemd --against nice19'", judge.typing),
    Measurement("system", "System test", 1500,
                f"{GROUP} tipme bench system --rounds 5 --blocks 5 --json {RESULT} {MANAGED}", judge.system),
    # Each repeat has a display of its own: in one display, what came back from swap once is not the first to go again.
    Measurement("warmstart", "Warm start", 400,
                f"{GROUP} tipme bench warmstart --load {LEVEL} --type big --memory {LARGE} --pause 30s --blocks 1 "
                f"--json {RESULT} {MANAGED}", judge.warmstart, repeats=5),
    Measurement("pagein", "Memory hog", 600,
                f"{GROUP} tipme bench pagein --keys 100 --every 800ms --blocks 1 --json {RESULT} {MANAGED}", judge.pagein),
    # The I/O class counts only where a scheduler looks at it; this one sorts by place, as the paper's did.
    Measurement("slowdisk", "Memory hog beside each remedy", 900,
                f"{GROUP} tipme bench pagein --keys 60 --every 800ms --blocks 1 --json {RESULT} {MANAGED} "
                "--against idle-io,limit", judge.slow_disk, scheduler="mq-deadline"),
    Measurement("starvation", "Starvation", 240,
                f"{GROUP} {TOOLS}/measure-safety starvation >{RESULT}", judge.starvation),
    Measurement("restore", "After kill -9", 300,
                f"{GROUP} {TOOLS}/measure-safety restore >{RESULT}", judge.restore),
]  # fmt: skip


def measure(machine, wanted, folder, publish):
    """Makes the measurements `wanted`; `publish` is called with all figures after each.

    Figures are kept in `folder`. Gives how many bars were missed, or could not be looked at.
    """
    folder.mkdir(parents=True, exist_ok=True)
    warm_up(machine)
    missed = 0
    for one in wanted:
        figures = taken(machine, one)
        kept = folder / f"{one.name}.json"
        # What could not be measured takes no earlier figures away.
        if figures["rows"] or not kept.exists():
            kept.write_text(json.dumps(figures, indent=1) + "\n")
        missed += sum(not bar["met"] for bar in figures["bars"])
        publish(latest(folder))
    return missed


def chosen(only):
    """The measurements with these names, with commas between; all where none is named."""
    names = only.split(",") if only else [one.name for one in MEASUREMENTS]
    unknown = ", ".join(set(names) - {one.name for one in MEASUREMENTS})
    if unknown:
        raise CannotRun(f"no such measurement: {unknown}; there are {', '.join(one.name for one in MEASUREMENTS)}")
    return [one for one in MEASUREMENTS if one.name in names]


def warm_up(machine):
    """Opens a display once: the first one takes long, for its fonts. That it fails says nothing yet."""
    with contextlib.suppress(Failed, subprocess.TimeoutExpired):
        machine.run("tipme bench typing --load 0 --keys 1 --blocks 1", WARM_UP_MAX_S)


def taken(machine, one):
    """One measurement: its figures, or why there are none."""
    begin, load = time.monotonic(), os.getloadavg()[0]
    say(f"{one.name}: {one.repeats} times {one.seconds} s at most")
    try:
        figures = one.judged(*(document(machine, one) for _ in range(one.repeats)))
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
    return json.loads(machine.run(f"cat {RESULT}"))


def latest(folder):
    """The latest figures of each measurement, in their order."""
    paths = (folder / f"{one.name}.json" for one in MEASUREMENTS)
    return [json.loads(path.read_text()) for path in paths if path.exists()]
