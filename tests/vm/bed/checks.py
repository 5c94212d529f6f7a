# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks in a guest, in the order of a user's first steps."""

import json
import pathlib
import shutil
import subprocess
import typing

from shared.programs import run

from .console import console
from .job import FAULTS, main_job
from .machine import DATA_BYTES_S, Failed
from .manager import manager
from .marks import MARK_KEYS, incidents, new_incident
from .places import GUEST, ROOT, TOOLS, CannotRun
from .results import ABSENT

# cgroup v2 controllers that the manager needs.
CONTROLLERS = ("cpu", "io", "memory", "pids")


class Step(typing.NamedTuple):
    title: str
    check: typing.Callable
    # Later steps need it, so it is never left out.
    needed: bool = False
    wants_display: bool = False


def check_all(machine, results, made, only=None):
    """Runs these steps, or those with a word in their title and the needed ones.

    An exception is a failure of the step; the next ones still run.
    """
    results.release = machine.kernel.release
    for step in made:
        if only and only not in step.title and not step.needed:
            continue
        try:
            if step.wants_display and not machine.has_display:
                raise Failed("there is no display")
            step.check(machine, results)
        except (Failed, subprocess.TimeoutExpired, KeyError, ValueError, IndexError) as error:
            results.met(step.title, False, f"{type(error).__name__}: {error}")


def beginning(tipme):
    return [Step("boot", boot, needed=True), Step("install", lambda machine, results: install(machine, results, tipme), needed=True)]


def steps(tipme):
    return [
        *beginning(tipme), Step("devices", devices), Step("doctor", doctor), SERVICE, Step("console", console),
        Step("display", display, needed=True), Step("doctor with a display", doctor_with_display, wants_display=True),
        Step("cgroup v2 controllers", controllers), Step("sched_ext", extensible_scheduler),
        *(Step(f"main job, {fault.name}", one_job(fault), wants_display=True) for fault in FAULTS),
        Step("manager", manager, wants_display=True), END,
    ]  # fmt: skip


def boot(machine, results):
    state = machine.run("systemctl is-system-running || true").strip()
    broken = machine.run("systemctl --failed --plain --no-legend | cut -d' ' -f1").split()
    detail = f"{machine.booted_s:.0f} s from start to a shell, systemd {state} {' '.join(broken)}"
    results.met("boot", state in ("running", "degraded"), detail)


def install(machine, results, tipme):
    """Installs the executables with all files of `make install`, and the tools of the checks."""
    with machine.staging() as staging:
        lab = pathlib.Path(tipme).with_name("tipme-lab")
        for program in (tipme, lab) if lab.is_file() else (tipme,):
            run([ROOT / "scripts/install-files", program, "/usr/local", staging], codes=(0,))
        (staging / "etc/default").mkdir(parents=True, exist_ok=True)
        (staging / "etc/default/tipme").write_text("TIPME_OPTIONS=--allow-user user\n")
        copy_tools(staging)
    lost = machine.run("ldd /usr/local/bin/tipme* | grep 'not found' || true").strip()
    version = machine.run("/usr/local/bin/tipme --version").strip()
    results.met("install", not lost, lost or f"{version}, all libraries are there")


def copy_tools(staging):
    """Copies the tools of the checks, their shared modules, and their services."""
    shutil.copytree(GUEST / "tools", staging / TOOLS.lstrip("/"))
    shutil.copytree(ROOT / "scripts/shared", staging / TOOLS.lstrip("/") / "shared", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(GUEST / "units", staging / "etc/systemd/system")


def devices(machine, results):
    """Checks input devices, display and disks."""
    inputs = machine.run("grep ^N: /proc/bus/input/devices | cut -d'\"' -f2 || true").splitlines()
    swap = machine.run("swapon --show=NAME,SIZE --noheadings").split()
    machine.run("modprobe uinput; for try in $(seq 100); do test -e /dev/dri/card0 && break; sleep 0.2; done")
    paths = machine.run("ls -d /dev/uinput /dev/dri/card0 2>/dev/null || true").split()
    keyboard, mouse = any("AT Translated" in name for name in inputs), any("ouse" in name for name in inputs)
    detail = f"{', '.join(inputs)}; {' '.join(paths)}; swap {' '.join(swap)}"
    results.met("devices", keyboard and mouse and len(paths) == 2 and len(swap) == 2, detail)
    command = "LC_ALL=C dd if=/dev/zero of=/data/speed bs=1M count=20 oflag=direct 2>&1 | tail -n1; rm -f /data/speed"
    took_s = float(machine.run(command, 90).split(",")[-2].split()[0])
    rate = 20 / took_s
    limit = DATA_BYTES_S / 2**20
    # The throttle allows a short burst.
    results.met("throttled disk", 0.2 * limit < rate < 1.5 * limit, f"{rate:.1f} MiB/s of {limit:.0f} written directly")


def findings(machine):
    answer = machine.run("timeout 50 tipme doctor --json", codes=(0, 1))
    return {one["what"]: (one["ok"], one["text"]) for one in json.loads(answer)["findings"]}


def doctor(machine, results):
    found = findings(machine)
    records = [what for what in found if what.startswith("records: ")]
    lacking = [f"{what}: {text}" for what, (fine, text) in found.items() if not fine and what != "displays"]
    detail = f"{len(records)} classes of records; missing: {'; '.join(lacking) or 'nothing'}"
    results.met("doctor", "recording" not in found and found.get("records: tasks", (False,))[0], detail)


def service(machine, results):
    machine.run("systemctl daemon-reload && systemctl start tipmed", 90)
    results.met("recorder as a service", True, machine.retry("journalctl -b -u tipmed -o cat | grep ^recording", 120, 2))


def open_desktop(machine):
    """Starts Xorg with libinput, a window manager and a terminal; returns its process id."""
    machine.run("systemctl start tipme-vm-display", 120)
    machine.run("systemctl start tipme-vm-desktop")
    return machine.focused()


def display(machine, results):
    """Opens the desktop, and starts the agent with the hot keys."""
    pid = open_desktop(machine)
    machine.has_display = True
    machine.run("systemctl start tipme-vm-agent")
    said = machine.retry("grep ^ready: /run/tipme-vm/agent.log", 120)
    driver = machine.run("grep -c 'Using input driver .libinput' /var/log/Xorg.0.log || true").strip()
    detail = f"xterm (pid {pid}) has the focus; {driver} devices by libinput; agent {said}"
    results.met("display", int(driver) >= 2, detail)


def doctor_with_display(machine, results):
    found = findings(machine)
    fine, text = found.get("display :0", (False, "display :0 is not listed"))
    results.met("doctor with a display", fine, f"display :0: {text}")


def controllers(machine, results):
    """Checks the cgroup v2 controllers of systemd, and doctor's report on them."""
    there = machine.run("stat -f -c %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.controllers").split()
    lost = [name for name in CONTROLLERS if name not in there]
    seen = f"{' '.join(there)}; missing: {' '.join(lost) or 'nothing'}"
    results.met("cgroup v2 controllers", there[0] == "cgroup2fs" and not lost, seen)
    detail = [f"{what}: {text}" for what, (_, text) in findings(machine).items() if "cgroup" in what.lower()]
    name = "cgroup v2 by doctor"
    if not detail:
        results.add(name, ABSENT, "doctor of this build says nothing of control groups")
        return
    results.met(name, any("--cgroup DIR" in one for one in detail), "; ".join(detail))


def extensible_scheduler(machine, results):
    """Checks sched_ext in the kernel, and doctor's report on it."""
    there = machine.run("cat /sys/kernel/sched_ext/state 2>/dev/null || true").strip()
    expected = machine.kernel.series != "6.1"
    results.met("sched_ext in the kernel", bool(there) == expected, f"state: {there}" if there else "not there")
    detail = [(fine, text) for what, (fine, text) in findings(machine).items() if "sched_ext" in f"{what} {text}"]
    name = "sched_ext by doctor"
    if not detail:
        results.add(name, ABSENT, "doctor of this build says nothing of sched_ext")
        return
    results.met(name, detail[0][0] and ("(sched_ext) is loaded" in detail[0][1]) == (there == "enabled"), detail[0][1])


def one_job(fault):
    def job(machine, results):
        before = incidents(machine)
        main_job(machine, results, fault, lambda: new_incident(machine, before), MARK_KEYS)
    return job


def losses(machine, results):
    """Checks that the recorder still runs, without restarts."""
    state, restarts = machine.properties("ActiveState", "NRestarts")
    results.met("recorder at the end", (state, restarts) == ("active", "0"), f"{state}, {restarts} restarts")


SERVICE, END = Step("recorder as a service", service, needed=True), Step("recorder at the end", losses)


def executable(path):
    """Returns the tested executable."""
    if not pathlib.Path(path).is_file():
        raise CannotRun(f"{path} is missing: run make build, or name another in TIPME")
    return path
