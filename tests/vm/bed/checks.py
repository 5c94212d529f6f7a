# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is checked in a guest, in the order in which a user would meet it."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from .incident_file import sections
from .job import FAULTS, main_job
from .machine import DATA_BYTES_S, Failed
from .manager import manager
from .places import GUEST, ROOT, CannotRun, run
from .results import ABSENT
from .screen import Screen

TOOLS = "/usr/local/lib/tipme-vm"
# cgroup v2 controllers that the manager needs.
CONTROLLERS = ("cpu", "io", "memory", "pids")
# A busy host starts a desktop in two minutes, an idle one in ten seconds.
FOCUS_MAX_S = 240
# Hot keys as QEMU names them, and the wait for the file that they lead to, in seconds.
MARK_KEYS, FILE_MAX_S = ("ctrl", "alt", "minus"), 120
# What is typed on the console: a word that is nowhere else; and the wait for a line there, in seconds.
TYPED, CAUSE_MAX_S = "jackdaws", 180


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
        shutil.copytree(GUEST / "tools", staging / TOOLS.lstrip("/"))
        shutil.copytree(GUEST / "units", staging / "etc/systemd/system")
        machine.copy_in(staging)
    finally:
        shutil.rmtree(staging)
    lost = machine.run("ldd /usr/local/bin/tipme* | grep 'not found' || true").strip()
    version = machine.run("/usr/local/bin/tipme --version").strip()
    results.met("install", not lost, lost or f"{version}, all libraries are there")


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


def incidents(machine):
    listed = machine.run("ls /var/lib/tipme/incidents/*.tipme 2>/dev/null || true")
    return set(listed.split())


def new_incident(machine, before, seconds=FILE_MAX_S):
    """The incident that is there now and was not before; None where there is none in time."""
    known = " ".join(sorted(before)) or "none"
    look = (
        "for file in /var/lib/tipme/incidents/*.tipme; do "
        f"case ' {known} ' in *\" $file \"*) ;; *) test -e $file && echo $file && exit 0;; esac; done"
    )
    command = f"for try in $(seq {seconds * 4}); do {look}; sleep 0.25; done"
    return machine.run(command, seconds + 30).strip() or None


def console(machine, results):
    """Keys without a display, with a program that reads what is typed."""
    machine.run("systemd-run -q --unit tipme-vm-reader -p StandardInput=tty -p TTYPath=/dev/tty1 cat")
    try:
        console_keys(machine, results)
    finally:
        machine.run("systemctl stop tipme-vm-reader")


def console_keys(machine, results):
    """The kernel's stamps, and the hot key."""
    screen, before = Screen(machine), incidents(machine)
    with machine.begun(f"{TOOLS}/evdev-stamps", 60, "ready") as stamps:
        for code in (*TYPED, "ret"):
            screen.chord(code)
        screen.chord(*MARK_KEYS)
        seen = [int(stamp) for stamp in stamps.communicate(timeout=30)[0].split()]
    pressed = len(TYPED) + 1 + len(MARK_KEYS)
    results.met("keys on the console", len(seen) == pressed, f"{len(seen)} of {pressed} presses seen by evdev")
    said = machine.run("tipme record --help; tipme agent --help")
    if "console" not in said:
        results.add("hot key on the console", ABSENT, "this build has hot keys on X11 only")
        return
    incident = new_incident(machine, before)
    if results.met("hot key on the console", incident is not None, incident or f"no incident within {FILE_MAX_S} s"):
        console_mark(machine, results, incident, seen[-1])
        console_lines(machine, results, screen, incident)
        console_stopped(machine, results, screen)


def console_mark(machine, results, incident, stamp):
    """The mark is the press, and what was typed is nowhere in the file."""
    with tempfile.TemporaryDirectory(prefix="tipme-vm-incident-") as folder:
        machine.copy_out(incident, pathlib.Path(folder))
        data = (pathlib.Path(folder) / pathlib.PurePath(incident).name).read_bytes()
    (_, meta), *others = sections(data)
    rest = [body for _, body in others]
    meta = json.loads(meta)
    late_ns, trigger = meta["mark_ns"] - stamp, meta["trigger"]
    told = f"trigger {trigger}, the mark {late_ns} ns after the device's stamp"
    results.met("hot key on the console: time", (trigger, late_ns) == ("hotkey", 0), told)
    found = sum(TYPED.encode() in section.lower() for section in rest)
    told = f"{found} of {len(rest)} sections have what was typed ({sum(map(len, rest)) >> 10} KiB)"
    results.met("hot key on the console: no text", rest and not found, told)


def console_lines(machine, results, screen, incident):
    """The person at the console reads of the mark, of its cause, and of the recording of keys."""
    symptom, *findings = machine.run(f"tipme diagnose {incident}", CAUSE_MAX_S, (0, 3)).splitlines()
    cause = symptom if symptom.startswith("No finding") else f"{symptom} {findings[0]}"
    for title, line in (("mark", f"marked {incident}"), ("cause", cause)):
        results.met(f"hot key on the console: {title}", *shown(machine, line))
    for code, line in (("0", "input is no longer recorded"), ("1", "input is recorded again")):
        screen.chord("ctrl", "alt", code)
        results.met(f"hot key on the console: {code}", *shown(machine, line))
    results.met("what was typed is on the screen", *shown(machine, TYPED, ""))


def console_stopped(machine, results, screen):
    """A console that was stopped by its user holds nothing up: the lines are lost, and that is told."""
    before = incidents(machine)
    lost = "journalctl -b -u tipmed -o cat | grep -c 'cannot write to the console' || true"
    earlier = int(machine.run(lost))
    screen.chord("ctrl", "s")
    screen.chord(*MARK_KEYS)
    incident = new_incident(machine, before)
    wait = f"for try in $(seq 40); do count=$({lost}); ((count > {earlier})) && break; sleep 0.5; done; echo $count"
    count = int(machine.run(wait)) - earlier
    screen.chord("ctrl", "q")
    results.met("hot key on a stopped console", incident is not None and count > 0, f"{incident}; {count} lines were lost")


def shown(machine, line, before="tipme: "):
    """Whether a line is on the text screen, waited for; and it, or what is there."""
    wanted = "".join(f"{before}{line}".split()).encode("ascii", "replace").decode()
    deadline, text = time.monotonic() + CAUSE_MAX_S, ""
    while time.monotonic() < deadline and wanted not in "".join(text.split()):
        time.sleep(0.5)
        text = machine.run("tr -d '\\0' < /dev/vcs1")
    met = wanted in "".join(text.split())
    return met, line if met else f"not on the screen: {line}; there: {text}"


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
    results.met(name, told[0][0] and ("is at work:" in told[0][1]) == (there == "enabled"), told[0][1])


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
