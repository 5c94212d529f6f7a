# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scripts that a fault runs beside the victim: each has a name of its own, and logs its start
and end."""

import os
import subprocess
import time

from shared import until

from . import processes
from .fault import Fault

PRELUDE = """#!/usr/bin/python3 -Bu
import fcntl, os, select, socket, sys, threading, time
HOME = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
def log(word):
    with open(os.path.join(HOME, "fault.log"), "a") as file:
        print(word, now(), file=file)
def compute(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(2000))
def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
def hold():
    print("ready"); sys.stdin.readline()
def released(at=None):
    print(at or now()); sys.stdin.readline()
ANSWER = b"HTTP/1.0 200 OK\\r\\nContent-Length: 7\\r\\n\\r\\nanswer\\n"
def listening(backlog=8):
    server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(open(os.path.join(HOME, "port")).read()))); server.listen(backlog)
    return server
def in_thread(target, *words):
    threading.Thread(target=target, args=words, daemon=True).start()
def answer_late(server, answer):
    go = threading.Event()
    def serve():
        while True:
            one, _ = server.accept(); go.wait(); one.sendall(answer); one.close()
    in_thread(serve); hold(); go.set(); released()
"""


def own(path, mode=0o644):
    """Gives a file to the user of the session."""
    os.chown(path, processes.user().pw_uid, processes.user().pw_gid)
    os.chmod(path, mode)
    return path


def write(session, name, body, shell=False):
    """Writes an executable of the session; returns its path."""
    folder = session.folder / "home/bin"
    folder.mkdir(exist_ok=True)
    log = session.folder / "home/fault.log"
    if not log.exists():
        log.touch()
        own(log, 0o666)
    path = folder / name
    path.write_text(("#!/bin/sh\n" if shell else PRELUDE) + body)
    path.chmod(0o755)
    session.env["PATH"] = session.env["PATH"].removeprefix(f"{folder}:")
    session.env["PATH"] = f"{folder}:{session.env['PATH']}"
    return path


def start(session, role, name, body, *words, as_user=True):
    """Starts a script that prints a line when it is ready, and reads lines from its standard
    input."""
    path = write(session, name, body)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = session.start(role, [path, *words], as_user=as_user, **pipes)
    if not process.stdout.readline().startswith("ready"):
        raise session.failure(f"{name} did not start", role)
    return process


def run(words, session=None, **options):
    """Runs a command that must succeed."""
    env = session.env if session else None
    cwd = session.folder / "home" if session else None
    process = processes.start(words, env, cwd=cwd, stderr=subprocess.PIPE, text=True, **options)
    said = process.communicate(timeout=60)[1]
    if process.returncode != 0:
        raise processes.CannotRun(f"{words[0]} failed: {said.strip()[-300:]}")


def until_gone(session, name, timeout_s=15, quiet_s=0):
    """Waits until the program has had no descendant with a name for a while; returns the time of
    its end."""
    limit, last = time.monotonic() + timeout_s, processes.now_ns()
    while time.monotonic() < limit:
        if any(processes.comm(pid) == name for pid in processes.descendants(session.roles["program"])):
            last = processes.now_ns()
        elif processes.now_ns() - last >= quiet_s * 1e9:
            return last
        time.sleep(0.02)
    raise processes.CannotRun(f"{name} did not end")


class Logged(Fault):
    """A fault that ends by itself; its script logs the start and the end."""

    END_MAX_S = 15
    # A script that restarts this soon is the same fault.
    AGAIN_NS = 400_000_000

    def entries(self):
        """Returns the words of the log with their times."""
        lines = (self.session.folder / "home/fault.log").read_text().split("\n")[:-1] or ["nothing 0"]
        return [(line.split()[0], int(line.split()[1])) for line in lines]

    def end(self):
        """Returns the last logged end after the fault's start."""

        def ended():
            word, at = self.entries()[-1]
            return at if word == "end" and self.begun_ns < at < processes.now_ns() - self.AGAIN_NS else None

        return until(ended, "the fault did not end", self.END_MAX_S)

    def begin(self):
        self.begun_ns = processes.now_ns()
