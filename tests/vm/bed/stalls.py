# SPDX-License-Identifier: MIT OR Apache-2.0
"""A virtual CPU that does not run for a time, as when a hypervisor takes it: which cause does tipme name for the delays?

One of QEMU's CPU threads is stopped from outside by ptrace, while the others and the guest's clock go on. The guest gets
no notice and no stolen time. `tipme bench timer` runs beside an unrelated CPU-bound program on that CPU, and `tipme idle`
with its own loop there.
"""

import contextlib
import ctypes
import json
import os
import time

from .checks import END, SERVICE, Step, beginning
from .machine import Failed

# Stopped CPU, duration in seconds, number of stops, and the pause between them in seconds. A stop in code with interrupts
# disabled looks like a delay by that code, so there are enough stops for some to be elsewhere.
CPU, STOP_S, STOPS, APART_S = 1, 0.4, 8, 1.5
# Minimum lateness of a wakeup that a stop delayed, in milliseconds.
LATE_MS = 150
# Tolerated excess of a reported stop, in milliseconds, since an emulated CPU resumes slowly.
BEYOND_MS = 250
# Duration of the guest's own measurement, and its time limit, in seconds.
BENCH_S, LONGEST_S = 20, 180
INNOCENT = "innocent"
# Constants of ptrace and waitpid.
SEIZE, INTERRUPT, DETACH, WAIT_ALL = 0x4206, 0x4207, 17, 0x40000000


def steps(tipme):
    stops = [Step("stopped processor: late wake-ups", late_wake_ups), Step("stopped processor: idle loop", idle_loop)]
    return [*beginning(tipme), SERVICE, *stops, END]


def trace(request, tid):
    """Calls ptrace without arguments."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, tid, None, None):
        raise Failed(f"cannot stop a processor: ptrace {request:#x}: {os.strerror(ctypes.get_errno())}")


def stop(tid, seconds):
    """Stops a thread for a time; returns begin and end."""
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
    """Returns the thread id of a virtual CPU."""
    found = machine.control.call("query-cpus-fast")
    return next(one["thread-id"] for one in found if one["cpu-index"] == number)


@contextlib.contextmanager
def busy(machine):
    """Runs a CPU-bound program on the CPU, at the lowest priority."""
    unit = f"--unit tipme-vm-{INNOCENT} -p Nice=19 -p CPUAffinity={CPU}"
    machine.run(f"systemd-run -q {unit} bash -c 'printf {INNOCENT} > /proc/self/comm; while :; do :; done'")
    try:
        yield
    finally:
        machine.run(f"systemctl stop tipme-vm-{INNOCENT}")


def late_wake_ups(machine, results):
    """Checks that each late wakeup of that CPU is attributed to the hypervisor, or to it or code with interrupts disabled; no
    unrelated program may be named for certain."""
    with busy(machine):
        result, stops = beside_stops(machine, "bench timer", "tipme-timer/")
    outliers = result["outliers"]
    late = [one for one in outliers if one["lateness_us"] >= LATE_MS * 1000 and one["cpu"] == CPU]
    firsts = [one["budget"][0] if one["budget"] else {"cause": "not recorded", "name": ""} for one in late]
    right, detail = judged(stops, firsts, [one["lateness_us"] / 1000 for one in late], f"wake-ups of CPU {CPU} were {LATE_MS} ms late or more")
    detail += "".join(f"; {note}" for note in result["notes"])
    results.met("stopped processor: late wake-ups", right, detail)


def idle_loop(machine, results):
    """Checks the same for each long gap of the idle loop of that CPU."""
    result, stops = beside_stops(machine, "idle", "tipme-idle")
    kinds = {one["name"]: one["kind"] for one in result["residents"]}
    late = [one for one in result["largest"] if one["cpu"] == CPU and one["length_ms"] >= LATE_MS]
    names = [one["by"][0]["name"] if one["by"] else "nobody" for one in late]
    firsts = [{"cause": kinds.get(name, "unknown"), "name": name} for name in names]
    right, detail = judged(stops, firsts, [one["length_ms"] for one in late], f"gaps of the loop of CPU {CPU} were {LATE_MS} ms long or more")
    results.met("stopped processor: idle loop", right, detail)


def judged(stops, firsts, late_ms, what):
    """Returns whether the delays match the stops and are attributed to them, with details. `firsts` has the largest part of each
    delay."""
    hypervisor, undecided = [one for one in firsts if one["cause"] == "hypervisor"], [one for one in firsts if is_undecided(one)]
    longest = max(late_ms, default=0)
    stopped = max((end - begin) * 1000 for begin, end in stops)
    right = bool(hypervisor) and len(stops) <= len(firsts) == len(hypervisor) + len(undecided) and longest <= stopped + BEYOND_MS
    return right, (
        f"{len(stops)} stops of {stopped:.0f} ms at most; {len(firsts)} {what}, the longest "
        f"{longest:.0f} ms; {len(hypervisor)} of them by the hypervisor, {len(undecided)} by it or another; all: {causes(firsts)}"
    )


def is_undecided(portion):
    """Returns True if the hypervisor is named as one of two possible causes."""
    other = portion["name"].removeprefix("the hypervisor or ")
    is_one = other != portion["name"] and (other.startswith("interrupt ") or other.split(",")[0].endswith(" with interrupts held off"))
    return portion["cause"] == "outside" and is_one


def causes(portions):
    names = sorted({f"{one['cause']} {one['name']}".strip() for one in portions})
    return ", ".join(names) or "none"


def beside_stops(machine, command, thread):
    """Returns the result of a measurement in the guest, and the stops during it. They begin once `thread` exists."""
    path = "/run/tipme-vm-stops.json"
    bench = f"echo begun; tipme {command} -d {BENCH_S}s --json {path} >/run/tipme-vm-stops.txt"
    machine.run(f"rm -f {path}")
    tid, stops = processor(machine, CPU), []
    with machine.begun(f"bash -c '{bench}'", LONGEST_S, "begun") as running:
        machine.retry(f"grep -qs {thread} /proc/[0-9]*/task/*/comm", 120)
        for _ in range(STOPS):
            time.sleep(APART_S)
            stops.append(stop(tid, STOP_S))
        running.wait(timeout=LONGEST_S)
    return json.loads(machine.run(f"cat {path}")), stops
