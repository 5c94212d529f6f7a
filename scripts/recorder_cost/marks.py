# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of a mark with many threads: its time, the size of its file, and the recorder's peak
memory meanwhile."""

import contextlib
import multiprocessing
import os
import pathlib
import statistics
import threading
import time

from shared import CannotRun, progress
from shared.figures import bar, shown, table
from shared.proc import number
from shared.programs import mark, recorder

# Bars: cost of each thread, and the memory that all of them add to the recorder.
THREAD_US, THREADS_MIB = 20, 64
# Number of sleeping threads in one process, and the size of their stacks in bytes.
PROCESS_THREADS, STACK_BYTES = 1000, 64 << 10
READY_S, SETTLE_S = 120, 0.7


def sleep_in_threads(count, ready, stop):
    """Starts `count` sleeping threads, reports that, and ends with them."""
    threading.stack_size(STACK_BYTES)
    wake = threading.Event()
    for _ in range(count - 1):
        threading.Thread(target=wake.wait, daemon=True).start()
    ready.release()
    stop.wait()
    os._exit(0)


@contextlib.contextmanager
def sleeping_threads(count):
    ready, stop = multiprocessing.Semaphore(0), multiprocessing.Event()
    sizes = [min(PROCESS_THREADS, count - begun) for begun in range(0, count, PROCESS_THREADS)]
    sleepers = [multiprocessing.Process(target=sleep_in_threads, args=(size, ready, stop)) for size in sizes]
    for sleeper in sleepers:
        sleeper.start()
    try:
        for _ in sleepers:
            if not ready.acquire(timeout=READY_S):
                raise CannotRun(f"{count} threads could not be begun; see ulimit -u and /proc/sys/kernel/pid_max")
        time.sleep(SETTLE_S)
        yield
    finally:
        stop.set()
        for sleeper in sleepers:
            sleeper.join()


def marked(tipme, pid, state):
    """Returns seconds of a mark, bytes of its file, and the recorder's peak memory meanwhile."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    seconds, path = mark(tipme, state)
    return seconds, path.stat().st_size, 1024 * number(pid, "status", "VmHWM")


def rounds(options):
    """Marks with and without the threads, alternately."""
    marks = {"without": [], "with": []}
    with recorder(options.tipme, "--display", "none") as (process, state):
        for one in range(options.rounds):
            with sleeping_threads(options.threads):
                marks["with"].append(marked(options.tipme, process.pid, state))
            marks["without"].append(marked(options.tipme, process.pid, state))
            progress(f"round {one + 1} of {options.rounds}")
    return marks


def report(options):
    marks = rounds(options)
    columns = {arm: [statistics.median(column) for column in zip(*seen)] for arm, seen in marks.items()}
    lines = [f"`tipme mark` with and without {options.threads:,} threads that sleep, {options.rounds} rounds in turn:", ""]
    rows = [("threads", "s, median (least to most)", "file", "recorder's peak memory")]
    for arm, (_, size, peak) in columns.items():
        rows.append((arm, shown([one[0] for one in marks[arm]], "", 2), f"{size / 2**20:.1f} MiB", f"{peak / 2**20:.0f} MiB"))
    lines += table(rows)
    seconds, _, peak = (more - less for more, less in zip(columns["with"], columns["without"]))
    bars = [bar("added by each thread", 1e6 * seconds / options.threads, THREAD_US, " µs"),
            bar("added to the recorder's peak memory", peak / 2**20, THREADS_MIB, " MiB")]
    return lines + [""] + [text for text, _ in bars], all(met for _, met in bars)
