# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks found: rows, printed as they come and written into a document as tables."""

import dataclasses
import datetime
import os
import pathlib
import platform
import subprocess

from .places import say

OK, FAILED, ABSENT = "ok", "FAILED", "absent"


@dataclasses.dataclass(frozen=True)
class Row:
    check: str
    outcome: str
    told: str


class Results:
    """The rows of one kernel."""

    def __init__(self, series):
        self.series, self.rows, self.release = series, [], "not booted"
        # CLOCK_MONOTONIC seconds from which on no earlier fault is in an incident's window.
        self.alone_from = 0.0

    def add(self, check, outcome, told):
        row = Row(check, outcome, " ".join(str(told).split()).replace("|", "/"))
        self.rows.append(row)
        say(f"{row.outcome:7} {self.series:5} {row.check}: {row.told}")

    def met(self, check, met, told):
        self.add(check, OK if met else FAILED, told)
        return met

    @property
    def failed(self):
        return sum(row.outcome == FAILED for row in self.rows)

    @property
    def passed(self):
        return sum(row.outcome == OK for row in self.rows)

    def table(self):
        lines = ["| check | result | what was seen |", "|---|---|---|"]
        return lines + [f"| {row.check} | {row.outcome} | {row.told} |" for row in self.rows]

    def section(self):
        """Lines for the document."""
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        load = f"load average of the last 15 minutes {os.getloadavg()[2]:.0f}"
        heading = f"{date}, commit {commit()}, Linux {self.release} emulated on {processor()}, Linux {platform.release()}, {load}."
        return ["", f"### Kernel {self.series}", "", heading, "", *self.table(), ""]

    def write(self, document):
        """Replaces this kernel's part of the document."""
        begin, end = marks(self.series)
        lines = document.read_text().splitlines()
        if begin not in lines or end not in lines:
            lines += ["", begin, end]
        first, last = lines.index(begin), lines.index(end)
        lines[first + 1 : last] = self.section()
        document.write_text("\n".join(lines) + "\n")


def marks(series):
    return f"<!-- written by make test-vm: {series} -->", f"<!-- end of {series} -->"


def commit():
    """The commit that is checked out."""
    words = ["git", "-C", str(pathlib.Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names) or '?'} CPUs"
