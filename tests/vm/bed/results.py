# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of the checks: rows, printed at once and written into a document as tables."""

import dataclasses
import datetime
import os
import platform
import textwrap

from shared.figures import table, write_between
from shared.machine import commit, processor

from .places import say

OK, FAILED, ABSENT = "ok", "FAILED", "absent"
# Longest detail in the document.
DETAIL_MAX = 120


def shortened(detail):
    """Returns what fits into a table; the output of the run has all of it."""
    return textwrap.shorten(detail, DETAIL_MAX, placeholder=" …")


@dataclasses.dataclass(frozen=True)
class Row:
    check: str
    outcome: str
    detail: str


class Results:
    """The rows of one kernel."""

    def __init__(self, series):
        self.series, self.rows, self.release = series, [], "not booted"
        # CLOCK_MONOTONIC seconds after which an incident's window contains no earlier fault.
        self.alone_from = 0.0

    def add(self, check, outcome, detail):
        row = Row(check, outcome, " ".join(str(detail).split()))
        self.rows.append(row)
        say(f"{row.outcome:7} {self.series:5} {row.check}: {row.detail}")

    def met(self, check, met, detail):
        self.add(check, OK if met else FAILED, detail)
        return met

    @property
    def failed(self):
        return sum(row.outcome == FAILED for row in self.rows)

    @property
    def passed(self):
        return sum(row.outcome == OK for row in self.rows)

    def section(self):
        """Returns the lines for the document."""
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        load = f"load average of the last 15 minutes {os.getloadavg()[2]:.0f}"
        heading = f"{date}, commit {commit()}, Linux {self.release} emulated on {processor()}, Linux {platform.release()}, {load}."
        rows = table([("check", "result", "what was seen"), *((row.check, row.outcome, shortened(row.detail)) for row in self.rows)])
        return ["", f"### Kernel {self.series}", "", heading, "", *rows, ""]

    def write(self, document):
        """Replaces this kernel's part of the document."""
        begin, end = f"<!-- written by make test-vm: {self.series} -->", f"<!-- end of {self.series} -->"
        write_between(document, begin, end, self.section())
