# SPDX-License-Identifier: MIT OR Apache-2.0
"""A processor of the guest that does not run for a time, as where a hypervisor takes it: who is named for what came late by it?

Of QEMU's threads, each of which is a processor of the guest, one is stopped from outside, as a debugger stops it; the others and
the guest's clock go on. The guest is told nothing, and no stolen time is counted. What is asked is `tipme bench timer`, while a
program computes on that processor, which has no part in it, and `tipme idle`, whose loop computes there itself.
"""

import contextlib
import ctypes
import json
import os
import time

from .checks import boot, install, losses, service
from .machine import Failed

# The processor that is stopped, for how long, how often, and the pause between two stops, in seconds. A stop that meets code with
# interrupts off is not told from that code, so there are enough of them that some meet other code.
CPU, STOP_S, STOPS, APART_S = 1, 0.4, 8, 1.5
# A wake-up that is later than this was late by a stop, in milliseconds.
LATE_MS = 150
# How much longer a stop may be told than it was, in milliseconds: an emulated processor is slow to come back.
BEYOND_MS = 250
# The guest's own measurement, and the longest time for it, in seconds.
BENCH_S, LONGEST_S = 20, 180
INNOCENT = "innocent"
# Numbers of ptrace and waitpid.
SEIZE, INTERRUPT, DETACH, WAIT_ALL = 0x4206, 0x4207, 17, 0x40000000


def steps(tipme):
    """As `checks.steps`."""
    yield "boot", boot, True, False
    yield "install", lambda machine, results: install(machine, results, tipme), True, False
    yield "recorder as a service", service, True, False
    yield "stopped processor: late wake-ups", late_wake_ups, False, False
    yield "stopped processor: idle loop", idle_loop, False, False
    yield "recorder at the end", losses, False, False


def trace(request, tid):
    """One call of ptrace without arguments."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, tid, None, None):
        raise Failed(f"cannot stop a processor: ptrace {request:#x}: {os.strerror(ctypes.get_errno())}")


def stop(tid, seconds):
    """Stops one thread for so long; between which times it was stopped."""
    trace(SEIZE, tid)
    try:
        trace(INTERRUPT, tid)
        os.waitpid(tid, WAIT_ALL)
        begin = time.monotonic()
        time.sleep(seconds)
        return begin, time.monotonic()
    finally:
        trace(DETACH, tid)


def processor(machine, number):
    """The thread of QEMU that is a processor of the guest."""
    found = machine.control.call("query-cpus-fast")
    return next(one["thread-id"] for one in found if one["cpu-index"] == number)


@contextlib.contextmanager
def busy(machine):
    """A program that computes on the processor, at the lowest priority."""
    unit = f"--unit tipme-vm-{INNOCENT} -p Nice=19 -p CPUAffinity={CPU}"
    machine.run(f"systemd-run -q {unit} bash -c 'printf {INNOCENT} > /proc/self/comm; while :; do :; done'")
    try:
        yield
    finally:
        machine.run(f"systemctl stop tipme-vm-{INNOCENT}")


def late_wake_ups(machine, results):
    """Each late wake-up of that processor is due to the hypervisor, or said to be due to it or to who had interrupts off meanwhile: nobody
    innocent is named for certain."""
    with busy(machine):
        result, stops = beside_stops(machine, "bench timer", "tipme-timer/")
    outliers = result["outliers"]
    late = [one for one in outliers if one["lateness_us"] >= LATE_MS * 1000 and one["cpu"] == CPU]
    firsts = [one["budget"][0] if one["budget"] else {"cause": "not recorded", "name": ""} for one in late]
    right, told = judged(stops, firsts, [one["lateness_us"] / 1000 for one in late], f"wake-ups of CPU {CPU} were {LATE_MS} ms late or more")
    told += "".join(f"; {note}" for note in result["notes"])
    results.met("stopped processor: late wake-ups", right, told)


def idle_loop(machine, results):
    """Each long gap of the idle loop of that processor is due to the hypervisor likewise."""
    result, stops = beside_stops(machine, "idle", "tipme-idle")
    kinds = {one["name"]: one["kind"] for one in result["residents"]}
    late = [one for one in result["largest"] if one["cpu"] == CPU and one["length_ms"] >= LATE_MS]
    names = [one["by"][0]["name"] if one["by"] else "nobody" for one in late]
    firsts = [{"cause": kinds.get(name, "none told"), "name": name} for name in names]
    right, told = judged(stops, firsts, [one["length_ms"] for one in late], f"gaps of the loop of CPU {CPU} were {LATE_MS} ms long or more")
    results.met("stopped processor: idle loop", right, told)


def judged(stops, firsts, late_ms, what):
    """Whether what came late is as much as the stops, and due to them; and that in words. `firsts` has the largest part of each delay."""
    hypervisor, undecided = [one for one in firsts if one["cause"] == "hypervisor"], [one for one in firsts if is_undecided(one)]
    longest = max(late_ms, default=0)
    stopped = max((end - begin) * 1000 for begin, end in stops)
    right = bool(hypervisor) and len(stops) <= len(firsts) == len(hypervisor) + len(undecided) and longest <= stopped + BEYOND_MS
    return right, (
        f"{len(stops)} stops of {stopped:.0f} ms at most; {len(firsts)} {what}, the longest "
        f"{longest:.0f} ms; {len(hypervisor)} of them by the hypervisor, {len(undecided)} by it or another; all: {causes(firsts)}"
    )


def is_undecided(portion):
    """Whether the hypervisor is told as one of two that it may have been."""
    other = portion["name"].removeprefix("the hypervisor or ")
    told = other != portion["name"] and (other.startswith("interrupt ") or other.split(",")[0].endswith(" with interrupts held off"))
    return portion["cause"] == "outside" and told


def causes(portions):
    names = sorted({f"{one['cause']} {one['name']}".strip() for one in portions})
    return ", ".join(names) or "none"


def beside_stops(machine, command, thread):
    """The result of a measurement in the guest, and the stops beside it. It has begun where a thread of that name is there."""
    path = "/run/tipme-vm-stops.json"
    bench = f"echo begun; tipme {command} -d {BENCH_S}s --json {path} >/run/tipme-vm-stops.txt"
    threads = f"grep -qs {thread} /proc/[0-9]*/task/*/comm"
    machine.run(f"rm -f {path}")
    tid, stops = processor(machine, CPU), []
    with machine.begun(f"bash -c '{bench}'", LONGEST_S, "begun") as running:
        machine.run(f"for try in $(seq 200); do {threads} && exit 0; sleep 0.2; done; exit 1", 120)
        for _ in range(STOPS):
            time.sleep(APART_S)
            stops.append(stop(tid, STOP_S))
        running.wait(timeout=LONGEST_S)
    return json.loads(machine.run(f"cat {path}")), stops
