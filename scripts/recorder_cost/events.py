# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of scheduler events: time that each recorder adds to a round trip through a pipe, and the
recorder's own CPU time under that load."""

import re
import statistics
import subprocess
import time

from shared import CannotRun, progress
from shared.figures import bar, in_turn, shown, table
from shared.kernel_programs import EMPTY_TITLE, counting, empty_program, since, spent
from shared.proc import cpu_seconds

from .arms import ARMS, tipme

# Arms, besides `against`; operations of the load; duration of the load for the CPU time, in seconds.
BESIDE, LOOPS, CPU_S = ["bare", "tipme", "ftrace", "perf"], 100_000, 60
# Bars: tipme's added time relative to that of others; its user-space CPU time in percent.
RATIOS = {"ftrace": 0.5, "perf": 0.35, "against": 1.0}
CPU_PERCENT = 0.1


def pipe():
    """Returns the microseconds per operation of the load."""
    command = ["taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", str(LOOPS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"([\d.]+) usecs/op", run.stdout)
    if not found:
        raise CannotRun(f"{' '.join(command)}: {run.stderr.strip() or run.stdout.strip()}")
    return float(found.group(1))


def rounds(options):
    """Returns the microseconds per operation by arm, one for each round."""
    arms = BESIDE + (["against"] if options.against else [])
    times = {arm: [] for arm in arms}
    for number in range(options.rounds):
        for arm in in_turn(arms, number):
            with ARMS[arm](options):
                times[arm].append(pipe())
        progress(f"round {number + 1} of {options.rounds}: " + ", ".join(f"{a} {times[a][-1]:.2f}" for a in arms))
    return times


def added(times, arm):
    """Returns the median of the time that an arm adds to the bare round beside it."""
    return statistics.median(one - base for one, base in zip(times[arm], times["bare"]))


def counted(options):
    """Returns the time per run of the recorder's programs under that load, as the kernel counts
    it."""
    progress("the same load with the programs counted")
    with tipme(options) as pid, empty_program(b"sched_switch") as empty, counting(pid, empty) as programs:
        watched = {name: programs[name] for name in ("sched_switch", "sched_waking", EMPTY_TITLE)}
        before = spent(watched)
        pipe()
        return ", ".join(f"{name} {nanos / max(count, 1):.0f} ns" for name, (nanos, count) in since(before, watched).items())


def report(options):
    times = rounds(options)
    rows = [("arm", "µs per operation, median (least to most)", "added, median")]
    rows += [(arm, shown(values, "", 2), "" if arm == "bare" else f"{added(times, arm):+.2f}") for arm, values in times.items()]
    bars = [bar(f"added by tipme / added by {other}", added(times, "tipme") / added(times, other), most, "") for other, most in RATIOS.items() if other in times]
    title = f"`taskset -c 0 perf bench sched pipe -l {LOOPS}`, {options.rounds} rounds in turn"
    own = f"- one run of a program, as the kernel counts it: {counted(options)}; what calls it is not in that"
    return [title + ":", "", *table(rows), "", *[line for line, _ in bars], own], all(met for _, met in bars)


def cpu_report(options):
    """Reports the recorder's user and system CPU time under load, in percent of one CPU."""
    progress(f"the recorder's own CPU time over {CPU_S} s of that load")
    with tipme(options) as pid:
        before, begin = cpu_seconds(pid), time.monotonic()
        while time.monotonic() - begin < CPU_S:
            pipe()
        user, system = (100 * (late - early) / (time.monotonic() - begin) for early, late in zip(before, cpu_seconds(pid)))
    what = f"user-space CPU time of the recorder and its children over {CPU_S} s of that load"
    line, met = bar(what, user, CPU_PERCENT, " %")
    return [f"{line}; with the time of its system calls {user + system:.3f} %"], met
