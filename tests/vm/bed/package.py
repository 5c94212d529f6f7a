# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Debian package where systemd runs: installed, set up by the person, used with a real keyboard, removed, purged.

The person has a session with a notification daemon, and sudo. What the daemon receives is read from the session bus.
"""

import datetime
import json
import pathlib
import re
import shutil
import tempfile
import time

from shared import until

from . import conditions
from .checks import FOCUS_MAX_S, boot, copy_tools
from .guests import USER, USER_ID
from .machine import Failed
from .marks import MARK_KEYS, incidents
from .places import TOOLS, cache
from .screen import Screen

INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
# The person's session, for programs that are started from outside.
SESSION = {
    "HOME": f"/home/{USER}", "USER": USER, "LANG": "C.UTF-8",
    "DISPLAY": ":0", "XAUTHORITY": f"/home/{USER}/.Xauthority",
    "XDG_RUNTIME_DIR": f"/run/user/{USER_ID}", "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{USER_ID}/bus",
}  # fmt: skip
BUS_LOG = "/run/tipme-vm/bus.log"
# The longest waits, in seconds: for packages, for the set-up with its test press, for a verdict.
PACKAGE_MAX_S, SETUP_MAX_S, VERDICT_MAX_S = 300, 240, 240
# The terminal stands still for so long, in seconds.
HITCH_S = 1.5


def check_all(machine, results, deb):
    results.release = machine.kernel.release
    met_with = lambda *both: conditions.check(*both, as_person)  # noqa: E731
    steps = (boot, lambda *both: install(*both, deb), desktop, setup, hitch, journal, met_with, upgrade, remove, purge)
    for step in steps:
        step(machine, results)


def as_person(command):
    """A command of the person, in the session."""
    settings = " ".join(f"{name}={value}" for name, value in SESSION.items())
    return f"cd / && runuser -u {USER} -- env -i PATH=$PATH {settings} {command}"


def begin(machine, command, more=""):
    """A program of the person that goes on."""
    settings = " ".join(f"-E {name}={value}" for name, value in SESSION.items())
    name = f"tipme-vm-{command.split()[0]}"
    machine.run(f"systemd-run -q --unit {name} --uid {USER} {settings} {more} {command}")


def state(machine):
    """Whether the recorder's service runs, whether it is enabled, and its process."""
    shown = machine.run("systemctl show -p ActiveState -p UnitFileState -p MainPID tipmed")
    known = dict(line.split("=", 1) for line in shown.splitlines())
    return known["ActiveState"], known["UnitFileState"], known["MainPID"]


def install(machine, results, deb):
    staging = pathlib.Path(tempfile.mkdtemp(prefix="tipme-vm-stage-"))
    try:
        copy_tools(staging)
        (staging / "root").mkdir(mode=0o700)
        shutil.copy(deb, staging / "root/tipme.deb")
        machine.copy_in(staging)
    finally:
        shutil.rmtree(staging)
    machine.run(f"{INSTALL} install /root/tipme.deb", PACKAGE_MAX_S)
    version = machine.run("tipme --version").strip()
    active, enabled, _ = state(machine)
    told = f"{version}; the service is {active} and {enabled}"
    results.met("apt install", (active, enabled) == ("inactive", "disabled"), told)


def desktop(machine, results):
    """A display, a terminal with the focus, a notification daemon, and an ear on the session bus."""
    machine.run(f"echo '{USER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/person && chmod 440 /etc/sudoers.d/person")
    machine.run("systemctl start tipme-vm-display", 120)
    machine.run("systemctl start tipme-vm-desktop")
    pid = machine.run(f"{TOOLS}/await-focus", FOCUS_MAX_S).strip()
    begin(machine, "dunst")
    begin(machine, "dbus-monitor interface=org.freedesktop.Notifications", f"-p StandardOutput=file:{BUS_LOG}")
    owner = "dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetNameOwner"
    asked = as_person(f"{owner} string:org.freedesktop.Notifications")
    machine.run(f"for try in $(seq 100); do {asked} && exit 0; sleep 0.5; done; exit 1", 120)
    results.met("desktop", True, f"xterm (pid {pid}) has the focus, dunst has its name")


def setup(machine, results):
    """What the person does: one command, which ends with a press of the key."""
    said = machine.run(as_person("tipme setup --yes </dev/null"), SETUP_MAX_S, codes=(0, 1))
    active, enabled, _ = state(machine)
    met = (active, enabled) == ("active", "enabled") and "A test press marked" in said
    results.met("tipme setup --yes", met, said)
    heading = machine.run(as_person("tipme doctor | head -n 1"), 120).strip()
    results.met("doctor afterwards", heading.startswith("Ready: yes"), heading)


def hitch(machine, results):
    """A hitch, the key, and what the notification daemon receives. The focus stays where it was."""
    before, screen = incidents(machine), Screen(machine)
    pid = machine.run(f"{TOOLS}/await-focus", FOCUS_MAX_S).strip()
    time.sleep(42)  # The test press of the set-up is out of the window.
    screen.await_quiet()
    for letter in "asdfghjkl":
        screen.press(letter)
    with machine.begun(f"{TOOLS}/power-saver {pid} {HITCH_S}", 30, "begun"):
        time.sleep(0.3)
        screen.press("a", quiet=False)
    time.sleep(0.5)
    known = len(notices(machine))
    screen.chord(*MARK_KEYS)
    shown_s, summary, body = await_verdict(machine, known)
    screen.await_quiet()
    keep_picture(machine)
    marked = [pathlib.PurePath(path).stem for path in incidents(machine) - before]
    results.met("the key", len(marked) == 1, f"marked {' '.join(marked)}")
    told = f"{shown_s - marked_s(marked[0]):.1f} s after the press (bar 3 s on a quiet machine): {summary}: {body}"
    results.met("the notification", "xterm" in summary and "power-saver" in body, told)
    after = machine.run(f"{TOOLS}/await-focus", FOCUS_MAX_S).strip()
    results.met("the focus", after == pid, f"xterm (pid {after}) has it, as before")


def notices(machine):
    """What was shown: time in seconds, summary and body."""
    log = machine.run(f"cat {BUS_LOG}")
    calls = [call for call in re.split(r"^(?=method )", log, flags=re.MULTILINE) if "member=Notify" in call]
    shown = []
    for call in calls:
        # The program's name, an icon, the summary and the body; a body has several lines.
        strings = re.findall(r'^ {3}string "(.*?)"\n(?= {3}\S)', call, re.MULTILINE | re.DOTALL)
        summary, body, *_ = [*strings[2:], "", ""]
        shown.append((float(re.search(r"time=([0-9.]+)", call)[1]), summary, body))
    return shown


def await_verdict(machine, known):
    """The notification after the one that says at once that the press was seen."""
    if not until(lambda: notices(machine)[known:][1:], None, VERDICT_MAX_S, 0.5):
        raise Failed(f"no verdict was shown, only {notices(machine)}")
    return notices(machine)[-1]


def marked_s(incident):
    """When an incident was marked, as its id says."""
    time_of_day = datetime.datetime.strptime(incident.split("-")[0], "%Y%m%dT%H%M%S.%fZ")
    return time_of_day.replace(tzinfo=datetime.timezone.utc).timestamp()


def keep_picture(machine):
    path = cache() / "package" / f"{machine.kernel.series}.png"
    path.parent.mkdir(exist_ok=True)
    machine.control.call("screendump", filename=str(path), format="png")


def journal(machine, results):
    """The journal has marks and causes with fields."""
    machine.run("journalctl --sync")
    marks = entries(machine, "MESSAGE_ID=5f24f596fabd4dedad9f0b33e9367209")
    told = [(one["MESSAGE"], one["PRIORITY"], one["TIPME_USER"]) for one in marks]
    known = {pathlib.PurePath(path).stem for path in incidents(machine)}
    results.met("journal", {one["TIPME_INCIDENT"] for one in marks} == known and len(marks) > 1, told)
    loud = entries(machine, "-p warning")
    results.met("journal, warnings", not loud, [one["MESSAGE"] for one in loud] or "none")


def entries(machine, which):
    text = machine.run(f"journalctl -b -q -t tipme -o json {which} || true")
    return [json.loads(line) for line in text.splitlines()]


def upgrade(machine, results):
    """The service that runs is another process afterwards."""
    _, _, pid = state(machine)
    before = machine.run("cat /etc/default/tipme")
    machine.run(f"{INSTALL} install --reinstall /root/tipme.deb", PACKAGE_MAX_S)
    active, enabled, now = state(machine)
    kept = machine.run("cat /etc/default/tipme") == before
    met = (active, enabled) == ("active", "enabled") and now != pid and kept
    results.met("reinstall", met, f"{active}, {enabled}, process {pid} became {now}, settings kept: {kept}")


def remove(machine, results):
    before = incidents(machine)
    machine.run(f"{INSTALL} remove tipme", PACKAGE_MAX_S)
    left = machine.run("pgrep -f '^/usr/bin/tipme record' || true").strip()
    kept = incidents(machine) == before and bool(before)
    active = state(machine)[0]
    told = f"the service is {active}, its process {left or 'gone'}, incidents kept: {kept}"
    results.met("remove", active != "active" and not left and kept, told)


def purge(machine, results):
    machine.run(f"{INSTALL} purge tipme", PACKAGE_MAX_S)
    # What the test bed has brought itself is not meant.
    others = "-not -name '*tipme-vm*' -not -path '/usr/local/*' -not -path '/run/udev/*'"
    left = machine.run(f"find /etc /usr /var /run -xdev -name '*tipme*' {others}").split()
    results.met("purge", not left, left or "nothing is left")
