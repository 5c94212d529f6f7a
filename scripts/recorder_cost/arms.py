# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recorders beside a load: none, tipme with its defaults or without samples, ftrace, perf,
another tipme."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from shared import CannotRun
from shared.programs import expect_alive, program, recorder

TRACING = pathlib.Path("/sys/kernel/tracing")
EVENTS = ("sched/sched_switch", "sched/sched_waking")
FTRACE_KIB_PER_CPU = 16 * 1024
# Time for which a tool settles before the load begins.
SETTLE_S = 0.7


@contextlib.contextmanager
def bare(_options):
    time.sleep(SETTLE_S)
    yield None


@contextlib.contextmanager
def settled(tipme, *words):
    """Starts a recorder and lets it settle; returns its process id."""
    with recorder(tipme, *words) as (process, _):
        time.sleep(SETTLE_S)
        yield process.pid


def tipme(options):
    return settled(options.tipme)


def unsampled(options):
    return settled(options.tipme, "--without", "samples")


def against(options):
    return settled(options.against)


@contextlib.contextmanager
def ftrace(_options):
    instance = TRACING / "instances" / f"tipme-bench-{os.getpid()}"
    if not (TRACING / "instances").is_dir():
        raise CannotRun(f"no tracefs at {TRACING}; mount it: mount -t tracefs tracefs {TRACING}")
    instance.mkdir()
    try:
        (instance / "buffer_size_kb").write_text(str(FTRACE_KIB_PER_CPU))
        (instance / "options/overwrite").write_text("1")
        for event in EVENTS:
            (instance / "events" / event / "enable").write_text("1")
        time.sleep(SETTLE_S)
        yield None
        if "entries-in-buffer" not in (instance / "trace").open().read(4096):
            raise CannotRun("ftrace recorded nothing")
    finally:
        (instance / "tracing_on").write_text("0")
        instance.rmdir()


@contextlib.contextmanager
def perf(_options):
    with tempfile.TemporaryDirectory(prefix="tipme-bench-") as out:
        events = ",".join(event.replace("/", ":") for event in EVENTS)
        words = ["perf", "record", "-a", "--overwrite", "-q", "-e", events, "-o", f"{out}/perf.data"]
        with program(words, signal.SIGINT, stderr=subprocess.PIPE) as process:
            time.sleep(1 + SETTLE_S)
            expect_alive(process)
            yield None
            expect_alive(process)


ARMS = {"bare": bare, "tipme": tipme, "unsampled": unsampled, "ftrace": ftrace, "perf": perf, "against": against}
