# SPDX-License-Identifier: MIT OR Apache-2.0
"""figures.toml: the measurements, and their figures for the papers' rows."""

import dataclasses
import pathlib
import tomllib

# Guests that measure the same side by side: the last kernel with CFS, and one with EEVDF.
KERNELS = ("6.1", "6.18")
NAMED_ONLY = ("auto",)


@dataclasses.dataclass(frozen=True)
class Measurement:
    name: str
    # Command as a user types it, with FILE for its document and DIR for its plots.
    command: str
    takes_s: int = 0

    @property
    def file(self):
        """File that the command writes, if it is a `make` command."""
        vm = f"docs/results/vm/{self.name.removeprefix('vm-')}.json"
        return (vm if self.name.startswith("vm-") else "docs/results/overhead.md") if self.command.startswith("make ") else None


@dataclasses.dataclass(frozen=True)
class Figure:
    row: str
    measurement: str
    name: str
    # The paper's figure.
    paper: str
    unit: str
    digits: int
    expression: str
    # The project's own limit, such as `<= 10`; empty for none.
    bar: str = ""

    @property
    def is_absolute(self):
        """Returns True for a time or a size without a bar, which depends mainly on the machine."""
        return self.unit in ("ns", "µs", "ms", "s", "MiB", "ms/min") and not self.bar

    def shown(self, value, unit=True):
        space = "" if self.unit.startswith("%") else " "
        return "-" if value is None else f"{value:,.{self.digits}f}{space}{self.unit if unit else ''}".strip()

    def misses(self, value):
        sign, limit = (self.bar or "<= inf").split()
        return value is not None and not (value <= float(limit) if sign == "<=" else value >= float(limit))


def expanded(row, measurement, name, words):
    """Returns a figure, or one for each kernel of the guests."""
    for kernel in KERNELS if "{kernel}" in measurement else ("",):
        paper, unit, expression, *bar = words
        unit, _, digits = unit.partition(":")
        measured, named = (text.replace("{kernel}", kernel) for text in (measurement, name))
        yield Figure(row, measured, named, paper, unit, int(digits or 1), expression, *bar)


TABLES = tomllib.loads(pathlib.Path(__file__).with_name("figures.toml").read_text())
COMMANDS = TABLES.pop("commands")
FIGURES = [figure for row, measurements in TABLES.items() for measurement, figures in measurements.items()
           for name, words in figures.items() for figure in expanded(row, measurement, name, words)]
GUESTS = {figure.measurement: [f'make measure-vm VM="--only {figure.measurement[3:]}"', 0] for figure in FIGURES if figure.measurement.startswith("vm-")}
MEASUREMENTS = {name: Measurement(name, *words) for name, words in (COMMANDS | GUESTS).items()}
