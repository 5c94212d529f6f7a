# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a row of the papers is: a measurement gives figures, and a row says which of them stand beside the paper's."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One command whose document gives figures, or a file that another script wrote."""

    name: str
    # Words after `tipme`, or after another program of this tree; {json} is where the document goes, {svg} the plots.
    command: tuple = ()
    program: str = "tipme"
    takes_s: int = 0
    # Of the plots that the command draws, those that are kept of the last run.
    plots: tuple = ()
    # It takes so long that it is measured only where a row of it is named.
    named_only: bool = False
    # Or a committed result, with the command that writes it.
    file: str = ""
    written_by: str = ""
    # What kind of guest it was measured in, if not on the machine itself.
    guest: str = ""
    # From the text of `file` to a document; JSON where nothing is said.
    read: typing.Callable = None
    # From the document to words on how fast the guest was.
    speed: typing.Callable = None


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number of a measurement, with what the paper has in its place."""

    name: str
    measurement: str
    # From the document to a number; None where it is not available.
    of: typing.Callable
    unit: str
    paper: str = "-"
    # Two runs agree where they differ by no more than this share of the larger one, or by so much of the unit.
    share: float = 0.25
    least: float = 0.0
    digits: int = 1
    # The project's own bar: at most so much, or at least so much.
    bar: float = None
    floor: float = None
    # Another figure of the measurement, and the least that it has to be for this one to be there at all.
    needs: tuple = None


@dataclasses.dataclass(frozen=True)
class Chart:
    """The paper's numbers beside ours: panels of the same kind of axis."""

    file: str
    title: str
    measurement: str
    # From what was kept of a run to panels.
    panels: typing.Callable
    # From the document to what is kept of it; small.
    keep: typing.Callable


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table of features."""

    id: str
    feature: str
    # Section, figure or table of the paper, after its number.
    source: str
    figures: tuple = ()
    # `path::test` of what proves it, where it is a function and no figure, or beside figures.
    tests: tuple = ()
    charts: tuple = ()
    # What is to be said besides: why this machine cannot show it, and where it was shown.
    words: str = ""
