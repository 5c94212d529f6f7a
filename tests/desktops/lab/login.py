# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sessions of a desktop, one after the other, as an ordinary user has them; the recorder goes on from one to the next.

What a display manager does is done here: it starts display server, bus and session, and ends the server when the session
has ended.
"""

import os
import pathlib
import shutil
import subprocess
import time

from stage import inject, processes, session, windows
from stage.windows import Place

from . import bus, picture
from .person import Person

LOGIN_MAX_S, LOGOUT_MAX_S = 40, 20
# By these a session manager and a compositor know a program that they have started.
OF_ONE_PROGRAM = ("DESKTOP_AUTOSTART_ID", "WAYLAND_SOCKET")
# What opens pages: it keeps where they are.
BROWSER = """#!/bin/sh
echo "$@" >>{home}/opened
"""
ENTRY = """[Desktop Entry]
Type=Application
Name=Test browser
Exec={home}/browser %u
MimeType=text/html;x-scheme-handler/http;x-scheme-handler/https;x-scheme-handler/file;
"""
DEFAULTS = """[Default Applications]
text/html=test-browser.desktop
x-scheme-handler/http=test-browser.desktop
x-scheme-handler/https=test-browser.desktop
"""


class Login(Person, session.Session):
    """A person with a home, and the desktop's session under X11."""

    SIZE = session.SIZE

    def __init__(self, desktop, tipme, keep):
        super().__init__(None, tipme)
        self.desktop, self.keep = desktop, keep
        self.ear = self.camera = None

    def open(self):
        self.make_folders()
        self.furnish()
        self.outside = dict(self.env)
        self.start_recorder()
        self.log_in()

    def close(self):
        """Keeps the logs of all that ran."""
        (self.keep / "lab.log").write_text("\n".join(self.log_lines) + "\n")
        for log in self.folder.glob("*.log"):
            shutil.copy(log, self.keep)
        super().close()

    def furnish(self):
        """Puts the program under test in its place, and a browser that shows nothing into the home."""
        home = self.folder / "home"
        (self.folder / "bin").mkdir(mode=0o755)
        if self.desktop.prepare:
            self.desktop.prepare(self, *self.SIZE)
        # Without symbols, as a package installs it: KWin reads the whole file of each program that connects.
        subprocess.run(["strip", "-o", self.folder / "bin/tipme", self.tipme], check=True)
        self.tipme = self.folder / "bin/tipme"
        self.env |= {"PATH": f"{self.folder}/bin:{self.env['PATH']}", "XDG_CURRENT_DESKTOP": self.desktop.current, **self.desktop.env}
        for name, text in (("browser", BROWSER), (".local/share/applications/test-browser.desktop", ENTRY),
                           (".config/mimeapps.list", DEFAULTS), ("note.txt", "")):  # fmt: skip
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(home=home))
        (home / "browser").chmod(0o755)
        entry = processes.user()
        for path in home.rglob("*"):
            os.chown(path, entry.pw_uid, entry.pw_gid)
        self.configuration = bus.configure(self.folder, self.desktop.server)

    def start_recorder(self):
        """As the machine has it: for all displays, and before anybody logs in."""
        state = self.folder / "state"
        words = [self.tipme, "record", "--state-dir", state, "--hot-keys", "off", "--allow-user", processes.USER]
        self.recorder = self.start("recorder", words, as_user=False, stdout=subprocess.DEVNULL)
        limit = time.monotonic() + 15
        while not any(path.is_socket() for path in state.rglob("*")):
            if self.recorder.poll() is not None or time.monotonic() > limit:
                raise processes.CannotRun("the recorder did not start: " + (self.folder / "recorder.log").read_text()[-400:])
            time.sleep(0.1)

    def start_bus(self):
        words = ["dbus-daemon", f"--config-file={self.configuration}", "--nofork", "--nopidfile", "--print-address=1"]
        daemon = self.start("bus", words, stdout=subprocess.PIPE, text=True)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = daemon.stdout.readline().strip()
        if self.desktop.needs_system_bus:
            words = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
            daemon = self.start("system-bus", words, stdout=subprocess.PIPE, text=True)
            self.env["DBUS_SYSTEM_BUS_ADDRESS"] = daemon.stdout.readline().strip()

    def log_in(self):
        """Display server, bus and session, until all parts of the desktop run and the screen is quiet."""
        self.env = dict(self.outside)
        self.start_display()
        self.start("session", self.desktop.session)
        self.await_parts()
        self.take_environment()
        self.ear = bus.Ear(self)
        self.start_input()
        self.await_quiet()
        if self.desktop.ready:
            self.run(self.desktop.ready)
            self.await_quiet()

    def start_display(self):
        self.start_server()
        self.start_bus()

    def start_input(self):
        self.input = inject.make("lasting", self.env)
        self.windows = windows.Windows(self.display, self.folder / "authority")

    def await_parts(self):
        limit = time.monotonic() + LOGIN_MAX_S
        missing = set(self.desktop.parts)
        while missing:
            running = {processes.comm(pid) for pid in processes.descendants()}
            missing = {part for part in self.desktop.parts if part[:15] not in running}
            if time.monotonic() > limit:
                raise processes.CannotRun(f"no {', '.join(sorted(missing))} after {LOGIN_MAX_S} s")
            time.sleep(0.2)

    def take_environment(self):
        """What the session gives to the programs of a person, such as where its displays are."""
        known = next(pid for pid in processes.descendants() if processes.comm(pid) == self.desktop.parts[-1][:15])
        entries = pathlib.Path(f"/proc/{known}/environ").read_bytes().decode(errors="replace").split("\0")
        self.env |= {name: value for name, _, value in (one.partition("=") for one in entries) if name and name not in OF_ONE_PROGRAM}

    def log_out(self):
        """Leaves as the desktop has it; how long that took, None where it did not end."""
        begin, leader = time.monotonic(), self.roles["session"]
        self.run(self.desktop.leave)
        while processes.status(leader) and processes.status(leader)[0] != "Z":
            if time.monotonic() > begin + LOGOUT_MAX_S:
                return None
            processes.reap()
            time.sleep(0.1)
        took = time.monotonic() - begin
        if self.windows:
            self.windows.close()
            self.windows = None
        self.end_server()
        return took

    def end_server(self):
        processes.end({self.roles["server"]})

    def end_rest(self):
        """Ends what is left of a session, as the service manager does."""
        left = processes.descendants() - processes.descendants(self.recorder.pid) - {self.recorder.pid}
        processes.end(left)
        processes.reap()

    def agent(self):
        """The process id of the agent; nothing where there is none."""
        for pid in processes.descendants():
            words = processes.command_line(pid).split()
            if words[:2] == [str(self.tipme), "agent"] and processes.status(pid)[0] != "Z":
                return pid
        return None

    def run(self, words, timeout_s=40):
        """Runs a command of the person to its end: exit code and all that it said."""
        command = processes.start(words, self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder / "home")
        try:
            said = command.communicate(timeout=timeout_s)[0]
        except subprocess.TimeoutExpired:
            command.kill()
            return -1, f"{words[0]} took more than {timeout_s} s"
        self.say(f"{' '.join(map(str, words))}: {command.returncode}: {said}")
        return command.returncode, said

    def ask(self, *words):
        """Runs tipme, with the recorder of this test."""
        return self.run([self.tipme, *words, "--state-dir", self.folder / "state"])

    def grab(self, place=None):
        """A picture of the screen, or of a part."""
        os.environ["XAUTHORITY"] = str(self.folder / "authority")
        return self.desktop.grab(self, place)

    def await_quiet(self, timeout_s=20):
        """Waits until two pictures in a row show the same, clocks and carets aside."""
        limit, before = time.monotonic() + timeout_s, self.grab()
        whole = Place(0, 0, before.width, before.height)
        while time.monotonic() < limit:
            time.sleep(0.7)
            after = self.grab()
            if picture.changed(before, after, whole) is None and not picture.is_blank(after):
                return after
            before = after
        self.say("the screen did not become quiet")
        return before
