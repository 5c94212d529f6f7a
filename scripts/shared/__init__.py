# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the scripts and tests of this tree share: programs and displays of their own, /proc, figures, waiting."""

import signal
import subprocess
import sys
import time


class CannotRun(Exception):
    """Why something could not be set up or measured."""


def progress(text):
    print(text, file=sys.stderr, flush=True)


def until(condition, what, seconds, pause_s=0.05):
    """What a condition gives once it holds; `what` is said where it does not in time, or nothing is where that is None."""
    limit = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > limit:
            if what is None:
                return None
            raise CannotRun(what)
        time.sleep(pause_s)
    return found


def end_on_signals(code=130):
    """SIGTERM and SIGHUP end a script as Ctrl-C does, so that everything is ended that was started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(code))


def exit_code(measure):
    """That of a script that measures: what `measure` gives, 2 where it could not, 130 after Ctrl-C."""
    end_on_signals(2)
    try:
        return measure()
    except (CannotRun, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
        print(f"cannot measure: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
