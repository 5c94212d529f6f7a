# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is checked in a guest, in the order in which a user would meet it."""

import json
import pathlib
import shutil
import subprocess
import tempfile

from .console import console
from .job import FAULTS, main_job
from .machine import DATA_BYTES_S, Failed
from .manager import manager
from .marks import MARK_KEYS, incidents, new_incident
from .places import GUEST, ROOT, TOOLS, CannotRun, run
from .results import ABSENT

# cgroup v2 controllers that the manager needs.
CONTROLLERS = ("cpu", "io", "memory", "pids")
# A busy host starts a desktop in two minutes, an idle one in ten seconds.
FOCUS_MAX_S = 240


def check_all(machine, results, made, only=None):
    """All checks of these steps, or those with a word in their title and what they need.

    One that cannot be made is a failure, and the next ones are made all the same.
    """
    results.release = machine.kernel.release
    for title, step, needed, wants_display in made:
        if only and only not in title and not needed:
            continue
        try:
            if wants_display and not machine.has_display:
                raise Failed("there is no display")
            step(machine, results)
        except (Failed, subprocess.TimeoutExpired, KeyError, ValueError, IndexError) as error:
            results.met(title, False, f"{type(error).__name__}: {error}")


def steps(tipme):
    """Title, check, whether later ones need it, and whether it needs a display."""
    yield "boot", boot, True, False
    yield "install", lambda machine, results: install(machine, results, tipme), True, False
    yield "devices", devices, False, False
    yield "doctor", doctor, False, False
    yield "recorder as a service", service, True, False
    yield "console", console, False, False
    yield "display", display, True, False
    yield "doctor with a display", doctor_with_display, False, True
    yield "cgroup v2 controllers", controllers, False, False
    yield "sched_ext", extensible_scheduler, False, False
    for fault in FAULTS:
        yield f"main job, {fault.name}", one_job(fault), False, True
    yield "manager", manager, False, True
    yield "recorder at the end", losses, False, False


def boot(machine, results):
    state = machine.run("systemctl is-system-running || true").strip()
    broken = machine.run("systemctl --failed --plain --no-legend | cut -d' ' -f1").split()
    told = f"{machine.booted_s:.0f} s from start to a shell, systemd {state} {' '.join(broken)}"
    results.met("boot", state in ("running", "degraded"), told)


def install(machine, results, tipme):
    """The executables with all that `make install` brings, the libraries it wants, and the tools of the checks."""
    staging = pathlib.Path(tempfile.mkdtemp(prefix="tipme-vm-stage-"))
    try:
        lab = pathlib.Path(tipme).with_name("tipme-lab")
        for program in (tipme, lab) if lab.is_file() else (tipme,):
            run([ROOT / "scripts/install-files", program, "/usr/local", staging])
        (staging / "etc/default").mkdir(parents=True, exist_ok=True)
        (staging / "etc/default/tipme").write_text("TIPME_OPTIONS=--allow-user user\n")
        copy_tools(staging)
        machine.copy_in(staging)
    finally:
        shutil.rmtree(staging)
    lost = machine.run("ldd /usr/local/bin/tipme* | grep 'not found' || true").strip()
    version = machine.run("/usr/local/bin/tipme --version").strip()
    results.met("install", not lost, lost or f"{version}, all libraries are there")


def copy_tools(staging):
    """The tools of the checks, with what they share with other scripts, and their services."""
    shutil.copytree(GUEST / "tools", staging / TOOLS.lstrip("/"))
    shutil.copytree(ROOT / "scripts/shared", staging / TOOLS.lstrip("/") / "shared", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(GUEST / "units", staging / "etc/systemd/system")


def devices(machine, results):
    """Input devices, a display and disks of its own."""
    inputs = machine.run("grep ^N: /proc/bus/input/devices | cut -d'\"' -f2 || true").splitlines()
    swap = machine.run("swapon --show=NAME,SIZE --noheadings").split()
    machine.run("modprobe uinput; for try in $(seq 100); do test -e /dev/dri/card0 && break; sleep 0.2; done")
    paths = machine.run("ls -d /dev/uinput /dev/dri/card0 2>/dev/null || true").split()
    keyboard, mouse = any("AT Translated" in name for name in inputs), any("ouse" in name for name in inputs)
    told = f"{', '.join(inputs)}; {' '.join(paths)}; swap {' '.join(swap)}"
    results.met("devices", keyboard and mouse and len(paths) == 2 and len(swap) == 2, told)
    command = "LC_ALL=C dd if=/dev/zero of=/data/speed bs=1M count=20 oflag=direct 2>&1 | tail -n1; rm -f /data/speed"
    took_s = float(machine.run(command, 90).split(",")[-2].split()[0])
    rate = 20 / took_s
    limit = DATA_BYTES_S / 2**20
    # The throttle lets a short burst pass.
    results.met("throttled disk", 0.2 * limit < rate < 1.5 * limit, f"{rate:.1f} MiB/s of {limit:.0f} written directly")


def findings(machine):
    answer = machine.run("timeout 50 tipme doctor --json", codes=(0, 1))
    return {one["what"]: (one["ok"], one["text"]) for one in json.loads(answer)["findings"]}


def doctor(machine, results):
    found = findings(machine)
    records = [what for what in found if what.startswith("records: ")]
    lacking = [f"{what}: {text}" for what, (fine, text) in found.items() if not fine and what != "displays"]
    told = f"{len(records)} classes of records; missing: {'; '.join(lacking) or 'nothing'}"
    results.met("doctor", "recording" not in found and found.get("records: tasks", (False,))[0], told)


def service(machine, results):
    machine.run("systemctl daemon-reload && systemctl start tipmed", 90)
    journal = "journalctl -b -u tipmed -o cat | grep ^recording"
    said = machine.run(f"for try in $(seq 30); do {journal} && exit 0; sleep 2; done; exit 1", 120).strip()
    results.met("recorder as a service", True, said)


def display(machine, results):
    """Xorg with libinput, a window manager and a terminal with the focus; the agent with the hot keys."""
    machine.run("systemctl start tipme-vm-display", 120)
    machine.run("systemctl start tipme-vm-desktop")
    pid = machine.run(f"{TOOLS}/await-focus", FOCUS_MAX_S).strip()
    machine.has_display = True
    machine.run("systemctl start tipme-vm-agent")
    ready = "grep ^ready: /run/tipme-vm/agent.log"
    said = machine.run(f"for try in $(seq 200); do {ready} && exit 0; sleep 0.5; done; exit 1", 120)
    driver = machine.run("grep -c 'Using input driver .libinput' /var/log/Xorg.0.log || true").strip()
    told = f"xterm (pid {pid}) has the focus; {driver} devices by libinput; agent {said.strip()}"
    results.met("display", int(driver) >= 2, told)


def doctor_with_display(machine, results):
    found = findings(machine)
    fine, text = found.get("display :0", (False, "display :0 is not listed"))
    results.met("doctor with a display", fine, f"display :0: {text}")


def controllers(machine, results):
    """cgroup v2 under systemd, as it is and as doctor tells it."""
    there = machine.run("stat -f -c %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.controllers").split()
    lost = [name for name in CONTROLLERS if name not in there]
    seen = f"{' '.join(there)}; missing: {' '.join(lost) or 'nothing'}"
    results.met("cgroup v2 controllers", there[0] == "cgroup2fs" and not lost, seen)
    told = [f"{what}: {text}" for what, (_, text) in findings(machine).items() if "cgroup" in what.lower()]
    name = "cgroup v2 by doctor"
    if not told:
        results.add(name, ABSENT, "doctor of this build says nothing of control groups")
        return
    results.met(name, any("--cgroup DIR" in one for one in told), "; ".join(told))


def extensible_scheduler(machine, results):
    """sched_ext, as the kernel has it and as doctor tells it."""
    there = machine.run("cat /sys/kernel/sched_ext/state 2>/dev/null || true").strip()
    expected = machine.kernel.series != "6.1"
    results.met("sched_ext in the kernel", bool(there) == expected, f"state: {there}" if there else "not there")
    told = [(fine, text) for what, (fine, text) in findings(machine).items() if "sched_ext" in f"{what} {text}"]
    name = "sched_ext by doctor"
    if not told:
        results.add(name, ABSENT, "doctor of this build says nothing of sched_ext")
        return
    results.met(name, told[0][0] and ("(sched_ext) is loaded" in told[0][1]) == (there == "enabled"), told[0][1])


def one_job(fault):
    def job(machine, results):
        before = incidents(machine)
        main_job(machine, results, fault, lambda: new_incident(machine, before), MARK_KEYS)
    return job


def losses(machine, results):
    """The recorder lived through all of it."""
    restarts = machine.run("systemctl show -p NRestarts --value tipmed").strip()
    state = machine.run("systemctl is-active tipmed || true").strip()
    results.met("recorder at the end", (state, restarts) == ("active", "0"), f"{state}, {restarts} restarts")


def executable(path):
    """The executable that is tested."""
    if not pathlib.Path(path).is_file():
        raise CannotRun(f"{path} is missing: run make build, or name another in TIPME")
    return path
