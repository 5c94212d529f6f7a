# SPDX-License-Identifier: MIT OR Apache-2.0
"""Clients and settings of the display that delay others: titles, keymaps, key grabs, fonts, a
second screen; CPU weights."""

import os
import time

from . import contention, fault, files, scripts, stopping
from .fault import Fault

TITLES = """
gate = os.path.join(HOME, "gate")
print("$ ", end="", flush=True)
open(gate).read()
until, number = time.monotonic() + 3, 0
while time.monotonic() < until:
    number += 1
    os.write(1, b"".join(b"\\033]0;building %d\\007" % (number * 99 + at) for at in range(99)))
log("end")
time.sleep(99)
"""
KEYMAP = """
import subprocess
print("ready")
for line in sys.stdin:
    print(now())
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        subprocess.run("xmodmap -pke | xmodmap -", shell=True)
"""


class Titles(Fault):
    """A terminal beside the victim renames its window continuously."""

    HOLD_S, bounded = 3.2, False

    @staticmethod
    def prepare(session):
        scripts.write(session, "titles", TITLES)
        os.mkfifo(session.folder / "home/gate")
        scripts.own(session.folder / "home/gate")

    def begin(self):
        (self.session.folder / "home/gate").write_text("go")
        time.sleep(0.6)


class Keymap(Fault):
    """A script changes the keymap repeatedly, and each client reads it each time."""

    HOLD_S, bounded = 2.6, False

    def settle(self):
        self.script = scripts.start(self.session, "helper", "keymap-sync", KEYMAP)

    def begin(self):
        fault.send(self.script)
        time.sleep(0.5)


class HotKeys(stopping.Stop):
    """A hot-key daemon grabs some keys synchronously, and is stopped: the keyboard waits for it."""

    PARAMETERS, who = {}, "daemon"

    @staticmethod
    def prepare(session):
        config = session.folder / "home/.config/sxhkd"
        config.mkdir()
        (config / "sxhkdrc").write_text("~x\n    true\n")
        scripts.own(config / "sxhkdrc")

    def ready(self):
        self.session.start("daemon", ["sxhkd"])
        time.sleep(0.5)


class FontPath(files.Remote):
    """The display server searches fonts in a directory on a file system that does not answer."""

    def begin(self):
        super().begin()
        words = ["sh", "-c", "xset fp+ $HOME/remote/"]
        self.session.start("setter", words)
        time.sleep(0.3)


class Mirrored(stopping.Stop):
    """A second terminal, which is stopped, shows the session of a terminal multiplexer."""

    PARAMETERS, who = {}, "beside"

    @staticmethod
    def prepare(session):
        scripts.write(session, "mirror", "until screen -x; do sleep 0.3; done\n", shell=True)


class Weighted(contention.Hogs):
    """The group of a role has a small weight, and busy processes of the same user have another
    one: `weighted server`."""

    PARAMETERS, kind, count = {"role": "program"}, "nice0", "6"

    def ready(self):
        self.group = self.grouped("cpu", "cpu.shares", self.role)

    def begin(self):
        self.group.set("cpu.shares", "2")
        super().begin()

    def end(self):
        at = super().end()
        self.group.set("cpu.shares", "1024")
        return at


FAULTS = {
    "titles": Titles, "keymap": Keymap, "hot-keys": HotKeys, "font-path": FontPath, "mirrored": Mirrored,
    "weighted": Weighted,
}  # fmt: skip
