# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of recording for four gestures at real programs (TIPME, 2000, section 3.6 and table 2).

Mousepad runs on a private X server with a window manager. `tipme measure --no-trace` starts it,
types at it, opens its menu, and moves the pointer over a terminal that displays its position; it
times the gestures by their drawings. Three arms alternate: no recorder; a recorder; a recorder
with counted kernel programs, for their work per gesture."""

import bisect
import contextlib
import dataclasses
import pathlib
import statistics
import tempfile
import threading
import time

from shared import figures, progress
from shared.figures import in_turn, interval
from shared.kernel_programs import counting, spent
from shared.programs import document, recorder

from . import PAIRS

# Interval between samples of the counters.
LOOK_S = 0.02
# Work of the programs in this time after the start of a gesture counts for it, unless its latency
# is longer or the next input comes.
AFTER_NS = 250_000_000
KEYS, MENUS, MOVES = 100, 8, 60
EDITOR = f"""
application = ["mousepad", "--disable-server", "{{home}}/text.txt"]
words_per_minute = 240
variation = 0.0
[[file]]
path = "text.txt"
prose_bytes = 8192
[[step]]
pause_ms = 1500
[[step]]
prose = {KEYS}
label = "typing"
[[step]]
pause_ms = 2500
""" + MENUS * """
[[step]]
key = "alt+f"
class = "menu"
label = "menu"
[[step]]
pause_ms = 400
[[step]]
key = "Escape"
class = "menu"
label = "close"
[[step]]
pause_ms = 250
"""
# Each move enters another cell of the terminal.
TERMINAL = r"""
application = ["xterm", "-geometry", "80x24+20+20", "-e", "sh", "-c", "stty -icanon; printf '\\033[?1003h'; exec cat"]
variation = 0.0
[[step]]
pause_ms = 1500
""" + "".join(f"""
[[step]]
move = [{60 + 40 * (number % 8)}, {80 + 30 * (number % 5)}]
every_ms = 100
label = "pointing"
""" for number in range(MOVES)) + """
[[step]]
pause_ms = 2500
[[step]]
move = [60, 60]
label = "rest"
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """A script at a program: the gesture of each label, and the two labels between which the
    user is idle."""

    script: str
    gestures: dict
    quiet: tuple


TASKS = (Task(EDITOR, {"start": "a window opens", "typing": "a key is typed", "menu": "a menu opens"}, ("typing", "menu")),
         Task(TERMINAL, {"pointing": "the pointer moves"}, ("pointing", "rest")))
GESTURES = {label: name for task in TASKS for label, name in task.gestures.items()}


class Counters(threading.Thread):
    """Samples the programs' time and runs periodically, until it is ended."""

    def __init__(self, programs):
        super().__init__(daemon=True)
        self.programs, self.looks, self.over = programs, [], threading.Event()

    def run(self):
        while not self.over.wait(LOOK_S):
            nanos, runs = map(sum, zip(*spent(self.programs).values()))
            self.looks.append((time.monotonic_ns(), nanos, runs))

    def between(self, begin, end, what):
        return self.at(end, what) - self.at(begin, what)

    def at(self, when, what):
        """Returns the sum at a time, by linear interpolation between two samples."""
        place = min(max(bisect.bisect(self.looks, (when,)), 1), len(self.looks) - 1)
        before, after = self.looks[place - 1], self.looks[place]
        share = (when - before[0]) / max(1, after[0] - before[0])
        return before[what] + share * (after[what] - before[what])


@contextlib.contextmanager
def looking(programs):
    counters = Counters(programs)
    counters.start()
    try:
        yield counters
    finally:
        counters.over.set()
        counters.join()


def play(options, script):
    """Returns the events of one run, in order of time."""
    events = document(options.tipme, "measure", script, "--no-trace", "--repeat", "1")["events"]
    return sorted(events, key=lambda event: event["t_ns"])


def gesture(event):
    """Returns the gesture to which an event of the script counts."""
    return event["label"].partition(" (")[0]


def latencies(events, task):
    """Returns the median latency by gesture, in milliseconds."""
    values = {label: [event["latency_ms"] for event in events if gesture(event) == label] for label in task.gestures}
    return {label: statistics.median(value for value in found if value is not None) for label, found in values.items()}


def counts(events, counters, task):
    """Returns microseconds and runs of the programs caused by one gesture of each kind, from its
    start to the next input, less the idle activity."""
    ends = [event["t_ns"] for event in events[1:]] + [None]
    spans = {label: [] for label in task.gestures}
    for event, end in zip(events, ends):
        begin, label = event["t_ns"], gesture(event)
        if label in spans and end:
            spans[label].append((begin, min(end, begin + max(AFTER_NS, round(1e6 * (event["latency_ms"] or 0))))))
    quiet = (spans[task.quiet[0]][-1][1], next(event["t_ns"] for event in events if gesture(event) == task.quiet[1]))
    return {label: [one_of(counters, spans[label], quiet, what) / scale for what, scale in ((1, 1e3), (2, 1))] for label in task.gestures}


def one_of(counters, spans, quiet, what):
    """Returns the median over these spans, less that of equally long spans in idle time."""
    length = min(round(statistics.median(end - begin for begin, end in spans)), quiet[1] - quiet[0])
    still = [counters.between(begin, begin + length, what) for begin in range(quiet[0], quiet[1] - length + 1, length)]
    return statistics.median(counters.between(*span, what) for span in spans) - statistics.median(still)


def bare(options, scripts):
    """Returns the latencies of all tasks, by gesture."""
    return {label: ms for task, script in scripts.items() for label, ms in latencies(play(options, script), task).items()}


def recorded(options, scripts):
    with recorder(options.tipme):
        return bare(options, scripts)


def watched(options, scripts):
    work = {}
    with recorder(options.tipme) as (process, _), counting(process.pid) as programs:
        for task, script in scripts.items():
            with looking(programs) as counters:
                events = play(options, script)
            work |= counts(events, counters, task)
    return work


ARMS = {"off": bare, "on": recorded, "counted": watched}


def rounds_of(options):
    """Returns the results of each round, by arm."""
    rounds = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder:
        scripts = {task: pathlib.Path(folder, f"{number}.toml") for number, task in enumerate(TASKS)}
        for task, path in scripts.items():
            path.write_text(task.script)
        for number in range(PAIRS):
            for arm in in_turn(ARMS, number):
                rounds[arm].append(ARMS[arm](options, scripts))
            progress(f"gestures, round {number + 1} of {PAIRS}")
    return rounds


def table(options):
    rounds = rounds_of(options)
    rows = [("gesture", "ms, recorder off", "on", "on less off, median (95 % interval)", "runs of programs", "µs in them", "of the latency")]
    for label, name in GESTURES.items():
        off, on = ([one[label] for one in rounds[arm]] for arm in ("off", "on"))
        low, high = interval(differences := [late - early for late, early in zip(on, off)])
        micros, runs = (statistics.median(one[label][place] for one in rounds["counted"]) for place in (0, 1))
        share = micros / 10 / statistics.median(on)
        rows.append((name, f"{statistics.median(off):.2f}", f"{statistics.median(on):.2f}", f"{statistics.median(differences):+.2f} "
                     f"({low:+.2f} to {high:+.2f})", f"{runs:.0f}", f"{micros:.0f}", f"{share:.2f} %"))
    return figures.table(rows)
