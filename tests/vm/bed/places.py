# SPDX-License-Identifier: MIT OR Apache-2.0
"""Paths, and commands with time limits. Everything is built in a cache folder outside the repository."""

import fcntl
import os
import pathlib
import subprocess

from shared import CannotRun

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
GUEST = HERE / "guest"
# Folder of the checks' tools in a guest.
TOOLS = "/usr/local/lib/tipme-vm"
# Time limit of a command, in seconds.
STEP_MAX_S = 1200


def cache():
    """Returns the cache folder: TIPME_VM_CACHE, or a folder of the user."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get("TIPME_VM_CACHE") or pathlib.Path(base) / "tipme-vm")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def alone():
    """Returns an exclusive lock, held while the file is open, since two guests would disturb each other's measurements."""
    lock = open(cache() / "lock", "a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        raise CannotRun(f"another guest runs (pid {lock.read().strip()}), and two disturb each other; end it or wait for it") from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def say(line):
    print(line, flush=True)


def run(command, **options):
    """Runs a command with a time limit; returns its standard output."""
    options.setdefault("timeout", STEP_MAX_S)
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        words = "\n".join(line[-300:] for line in (done.stderr or done.stdout).strip().splitlines()[-15:])
        raise CannotRun(f"{' '.join(command[:6])} ended with code {done.returncode}: {words}")
    return done.stdout
