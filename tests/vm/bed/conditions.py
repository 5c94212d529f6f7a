# SPDX-License-Identifier: MIT OR Apache-2.0
"""Changing conditions for the recorder's service: several users, CPU hotplug, suspend, steps of the clock, a container, a
memory limit.

The same process keeps recording, and its incidents are complete; otherwise the journal gives the reason.
"""

import json
import time

from .job import WINDOW_S, Fault, main_job
from .marks import MARK_KEYS, incidents, new_incident
from .places import TOOLS
from .screen import Screen

# Second user with the right to mark.
OTHER = "other"
# Maximum duration of a mark or diagnosis, and duration of the suspend, in seconds.
MARK_MAX_S, ASLEEP_S = 240, 8
# Program in a container, on the CPU that was offline.
BOXED = Fault(
    "a container on a CPU that came back",
    f"setsid --wait unshare --net --pid --fork --mount-proc taskset -c 1 {TOOLS}/batch-render 1 3",
    "cpu-competition", "batch-render", 3, 40,
)  # fmt: skip
# Memory limits: too low for the recorder's rings, and sufficient for small rings and a mark.
LITTLE, ENOUGH = "24M", "256M"


def check(machine, results, person):
    """Runs all checks; `person` wraps a command to run as the user of the session."""
    users(machine, results, person)
    for step in (hotplug, suspend, clock, memory):
        step(machine, results)


def recorder(machine):
    """Returns state and process of the service."""
    return machine.properties("ActiveState", "MainPID")


def mark(machine, as_user="{}"):
    """Marks; returns the incident, its verdict, and notes on damage or losses."""
    before = incidents(machine)
    machine.run(as_user.format("tipme mark"), MARK_MAX_S)
    incident = new_incident(machine, before)
    verdict = json.loads(machine.run(f"tipme diagnose --json {incident}", MARK_MAX_S, (0, 3)))
    torn = [note for note in verdict["notes"] if "damaged" in note or "lost" in note]
    return incident, verdict, torn


def users(machine, results, person):
    """Checks that each of two users can only read their own incident."""
    machine.run(f"useradd --create-home --groups tipme {OTHER}")
    other = f"cd / && runuser -u {OTHER} -- {{}}"
    made = [(ask, *mark(machine, ask)) for ask in (person("{}"), other)]
    seen = []
    for ask, incident, _, torn in made:
        read = [ask.format(f"tipme diagnose {path} >/dev/null 2>&1; echo $?") for _, path, _, _ in made]
        codes = [machine.run(command, MARK_MAX_S).strip() in ("0", "3") for command in read]
        seen.append((codes == [path == incident for _, path, _, _ in made], torn))
    results.met("marks by two users", seen == [(True, [])] * 2, f"each reads the own one only: {seen}")


def hotplug(machine, results):
    """Takes a CPU offline and online; then a hitch there, by a program in a container, must be found."""
    _, process = recorder(machine)
    machine.run("echo 0 >/sys/devices/system/cpu/cpu1/online")
    incident, _, torn = mark(machine)
    machine.run("echo 1 >/sys/devices/system/cpu/cpu1/online")
    state, now = recorder(machine)
    met = (state, now, torn) == ("active", process, [])
    results.met("a CPU goes", met, f"{state}, process {process} is {now}, {incident} {torn or 'is whole'}")
    results.alone_from = time.monotonic() + WINDOW_S
    terminal = machine.focused()
    machine.run(f"taskset -a -p -c 1 {terminal}")
    before = incidents(machine)
    main_job(machine, results, BOXED, lambda: new_incident(machine, before), MARK_KEYS)
    machine.run(f"taskset -a -p -c 0,1 {terminal}")


def suspend(machine, results):
    """Suspends to idle and resumes; this must not count as a hitch."""
    _, process = recorder(machine)
    time.sleep(max(0, results.alone_from - time.monotonic()))
    screen = Screen(machine)
    screen.press("a")
    # Wakes up by a key that draws nothing, since an answer would correctly count as late.
    machine.run("echo enabled >/sys/devices/platform/i8042/serio0/power/wakeup; echo 0 >/sys/power/pm_async")
    machine.run("systemd-run -q --no-block bash -c 'sleep 1; echo freeze >/sys/power/state'")
    time.sleep(ASLEEP_S)
    screen.chord("shift")
    stats = machine.run("cat /sys/power/suspend_stats/success", 120).strip()
    screen.await_quiet()
    screen.press("d")
    time.sleep(1)
    incident, verdict, torn = mark(machine)
    state, now = recorder(machine)
    findings = [(one["kind"], one["ms"]) for one in verdict["findings"]]
    met = (state, now, torn, findings, stats) == ("active", process, [], [], "1")
    detail = f"slept {stats} times; {state}, process {process} is {now}, {incident} {torn}, {findings}"
    results.met("suspend to idle and resume", met, detail)


def clock(machine, results):
    """Sets the clock forward and back by an hour."""
    _, process = recorder(machine)
    made = []
    for step in (3600, -3600):
        machine.run(f"date -s @$(($(date +%s) + {step}))")
        made.append(mark(machine))
    listed = [one["path"] for one in json.loads(machine.run("tipme incidents --json", MARK_MAX_S))["incidents"]]
    state, now = recorder(machine)
    kept = [incident in listed for incident, _, _ in made]
    met = (state, now, kept) == ("active", process, [True] * 2) and not any(torn for _, _, torn in made)
    results.met("steps of the clock", met, f"{state}, process {process} is {now}; both are listed: {kept}")


def memory(machine, results):
    """Checks that the journal reports a memory limit that is too low, and that the recorder works with a sufficient one."""
    limit = "systemctl set-property --runtime tipmed MemoryMax"
    machine.run(f"{limit}={LITTLE}; systemctl restart tipmed || true", 120)
    time.sleep(10)
    state, _ = recorder(machine)
    said = machine.run("journalctl -b -u tipmed -o cat -n 20").strip().splitlines()
    why = [line for line in said if "memory" in line.lower() or "oom" in line.lower()]
    results.met("too little memory", state == "active" or bool(why), f"{state}: {why[-1:] or said[-3:]}")
    machine.run("systemctl stop tipmed; systemctl reset-failed tipmed || true", 120)
    machine.run(f"{limit}={ENOUGH}; systemctl start tipmed", 120)
    incident, _, torn = mark(machine)
    machine.run("systemctl revert tipmed && systemctl restart tipmed", 120)
    results.met("little memory", not torn, f"with {ENOUGH}: {incident} {torn or 'is whole'}")
