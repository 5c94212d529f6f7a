# SPDX-License-Identifier: MIT OR Apache-2.0
"""Paths, and the lock of the guests. Everything is built in a cache folder outside the repository."""

import fcntl
import os
import pathlib

from shared import CannotRun, cache_folder

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
GUEST = HERE / "guest"
# Folder of the checks' tools in a guest.
TOOLS = "/usr/local/lib/tipme-vm"


def cache():
    """Returns the cache folder: TIPME_VM_CACHE, or a folder of the user."""
    folder = pathlib.Path(os.environ.get("TIPME_VM_CACHE") or cache_folder("tipme-vm"))
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
