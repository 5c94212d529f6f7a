# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that end with a block, and a private display for them."""

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

from . import CannotRun, exit_code
from .machine import ROOT, TIPME

# How long a program may take to be ready, and to end.
READY_S = 60


@contextlib.contextmanager
def program(words, end_by=signal.SIGTERM, **more):
    """A program that ends with the block."""
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
    """The first line that begins so; what it says after it is dropped."""
    late, said = threading.Timer(READY_S, process.kill), []
    late.start()
    found = False
    for line in process.stdout:
        said.append(line.strip())
        if found := line.startswith(begin):
            break
    late.cancel()
    if not found:
        raise CannotRun(f"{process.args[0]} is not ready: {' / '.join(said) or 'it said nothing'}")
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return said[-1]


def expect_alive(process):
    if process.poll() is not None:
        words = process.stderr.read() if process.stderr else ""
        raise CannotRun(f"{process.args[0]} ended with code {process.returncode}: {words.strip()}")


@contextlib.contextmanager
def display():
    """The name of a private X server with a window manager."""
    words = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-noreset", "-screen", "0", "1024x768x24"]
    with program(words, stdout=subprocess.PIPE) as server:
        name = ":" + wait_for(server, "")
        with program(["openbox", "--sm-disable"], env=os.environ | {"DISPLAY": name}):
            yield name


@contextlib.contextmanager
def manager(tipme, name, state, *more):
    """A manager of what is below this process, with its folder and other options."""
    words = [tipme, "manage", "--display", name, "--under", os.getpid(), "--state-dir", state, *more]
    with program(words, stdout=subprocess.PIPE, stderr=None) as process:
        wait_for(process, "managing ")
        yield


@contextlib.contextmanager
def recorder(tipme, *more):
    """A recorder without hot keys, with a folder of its own; gives process and folder."""
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as state:
        words = [tipme, "record", "--hot-keys", "off", "--state-dir", state, *more]
        with program(words, signal.SIGINT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            wait_for(process, "recording")
            yield process, state
            expect_alive(process)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(words, codes=(0, 1)):
    """What a program printed; code 1 is an answer of it as well."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise CannotRun(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def script(name):
    """A program of scripts as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def document(*words):
    """The JSON document that a command of tipme writes."""
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder:
        path = pathlib.Path(folder) / "result.json"
        run([*words, "--json", path])
        return json.loads(path.read_text())


def main(words, measure, **more):
    """A script that writes one JSON document: `measure` gives it from the options, of which `more` has whole numbers and their help."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tipme", type=pathlib.Path, default=TIPME)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="where the document goes")
    for name, (usual, told) in more.items():
        parser.add_argument(f"--{name}", type=int, default=usual, help=told)
    options = parser.parse_args()

    def written():
        told = measure(options)
        options.json.write_text(json.dumps(told, indent=1) + "\n")
        print(told["notes"])
        return 0

    return exit_code(written)
