# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of a diagnosis of many records."""

import os
import statistics
import subprocess
import tempfile
import time

from shared import CannotRun
from shared.figures import bar, in_turn, table
from shared.machine import ROOT
from shared.programs import run

# Bars by millions of records: seconds and MiB.
BARS = {2: (0.8, 512), 8: (3, 1024)}


def busy_incident(records, folder):
    """Makes an incident with `records` records by the tests' simulated machine."""
    words = ["cargo", "run", "--quiet", "--release", "--manifest-path", ROOT / "Cargo.toml", "-p", "tipme-tests", "--example", "busy-incident", "--"]
    return run([*words, records, folder], codes=(0,)).strip()


def diagnose_once(tipme, path, state):
    """Returns output, wall time in seconds, and peak memory in MiB."""
    command, begin = [tipme, "diagnose", path, "--json", "--state-dir", state], time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    verdict = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0:
        raise CannotRun(f"{' '.join(map(str, command))} ended with code {process.returncode}")
    return verdict, time.monotonic() - begin, used.ru_maxrss / 1024


def medians(options, path, state):
    """Returns seconds and MiB of each executable; they alternate, and must agree."""
    tools = [options.tipme] + ([options.against] if options.against else [])
    took = {tool: [] for tool in tools}
    for number in range(options.rounds):
        verdicts = set()
        for tool in in_turn(tools, number):
            verdict, *figures = diagnose_once(tool, path, state)
            verdicts.add(verdict)
            took[tool].append(figures)
        if len(verdicts) > 1:
            raise CannotRun(f"the verdicts on {path} differ")
    return [[statistics.median(column) for column in zip(*took[tool])] for tool in tools]


def report(options):
    rows, bars = [("records", "file", "s, median", "most memory")], []
    for millions, limits in BARS.items():
        with tempfile.TemporaryDirectory(prefix="tipme-bench-") as folder:
            path = busy_incident(millions * 1_000_000, folder)
            size, found = os.path.getsize(path) / 2**20, medians(options, path, folder)
        for name, (seconds, mib) in zip(("", ", the other"), found):
            rows.append((f"{millions} million{name}", f"{size:.0f} MiB", f"{seconds:.2f}", f"{mib:.0f} MiB"))
        for what, unit, value, limit in zip(("time", "memory"), (" s", " MiB"), found[0], limits):
            bars.append(bar(f"{what} for {millions} million records", value, limit, unit))
    title = f"`tipme diagnose` of an editor that is typed into beside a build, {options.rounds} rounds"
    return [title + ":", "", *table(rows), "", *[line for line, _ in bars]], all(met for _, met in bars)
