# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where things lie, and how commands are run.

Nothing is built inside the repository. What is built lies in a cache folder and is named by a digest of
what went into it, so a changed package list builds again and an unchanged one builds nothing.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
GUEST = HERE / "guest"
# The longest that one step of the build may take, in seconds.
STEP_MAX_S = 1200
# Parts of the cache that are kept for each purpose; older ones are removed.
KEPT_MAX = 3


class CannotRun(Exception):
    """Why the test bed could not be built or started."""


def cache():
    """The cache folder: TIPME_VM_CACHE, or a folder of the user."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get("TIPME_VM_CACHE") or pathlib.Path(base) / "tipme-vm")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def alone():
    """The one who has guests: two at a time disturb each other, and what is measured in them. Held as long as the file is open."""
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
    """Runs a command for a bounded time; gives its standard output."""
    options.setdefault("timeout", STEP_MAX_S)
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        words = "\n".join(line[-300:] for line in (done.stderr or done.stdout).strip().splitlines()[-15:])
        raise CannotRun(f"{' '.join(command[:6])} ended with code {done.returncode}: {words}")
    return done.stdout


def digest(*parts):
    """A short name for what was put in: texts, lists, and the contents of files."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, pathlib.Path) else repr(part).encode()
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()[:12]


@contextlib.contextmanager
def made_whole(folder):
    """A folder that appears under its name only when the block has filled it."""
    partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
    for left in folder.parent.glob("*.partial-*"):
        if not pathlib.Path("/proc", left.name.rpartition("-")[2]).exists():
            remove(left)
    partial.mkdir(parents=True)
    try:
        yield partial
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        remove(partial)


def remove(folder):
    """Removes a folder of the cache, unless something is mounted in it: that is not ours to remove."""
    mounted = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    if any(place.startswith(f"{folder}/") for place in mounted):
        raise CannotRun(f"something is still mounted below {folder}; unmount it and remove the folder")
    shutil.rmtree(folder, ignore_errors=True)


def forget_old(prefix, keep):
    """Removes what earlier package lists built, except the newest few and `keep`."""
    found = [path for path in cache().glob(f"{prefix}*") if path != keep and ".partial-" not in path.name]
    found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[KEPT_MAX - 1 :]:
        remove(path)


def end_on_signals():
    """SIGTERM and SIGHUP end the script as Ctrl-C does, so that everything is cleaned up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
