# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Debian package under systemd: install, setup by a user, use with a real keyboard, reinstall, remove, purge.

The user has sudo, and a session with a notification daemon, whose messages are read from the session bus.
"""

import datetime
import json
import pathlib
import re
import shutil
import time

from shared import until

from . import conditions
from .checks import boot, copy_tools, open_desktop
from .guests import USER, USER_ID
from .machine import Failed
from .marks import MARK_KEYS, incidents
from .places import TOOLS, cache
from .screen import Screen

INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
# Environment of the user's session, for programs started from outside.
SESSION = {
    "HOME": f"/home/{USER}", "USER": USER, "LANG": "C.UTF-8",
    "DISPLAY": ":0", "XAUTHORITY": f"/home/{USER}/.Xauthority",
    "XDG_RUNTIME_DIR": f"/run/user/{USER_ID}", "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{USER_ID}/bus",
}  # fmt: skip
BUS_LOG = "/run/tipme-vm/bus.log"
# Maximum durations in seconds: of package commands, of the setup with its test press, of a verdict.
PACKAGE_MAX_S, SETUP_MAX_S, VERDICT_MAX_S = 300, 240, 240
# Duration for which the terminal is stopped, in seconds.
HITCH_S = 1.5


def check_all(machine, results, deb):
    results.release = machine.kernel.release
    met_with = lambda *both: conditions.check(*both, as_person)  # noqa: E731
    steps = (boot, lambda *both: install(*both, deb), desktop, setup, hitch, journal, met_with, upgrade, remove, purge)
    for step in steps:
        step(machine, results)


def as_person(command):
    """Returns a command that runs as the user, in the session."""
    settings = " ".join(f"{name}={value}" for name, value in SESSION.items())
    return f"cd / && runuser -u {USER} -- env -i PATH=$PATH {settings} {command}"


def begin(machine, command, more=""):
    """Starts a program of the user in the background."""
    settings = " ".join(f"-E {name}={value}" for name, value in SESSION.items())
    name = f"tipme-vm-{command.split()[0]}"
    machine.run(f"systemd-run -q --unit {name} --uid {USER} {settings} {more} {command}")


def state(machine):
    """Returns whether the recorder's service runs, whether it is enabled, and its process."""
    return machine.properties("ActiveState", "UnitFileState", "MainPID")


def install(machine, results, deb):
    with machine.staging() as staging:
        copy_tools(staging)
        (staging / "root").mkdir(mode=0o700)
        shutil.copy(deb, staging / "root/tipme.deb")
    machine.run(f"{INSTALL} install /root/tipme.deb", PACKAGE_MAX_S)
    version = machine.run("tipme --version").strip()
    active, enabled, _ = state(machine)
    detail = f"{version}; the service is {active} and {enabled}"
    results.met("apt install", (active, enabled) == ("inactive", "disabled"), detail)


def desktop(machine, results):
    """Starts a display, a focused terminal, a notification daemon, and a monitor of the session bus."""
    machine.run(f"echo '{USER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/person && chmod 440 /etc/sudoers.d/person")
    pid = open_desktop(machine)
    begin(machine, "dunst")
    begin(machine, "dbus-monitor interface=org.freedesktop.Notifications", f"-p StandardOutput=file:{BUS_LOG}")
    owner = "dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetNameOwner"
    machine.retry(as_person(f"{owner} string:org.freedesktop.Notifications"), 120)
    results.met("desktop", True, f"xterm (pid {pid}) has the focus, dunst has its name")


def setup(machine, results):
    """Runs the setup, which ends with a test press of the hot key."""
    said = machine.run(as_person("tipme setup --yes </dev/null"), SETUP_MAX_S, codes=(0, 1))
    active, enabled, _ = state(machine)
    met = (active, enabled) == ("active", "enabled") and "A test press marked" in said
    results.met("tipme setup --yes", met, said)
    heading = machine.run(as_person("tipme doctor | head -n 1"), 120).strip()
    results.met("doctor afterwards", heading.startswith("Ready: yes"), heading)


def hitch(machine, results):
    """Checks a hitch, the hot key, the notification with the cause, and that the focus does not change."""
    before, screen = incidents(machine), Screen(machine)
    pid = machine.focused()
    time.sleep(42)  # Moves the test press of the setup out of the window.
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
    detail = f"{shown_s - marked_s(marked[0]):.1f} s after the press (bar 3 s on a quiet machine): {summary}: {body}"
    results.met("the notification", "xterm" in summary and "power-saver" in body, detail)
    after = machine.focused()
    results.met("the focus", after == pid, f"xterm (pid {after}) has it, as before")


def notices(machine):
    """Returns the notifications: time in seconds, summary and body."""
    log = machine.run(f"cat {BUS_LOG}")
    calls = [call for call in re.split(r"^(?=method )", log, flags=re.MULTILINE) if "member=Notify" in call]
    shown = []
    for call in calls:
        # Program name, icon, summary and body, which has several lines.
        strings = re.findall(r'^ {3}string "(.*?)"\n(?= {3}\S)', call, re.MULTILINE | re.DOTALL)
        summary, body, *_ = [*strings[2:], "", ""]
        shown.append((float(re.search(r"time=([0-9.]+)", call)[1]), summary, body))
    return shown


def await_verdict(machine, known):
    """Waits for the second notification; the first one confirms the press immediately."""
    if not until(lambda: notices(machine)[known:][1:], None, VERDICT_MAX_S, 0.5):
        raise Failed(f"no verdict was shown, only {notices(machine)}")
    return notices(machine)[-1]


def marked_s(incident):
    """Returns the time of an incident's mark, from its id."""
    time_of_day = datetime.datetime.strptime(incident.split("-")[0], "%Y%m%dT%H%M%S.%fZ")
    return time_of_day.replace(tzinfo=datetime.timezone.utc).timestamp()


def keep_picture(machine):
    path = cache() / "package" / f"{machine.kernel.series}.png"
    path.parent.mkdir(exist_ok=True)
    machine.control.call("screendump", filename=str(path), format="png")


def journal(machine, results):
    """Checks the journal entries of marks, and that there are no warnings."""
    machine.run("journalctl --sync")
    marks = entries(machine, "MESSAGE_ID=5f24f596fabd4dedad9f0b33e9367209")
    detail = [(one["MESSAGE"], one["PRIORITY"], one["TIPME_USER"]) for one in marks]
    known = {pathlib.PurePath(path).stem for path in incidents(machine)}
    results.met("journal", {one["TIPME_INCIDENT"] for one in marks} == known and len(marks) > 1, detail)
    loud = entries(machine, "-p warning")
    results.met("journal, warnings", not loud, [one["MESSAGE"] for one in loud] or "none")


def entries(machine, which):
    text = machine.run(f"journalctl -b -q -t tipme -o json {which} || true")
    return [json.loads(line) for line in text.splitlines()]


def upgrade(machine, results):
    """Reinstalls the package; the service must continue as a new process, with its settings."""
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
    detail = f"the service is {active}, its process {left or 'gone'}, incidents kept: {kept}"
    results.met("remove", active != "active" and not left and kept, detail)


def purge(machine, results):
    machine.run(f"{INSTALL} purge tipme", PACKAGE_MAX_S)
    # Without the files of the test bed itself.
    others = "-not -name '*tipme-vm*' -not -path '/usr/local/*' -not -path '/run/udev/*'"
    left = machine.run(f"find /etc /usr /var /run -xdev -name '*tipme*' {others}").split()
    results.met("purge", not left, left or "nothing is left")
