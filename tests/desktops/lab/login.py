# SPDX-License-Identifier: MIT OR Apache-2.0
"""Successive sessions of a desktop for an ordinary user; the recorder runs through all of them.

This module does the work of a display manager: it starts display server, bus and session, and ends the server after the
session.
"""

import os
import pathlib
import shutil
import subprocess
import time

from shared import until
from stage import inject, processes, session, windows
from stage.windows import Place

from . import bus, picture
from .person import Person

LOGIN_MAX_S, LOGOUT_MAX_S = 40, 20
# Variables by which a session manager or compositor identifies a program that it started.
OF_ONE_PROGRAM = ("DESKTOP_AUTOSTART_ID", "WAYLAND_SOCKET")
# Browser, which only stores addresses.
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
    """A user with a home, and the desktop's session under X11."""

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
        """Keeps all logs."""
        (self.keep / "lab.log").write_text("\n".join(self.log_lines) + "\n")
        for log in self.folder.glob("*.log"):
            shutil.copy(log, self.keep)
        super().close()

    def furnish(self):
        """Installs the tested program, and a browser without a window."""
        home = self.folder / "home"
        (self.folder / "bin").mkdir(mode=0o755)
        if self.desktop.prepare:
            self.desktop.prepare(self, *self.SIZE)
        # Without symbols, like in a package: KWin reads the complete file of each client.
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

    def record_options(self):
        """Records all displays for the user, as the system's service does."""
        return ("--allow-user", processes.USER)

    def start_bus(self):
        words = ["dbus-daemon", f"--config-file={self.configuration}", "--nofork", "--nopidfile", "--print-address=1"]
        daemon = self.start("bus", words, stdout=subprocess.PIPE, text=True)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = daemon.stdout.readline().strip()
        if self.desktop.needs_system_bus:
            words = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
            daemon = self.start("system-bus", words, stdout=subprocess.PIPE, text=True)
            self.env["DBUS_SYSTEM_BUS_ADDRESS"] = daemon.stdout.readline().strip()

    def log_in(self):
        """Starts display server, bus and session; waits for all parts of the desktop and a quiet screen."""
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
        if not until(lambda: not self.missing(), None, LOGIN_MAX_S, 0.2):
            raise processes.CannotRun(f"no {', '.join(self.missing())} after {LOGIN_MAX_S} s")

    def missing(self):
        running = {processes.comm(pid) for pid in processes.descendants()}
        return [part for part in self.desktop.parts if part[:15] not in running]

    def take_environment(self):
        """Takes over the session's environment for the user's programs, such as the names of displays."""
        known = next(pid for pid in processes.descendants() if processes.comm(pid) == self.desktop.parts[-1][:15])
        entries = pathlib.Path(f"/proc/{known}/environ").read_bytes().decode(errors="replace").split("\0")
        self.env |= {name: value for name, _, value in (one.partition("=") for one in entries) if name and name not in OF_ONE_PROGRAM}

    def log_out(self):
        """Ends the session by the desktop's command; returns the duration, or None on a timeout."""
        begin, leader = time.monotonic(), self.roles["session"]
        self.run(self.desktop.leave)
        if not until(lambda: processes.reap() or not is_running(leader), None, LOGOUT_MAX_S, 0.1):
            return None
        took = time.monotonic() - begin
        if self.windows:
            self.windows.close()
            self.windows = None
        self.end_server()
        return took

    def end_server(self):
        processes.end({self.roles["server"]})

    def end_rest(self):
        """Ends the remaining processes of a session, like a service manager."""
        left = processes.descendants() - processes.descendants(self.recorder.pid) - {self.recorder.pid}
        processes.end(left)
        processes.reap()

    def agent(self):
        """Returns the process id of the agent, or None."""
        for pid in processes.descendants():
            words = processes.command_line(pid).split()
            if words[:2] == [str(self.tipme), "agent"] and is_running(pid):
                return pid
        return None

    def run(self, words, timeout_s=40):
        """Runs a command of the user; returns exit code and output."""
        command = processes.start(words, self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder / "home")
        try:
            said = command.communicate(timeout=timeout_s)[0]
        except subprocess.TimeoutExpired:
            command.kill()
            return -1, f"{words[0]} took more than {timeout_s} s"
        self.say(f"{' '.join(map(str, words))}: {command.returncode}: {said}")
        return command.returncode, said

    def ask(self, *words):
        """Runs tipme with the recorder of this test."""
        return self.run([self.tipme, *words, "--state-dir", self.folder / "state"])

    def grab(self, place=None):
        """Returns a picture of the screen or a part of it."""
        os.environ["XAUTHORITY"] = str(self.folder / "authority")
        return self.desktop.grab(self, place)

    def await_quiet(self, timeout_s=20):
        """Waits for two equal pictures in a row, except for clocks and carets."""
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


def is_running(pid):
    found = processes.status(pid)
    return bool(found) and found[0] != "Z"
