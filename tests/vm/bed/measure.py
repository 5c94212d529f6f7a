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
from .kernels import SERIES
from .machine import Failed
from .places import CannotRun, cache, say
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
OLDEST, *_, NEWEST = SERIES
# The slice of a desktop's programs is a group of the CPU controller, as the manager of a user makes it one; the programs in it are not.
DESKTOP = "systemctl set-property --runtime app.slice CPUWeight=100"
MANAGED = "--managed --backend cgroup --cgroup /sys/fs/cgroup/tipme-measure"
RESULT = "/var/tmp/measure.json"
TYPING = f"tipme bench typing --load {LEVEL} --keys 500 --blocks 5 --json {RESULT}"
# Kernel 6.1 of Debian 12 begins with the kernel's sharing by session off, 6.18 with it on.
AUTOGROUP = "echo {} >/proc/sys/kernel/sched_autogroup_enabled"
# Code 1 says that an interval was late. The container is a group of the CPU controller below the root.
FORK = ("bash -c '" + AUTOGROUP + f"; echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; {SESSIONS} tipme bench fork -d 8s --no-trace {{}} "
        f"--json {RESULT} || test $? = 1'")  # fmt: skip
SYSTEMS = (f"bash -c '{AUTOGROUP.format(1)}; exec {SESSIONS} tipme bench typing --load 6 --keys 200 "
           f"--blocks 5 --sessions 0 --managed --backend autogroup --json {RESULT}'")  # fmt: skip
# Code 1 says that a limit was exceeded, 2 that nothing could be judged.
VALIDATE = f"bash -c 'tipme idle --validate --json {RESULT} || test $? -le 2'"


class Measurement:
    """A command in the guest that leaves a JSON document, run so often, and what is made of the documents.

    `against` names another measurement, whose document `tipme compare` holds this one's against.
    """

    def __init__(self, name, title, seconds, command, judged, repeats=1, scheduler="none", kernel=NEWEST, against=None):
        self.name, self.title, self.seconds, self.command = name, title, seconds, command
        self.judged, self.repeats, self.scheduler = judged, repeats, scheduler
        self.kernel, self.against = kernel, against

    @property
    def names(self):
        """What it is asked for by: its own name, and without the kernel that of all which differ by that alone."""
        return {self.name, self.name.removesuffix(f"-{self.kernel}")}

    @property
    def document(self):
        """Where its last document is kept, whole."""
        return cache() / "measured" / f"{self.name}-document.json"


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
    *(Measurement(f"systems-{series}", f"Typing beside six hogs, kernel {series}", 400, SYSTEMS, judge.typing, kernel=series,
                  against=None if series == OLDEST else f"systems-{OLDEST}") for series in SERIES),
    *(Measurement(f"fork-{series}", f"Beside newborn processes, kernel {series}", 400, FORK.format(0, ""), judge.fork, kernel=series)
      for series in SERIES),
    *(Measurement(f"fork-managed-{series}", f"Beside newborn processes, by session, with the manager and without, kernel {series}", 500,
                  FORK.format(1, "--managed --backend autogroup"), judge.fork, kernel=series) for series in SERIES),
    *(Measurement(f"validate-{series}", f"Idle loop, validated, kernel {series}", 240, VALIDATE, judge.validation, kernel=series) for series in SERIES),
]  # fmt: skip


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
