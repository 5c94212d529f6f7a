# SPDX-License-Identifier: MIT OR Apache-2.0
"""What recording costs by kind of record, and its share of four gestures at real programs (TIPME, 2000, section 3.6 and table 2).

Kinds: each is written by one kernel program, or by two at the begin and end of something, and has a load that makes them run. Time and
runs are counted by the kernel. Gestures: mousepad on a private X server with a window manager is started, typed at and its menu opened, and
the pointer is moved over a terminal whose program shows where it is, by `tipme measure --no-trace`, which times them by what is drawn. Three arms take turns: no recorder; a recorder; a recorder whose
programs are counted meanwhile, for what each gesture makes them do.
"""

import bisect
import contextlib
import dataclasses
import json
import os
import pathlib
import pty
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tty

from display_cost import EMPTY_TITLE, ENABLE_STATS, bpf, display, empty_program, fills, programs_of, shown, spent

# The kernel keeps so much of a program's name.
NAME_CHARS = 15
# Between two looks at the counters.
LOOK_S = 0.02
# What a gesture's programs do so long after its begin counts for it, unless its latency is longer or the next input comes.
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
# Each move is into another cell of the terminal.
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
    """A script at a program. What each of its labels is called that is a gesture, and the two between which nobody does anything."""

    script: str
    gestures: dict
    quiet: tuple


TASKS = (Task(EDITOR, {"start": "a window opens", "typing": "a key is typed", "menu": "a menu opens"}, ("typing", "menu")),
         Task(TERMINAL, {"pointing": "the pointer moves"}, ("pointing", "rest")))
GESTURES = {label: name for task in TASKS for label, name in task.gestures.items()}


# --- kinds of records ---------------------------------------------------------------------------


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def passes():
    command("taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", "20000")


def moves():
    """From CPU to CPU and back."""
    cpus = os.sched_getaffinity(0)
    for _ in range(500):
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, cpus)


def sleep_often():
    for _ in range(50):
        time.sleep(0.01)


def sleeps():
    sleepers = [threading.Thread(target=sleep_often) for _ in range(10)]
    for sleeper in sleepers:
        sleeper.start()
    for sleeper in sleepers:
        sleeper.join()


def processes():
    for _ in range(100):
        command("true")


def draws():
    with display("x11") as ends:
        fills(ends)


def signals():
    for _ in range(5_000):
        os.kill(os.getpid(), signal.SIGCONT)


def writes():
    with tempfile.NamedTemporaryFile(prefix="tipme-bench-", dir="/var/tmp") as file:
        for _ in range(100):
            os.write(file.fileno(), b"x" * 4096)
            os.fsync(file.fileno())


def terminal():
    ends = pty.openpty()
    tty.setraw(ends[1])
    for _ in range(3_000):
        os.write(ends[0], b"x")
        os.read(ends[1], 1)
    for end in ends:
        os.close(end)


# Kind of record: the load, and the programs that run once for each.
KINDS = {
    "switch": (passes, ("sched_switch",)),
    "waking": (passes, ("sched_waking",)),
    "waking after a long wait, with the wait's stack": (sleeps, ("sched_waking",)),
    "migrate": (moves, ("sched_migrate_task",)),
    "message sent (X11, one rectangle)": (draws, ("message_sent",)),
    "message taken (X11)": (draws, ("message_taken",)),
    "fork": (processes, ("fork",)),
    "exec": (processes, ("exec",)),
    "exit": (processes, ("exit_task",)),
    "rename": (processes, ("rename",)),
    "signal": (signals, ("signal_sent",)),
    "block I/O, issued and completed": (writes, ("block_issue", "block_complete")),
    "terminal, written and delivered": (terminal, ("tty_written", "tty_delivered")),
    "softirq, begun and ended": (draws, ("softirq_entry", "softirq_exit")),
    "timer interrupt, begun and ended": (sleeps, ("timer_entry", "timer_exit")),
    EMPTY_TITLE: (draws, (EMPTY_TITLE,)),
}


@contextlib.contextmanager
def counted(pid, empty):
    """The recorder's programs, with an empty one beside them."""
    programs = programs_of(pid) | {EMPTY_TITLE: empty}
    try:
        yield programs
    finally:
        for fd in set(programs.values()) - {empty}:
            os.close(fd)


def kinds_once(programs):
    """Nanoseconds by kind; none for a kind whose programs did not run."""
    took = {}
    for load in dict.fromkeys(load for load, _ in KINDS.values()):
        before = spent(programs)
        load()
        took[load] = {name: [late - early for late, early in zip(now, before[name])] for name, now in spent(programs).items()}
    return {kind: each(took[load], names) for kind, (load, names) in KINDS.items()}


def each(took, names):
    """Time of a run of each of these programs, together."""
    runs = [took.get(name) or took.get(name[:NAME_CHARS], (0, 0)) for name in names]
    return sum(nanos / count for nanos, count in runs) if all(count for _, count in runs) else None


def kind_rounds(options, recorder):
    rounds = []
    with empty_program() as empty:
        for number in range(options.rounds):
            with recorder(options.tipme) as pid, counted(pid, empty) as programs:
                rounds.append(kinds_once(programs))
            progress(f"records, round {number + 1} of {options.rounds}")
    return rounds


def kind_lines(rounds):
    lines = ["| record | programs | ns, median (least to most) |", "|---|---|---|"]
    for kind, (_, names) in KINDS.items():
        values = [one[kind] for one in rounds if one[kind] is not None]
        told = "" if kind == EMPTY_TITLE else ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {kind} | {told} | {shown(values, '', 0) if values else 'did not run'} |")
    return lines


# --- gestures -----------------------------------------------------------------------------------


class Counters(threading.Thread):
    """Looks at the programs' time and runs now and then, until it is ended."""

    def __init__(self, programs):
        super().__init__(daemon=True)
        self.programs, self.looks, self.over = programs, [], threading.Event()

    def run(self):
        while not self.over.wait(LOOK_S):
            told = spent(self.programs).values()
            self.looks.append((time.monotonic_ns(), sum(nanos for nanos, _ in told), sum(runs for _, runs in told)))

    def between(self, begin, end, what):
        return self.at(end, what) - self.at(begin, what)

    def at(self, when, what):
        """The sum at a time, on a straight line between two looks."""
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
    """The events of one run, in the order of time."""
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder:
        path = f"{folder}/result.json"
        words = [options.tipme, "measure", str(script), "--no-trace", "--repeat", "1", "--json", path]
        run = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode not in (0, 1):
            raise OSError(f"{' '.join(words)}: {run.stderr.strip()[-600:]}")
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["events"]
    return sorted(events, key=lambda event: event["t_ns"])


def gesture(event):
    """What an event of the script is counted for."""
    return event["label"].partition(" (")[0]


def latencies(events, task):
    """Median latency by gesture, in milliseconds."""
    values = {label: [event["latency_ms"] for event in events if gesture(event) == label] for label in task.gestures}
    return {label: statistics.median(value for value in found if value is not None) for label, found in values.items()}


def counts(events, counters, task):
    """By gesture, microseconds and runs of the programs that one of them caused, from its begin to the next input, without what also comes
    while nothing is done."""
    ends = [event["t_ns"] for event in events[1:]] + [None]
    spans = {label: [] for label in task.gestures}
    for event, end in zip(events, ends):
        begin, label = event["t_ns"], gesture(event)
        if label in spans and end:
            spans[label].append((begin, min(end, begin + max(AFTER_NS, round(1e6 * (event["latency_ms"] or 0))))))
    quiet = (spans[task.quiet[0]][-1][1], next(event["t_ns"] for event in events if gesture(event) == task.quiet[1]))
    return {label: [one_of(counters, spans[label], quiet, what) / scale for what, scale in ((1, 1e3), (2, 1))] for label in task.gestures}


def one_of(counters, spans, quiet, what):
    """The median over these spans, less that of spans as long while it is quiet."""
    length = min(round(statistics.median(end - begin for begin, end in spans)), quiet[1] - quiet[0])
    still = [counters.between(begin, begin + length, what) for begin in range(quiet[0], quiet[1] - length + 1, length)]
    return statistics.median(counters.between(*span, what) for span in spans) - statistics.median(still)


def bare(options, scripts, _recorder, _empty):
    """Of all tasks, by gesture."""
    return {label: ms for task, script in scripts.items() for label, ms in latencies(play(options, script), task).items()}


def recorded(options, scripts, recorder, empty):
    with recorder(options.tipme):
        return bare(options, scripts, recorder, empty)


def watched(options, scripts, recorder, empty):
    stats, told = bpf(ENABLE_STATS, b""), {}
    with recorder(options.tipme) as pid, counted(pid, empty) as programs:
        own = {name: fd for name, fd in programs.items() if name != EMPTY_TITLE}
        for task, script in scripts.items():
            with looking(own) as counters:
                events = play(options, script)
            told |= counts(events, counters, task)
    os.close(stats)
    return told


ARMS = {"off": bare, "on": recorded, "counted": watched}


def gesture_rounds(options, recorder):
    """By arm, what each round gave; each round begins with another arm."""
    rounds = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder, empty_program() as empty:
        scripts = {task: pathlib.Path(folder, f"{number}.toml") for number, task in enumerate(TASKS)}
        for task, path in scripts.items():
            path.write_text(task.script)
        for number in range(options.pairs):
            shift = number % len(ARMS)
            for arm in [*ARMS][shift:] + [*ARMS][:shift]:
                rounds[arm].append(ARMS[arm](options, scripts, recorder, empty))
            progress(f"gestures, round {number + 1} of {options.pairs}")
    return rounds


def gesture_lines(rounds, interval):
    lines = ["| gesture | ms, recorder off | on | on less off, median (95 % interval) | runs of programs | µs in them | of the latency |", "|---" * 7 + "|"]
    for label, name in GESTURES.items():
        off, on = ([one[label] for one in rounds[arm]] for arm in ("off", "on"))
        low, high = interval(differences := [late - early for late, early in zip(on, off)])
        micros, runs = (statistics.median(one[label][place] for one in rounds["counted"]) for place in (0, 1))
        share = micros / 10 / statistics.median(on)
        lines.append(f"| {name} | {statistics.median(off):.2f} | {statistics.median(on):.2f} | {statistics.median(differences):+.2f} "
                     f"({low:+.2f} to {high:+.2f}) | {runs:.0f} | {micros:.0f} | {share:.2f} % |")
    return lines


# --- the report ---------------------------------------------------------------------------------


def progress(text):
    print(text, file=sys.stderr, flush=True)


def report(options, recorder, interval):
    """Lines of the document; there is no bar."""
    stats = bpf(ENABLE_STATS, b"")
    kinds = kind_lines(kind_rounds(options, recorder))
    os.close(stats)
    gestures = gesture_lines(gesture_rounds(options, recorder), interval)
    return [
        f"Kernel programs by the kind of record that they write, {options.rounds} rounds. Each kind has a load that makes its programs",
        "run: a pipe on one CPU, a thread that is moved from CPU to CPU, sleeps of 10 ms, processes that are made and end, drawing requests, signals,",
        "synced writes, a pseudo-terminal. The kernel's own counting is part of each figure: what an empty program takes. The programs of",
        "interrupts keep a time at each, and leave a record of the long ones only.",
        "",
        *kinds,
        "",
        "Four gestures on a private X server with a window manager, three at mousepad; the pointer moves over an xterm whose program shows where",
        f"it is. {options.pairs} rounds in which three arms take turns: no recorder, a recorder, and one whose programs are counted. Latency is until",
        "the last drawing of a start or menu, the first of a key or move. The runs and their time are those of all programs on all CPUs, from the",
        "begin of the gesture until 250 ms later or the next input, without what comes while nobody does anything; the share is what they would be of",
        "the latency if all of them delayed it.",
        "",
        *gestures,
    ]
