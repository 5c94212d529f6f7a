# SPDX-License-Identifier: MIT OR Apache-2.0
"""A display of their own for measurements, and programs that end with them."""

import contextlib
import os
import subprocess
import threading

# How long a program may take to be ready, and to end.
READY_S = 60


class CannotMeasure(Exception):
    """Why there is no result."""


@contextlib.contextmanager
def program(words, **more):
    """A program that ends with the block."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([str(word) for word in words], text=True, **quiet | more)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(process, begin):
    """The first line that begins so; what it says after it is dropped."""
    late = threading.Timer(READY_S, process.kill)
    late.start()
    found = next((line.strip() for line in process.stdout if line.startswith(begin)), None)
    late.cancel()
    if found is None:
        raise CannotMeasure(f"{process.args[0]} is not ready")
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return found


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


def run(words):
    """What a program printed; code 1 is an answer of it as well."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise CannotMeasure(f"{' '.join(map(str, words))}: {done.stderr.strip()[-600:]}")
    return done.stdout
