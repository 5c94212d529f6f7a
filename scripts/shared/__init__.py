# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared parts of the scripts and tests of this tree: private programs and displays, /proc,
figures, waiting."""

import os
import pathlib
import signal
import subprocess
import sys
import time


class CannotRun(Exception):
    """Reason why something could not be set up or measured."""


def cache_folder(name):
    """Returns the path of a folder in the user's cache."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / name


def progress(text):
    print(text, file=sys.stderr, flush=True)


def until(condition, what, seconds, pause_s=0.05):
    """Returns the value of a condition once it holds. On a timeout fails with `what`, or returns
    nothing if that is None."""
    limit = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > limit:
            if what is None:
                return None
            raise CannotRun(what)
        time.sleep(pause_s)
    return found


def end_on_signals(code=130):
    """Makes SIGTERM and SIGHUP end a script like Ctrl-C, so that all started programs end."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(code))


def exit_code(measure):
    """Returns the exit code of a measuring script: that of `measure`, 2 if it could not measure,
    130 after Ctrl-C."""
    end_on_signals(2)
    try:
        return measure()
    except (CannotRun, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
        print(f"cannot measure: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
