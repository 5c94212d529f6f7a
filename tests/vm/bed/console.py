# SPDX-License-Identifier: MIT OR Apache-2.0
"""Keys on the text console: the hot key and the recorder's messages on the screen."""

import json

from shared import until
from shared.incident import sections

from .marks import FILE_MAX_S, MARK_KEYS, incidents, new_incident
from .places import TOOLS
from .results import ABSENT
from .screen import Screen

# Text to type on the console, a word that occurs nowhere else; maximum wait for a line there, in seconds.
TYPED, CAUSE_MAX_S = "jackdaws", 180


def console(machine, results):
    """Checks keys without a display, with a program that reads them."""
    machine.run("systemd-run -q --unit tipme-vm-reader -p StandardInput=tty -p TTYPath=/dev/tty1 cat")
    try:
        console_keys(machine, results)
    finally:
        machine.run("systemctl stop tipme-vm-reader")


def console_keys(machine, results):
    """Checks the kernel's time stamps and the hot key."""
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
    """Checks that the mark has the time of the press, and that the file does not contain the typed text."""
    (_, meta), *others = sections(machine.read(incident))
    rest = [body for _, body in others]
    meta = json.loads(meta)
    late_ns, trigger = meta["mark_ns"] - stamp, meta["trigger"]
    detail = f"trigger {trigger}, the mark {late_ns} ns after the device's stamp"
    results.met("hot key on the console: time", (trigger, late_ns) == ("hotkey", 0), detail)
    found = sum(TYPED.encode() in section.lower() for section in rest)
    detail = f"{found} of {len(rest)} sections have what was typed ({sum(map(len, rest)) >> 10} KiB)"
    results.met("hot key on the console: no text", rest and not found, detail)


def console_lines(machine, results, screen, incident):
    """Checks the messages on the mark, its cause, and the recording of keys."""
    symptom, *findings = machine.run(f"tipme diagnose {incident}", CAUSE_MAX_S, (0, 3)).splitlines()
    cause = symptom if symptom.startswith("No finding") else f"{symptom} {findings[0]}"
    for title, line in (("mark", f"marked {incident}"), ("cause", cause)):
        results.met(f"hot key on the console: {title}", *shown(machine, line))
    for code, line in (("0", "input is no longer recorded"), ("1", "input is recorded again")):
        screen.chord("ctrl", "alt", code)
        results.met(f"hot key on the console: {code}", *shown(machine, line))
    results.met("what was typed is on the screen", *shown(machine, TYPED, ""))


def console_stopped(machine, results, screen):
    """Checks that a console stopped by Ctrl-S blocks nothing, and that its lost lines are logged."""
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
    """Waits for a line on the text screen; returns whether it came, and the line or the screen's text."""
    wanted = "".join(f"{before}{line}".split()).encode("ascii", "replace").decode()
    read = lambda: machine.run("tr -d '\\0' < /dev/vcs1")  # noqa: E731
    met = until(lambda: wanted in "".join(read().split()), None, CAUSE_MAX_S, 0.5)
    return bool(met), line if met else f"not on the screen: {line}; there: {read()}"
