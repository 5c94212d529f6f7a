# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs for the duration of a block, with a private display, and their output."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

from . import CannotRun, exit_code
from .machine import ROOT, TIPME

# Time limit for a program's start and end, in seconds.
READY_S = 60


@contextlib.contextmanager
def program(words, end_by=signal.SIGTERM, **more):
    """Runs a program during a block."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([str(word) for word in words], text=True, **quiet | more)
    try:
        yield process
    finally:
        process.send_signal(end_by)
        try:
            process.wait(timeout=READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(process, begin):
    """Waits for a line with this beginning, and returns it; discards all later output."""
    late, said = threading.Timer(READY_S, process.kill), []
    late.start()
    found = False
    for line in process.stdout:
        said.append(line.strip())
        if found := line.startswith(begin):
            break
    late.cancel()
    if not found:
        raise CannotRun(f"{process.args[0]} is not ready: {' / '.join(said) or 'no output'}")
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return said[-1]


def expect_alive(process):
    if process.poll() is not None:
        words = process.stderr.read() if process.stderr else ""
        raise CannotRun(f"{process.args[0]} ended with code {process.returncode}: {words.strip()}")


@contextlib.contextmanager
def display():
    """Runs a private X server with a window manager; returns its name."""
    words = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-noreset", "-screen", "0", "1024x768x24"]
    with program(words, stdout=subprocess.PIPE) as server:
        name = ":" + wait_for(server, "")
        with program(["openbox", "--sm-disable"], env=os.environ | {"DISPLAY": name}):
            yield name


@contextlib.contextmanager
def manager(tipme, name, state, *more):
    """Runs a manager of this process's descendants, with its folder and other options."""
    words = [tipme, "manage", "--display", name, "--under", os.getpid(), "--state-dir", state, *more]
    with program(words, stdout=subprocess.PIPE, stderr=None) as process:
        wait_for(process, "managing ")
        yield


@contextlib.contextmanager
def recorder(tipme, *more):
    """Runs a recorder without hot keys, with a folder of its own; returns process and folder."""
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as state:
        words = [tipme, "record", "--hot-keys", "off", "--state-dir", state, *more]
        with program(words, signal.SIGINT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            wait_for(process, "recording")
            yield process, state
            expect_alive(process)


def mark(tipme, state, *more):
    """Marks; returns the duration in seconds, and the path of the incident."""
    begin = time.monotonic()
    said = run([tipme, "mark", "--state-dir", state, *more], codes=(0,))
    return time.monotonic() - begin, pathlib.Path(said.strip().splitlines()[-1])


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(words, codes=(0, 1)):
    """Returns the output of a program; exit code 1 is a valid result by default."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise CannotRun(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def script(name):
    """Imports a program of scripts as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def document(*words):
    """Returns the JSON document that a command of tipme writes."""
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder:
        path = pathlib.Path(folder) / "result.json"
        run([*words, "--json", path])
        return json.loads(path.read_text())


def main(words, measure):
    """Runs a script that writes one JSON document, which `measure` returns from the options."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tipme", type=pathlib.Path, default=TIPME)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="output file")
    options = parser.parse_args()

    def written():
        measured = measure(options)
        options.json.write_text(json.dumps(measured, indent=1) + "\n")
        print(measured["notes"])
        return 0

    return exit_code(written)
