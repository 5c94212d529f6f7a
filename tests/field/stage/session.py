# SPDX-License-Identifier: MIT OR Apache-2.0
"""A private session: display, bus, window manager, compositing manager, programs, recorder."""

import contextlib
import fcntl
import os
import pathlib
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from shared import until
from shared.programs import free_port, mark

from . import faults, inject, managers, processes, programs, screen, windows

SIZE = (1280, 800)
# Time without a change larger than a caret after which a screen is quiet.
QUIET_S = 0.8
CARET_PIXELS = 1500


@contextlib.contextmanager
def alone():
    """Serializes servers that choose their display number: two that choose at once may both take
    the same."""
    folder = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


class Session:
    """All parts of one run; `with` ends everything that was started."""

    def __init__(self, scenario, tipme):
        self.scenario, self.tipme = scenario, tipme
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tipme-field-"))
        self.log_lines, self.roles, self.env, self.at_close = [], {}, {}, []
        self.input = self.windows = self.screen = self.recorder = self.window = None

    def say(self, line):
        self.log_lines.append(f"{processes.now_ns() / 1e9:.3f} {line}")

    def __enter__(self):
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def open(self):
        self.make_folders()
        faults.prepare(self)
        self.start_display()
        self.start_recorder()
        self.start_input()
        programs.start(self)

    def start_display(self):
        """Starts display, bus, window manager, and the watcher of the screen."""
        self.start_server()
        self.start_bus()
        managers.start(self)
        self.windows = windows.Windows(self.display, self.folder / "authority")
        self.screen = screen.make(self)

    def start_input(self):
        self.input = inject.make(self.scenario.injector, self.env)

    def close(self):
        try:
            for undo in self.at_close:
                undo()
            if self.recorder:
                words = (self.folder / "recorder.log").read_text(errors="replace")[-600:].strip()
                self.say(f"recorder: exit code {self.recorder.poll()}: {words}")
                processes.end({self.recorder.pid})
            if self.windows:
                self.windows.close()
        except Exception as error:  # the display may be gone
            self.say(f"closing: {error}")
        processes.end_descendants()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_folders(self):
        entry = processes.user()
        for name in ("home", "run", "home/.config"):
            (self.folder / name).mkdir(mode=0o700)
        self.cookie = secrets.token_bytes(16)
        (self.folder / "authority").write_bytes(authority(self.cookie))
        self.port = free_port()
        (self.folder / "home/port").write_text(str(self.port))
        # The folder itself belongs to root: the recorder stores nothing where another user could
        # change it.
        for path in self.folder.rglob("*"):
            os.chown(path, entry.pw_uid, entry.pw_gid)
        os.chmod(self.folder, 0o755)
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games:/usr/sbin:/sbin",
            "HOME": str(self.folder / "home"), "USER": processes.USER, "LOGNAME": processes.USER, "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.folder / "run"), "XAUTHORITY": str(self.folder / "authority"),
            "SHELL": "/bin/bash", "TMPDIR": str(self.folder / "run"), "XDG_SESSION_TYPE": "x11",
        }  # fmt: skip

    def start(self, role, words, **options):
        """Starts a program of the session, under a role that names it in truth and verdict."""
        log = open(self.folder / f"{role}.log", "ab")
        process = processes.start(words, self.env, stderr=log, cwd=self.folder / "home", **options)
        log.close()
        self.roles[role] = process.pid
        self.say(f"{role}: pid {process.pid}: {' '.join(map(str, words))}")
        return process

    def failure(self, what, role):
        """Returns an error with the end of a program's log."""
        return processes.CannotRun(f"{what}: {(self.folder / f'{role}.log').read_text(errors='replace')[-400:]}")

    def start_server(self):
        width, height = SIZE
        words = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-noreset", "-screen", "0", f"{width}x{height}x24"]
        words += ["-auth", self.folder / "authority"]
        with alone():
            server = self.start("server", words, stdout=subprocess.PIPE, text=True)
            number = server.stdout.readline().strip()
        if not number.isdigit():
            raise processes.CannotRun("the X server did not start")
        (self.folder / "authority").write_bytes(authority(self.cookie, number))
        self.display = f":{number}"
        self.env["DISPLAY"] = self.display

    def start_bus(self):
        words = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
        bus = self.start("bus", words, stdout=subprocess.PIPE, text=True)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()

    def owner(self, which):
        """Returns the command of a program that owns a selection, and serves its requests."""
        text = self.folder / "home/copied"
        text.write_text("pasted text")
        os.chmod(text, 0o644)
        return ["xclip", "-quiet", "-selection", which, "-in", text]

    def record_options(self):
        return ("--display", self.display)

    def start_recorder(self):
        state = self.folder / "state"
        words = [self.tipme, "record", "--state-dir", state, "--hot-keys", "off", *self.record_options()]
        self.recorder = self.start("recorder", words, as_user=False, stdout=subprocess.PIPE, text=True)
        listens = lambda: any(path.is_socket() for path in state.rglob("*"))  # noqa: E731
        if not until(lambda: listens() or self.recorder.poll() is not None, None, 15, 0.1) or not listens():
            raise self.failure("the recorder did not start", "recorder")
        time.sleep(0.5)

    def mark(self, to):
        """Marks, and stores the incident."""
        at = processes.now_ns()
        shutil.copyfile(mark(self.tipme, self.folder / "state")[1], to)
        return at

    def wait_quiet(self, timeout_s=20):
        """Waits until the screen has not changed for a while, except for carets."""
        def is_quiet():
            large = [change for change in self.screen.changes() if change[3] * change[4] > CARET_PIXELS]
            return not large or processes.now_ns() - large[-1][0] > QUIET_S * 1e9

        time.sleep(0.2)
        return bool(until(is_quiet, None, timeout_s, 0.2))

    def place(self):
        return self.windows.place(self.window)


def authority(cookie, number=""):
    """Returns Xauthority entries: one for every display and host, and one for this host, which
    some libraries require."""

    def counted(data):
        return struct.pack(">H", len(data)) + data

    def entry(family, address, display):
        parts = (address, display.encode(), b"MIT-MAGIC-COOKIE-1", cookie)
        return struct.pack(">H", family) + b"".join(counted(part) for part in parts)

    return entry(256, socket.gethostname().encode(), number) + entry(65535, b"", "")
