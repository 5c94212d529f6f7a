# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios; scenarios.toml has the table of them."""

import dataclasses
import pathlib
import tomllib

WAYLAND = ("sway", "mutter", "kwin_wayland")
TABLE = tomllib.loads(pathlib.Path(__file__).resolve().parent.parent.joinpath("scenarios.toml").read_text())


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    program: str
    manager: str = "openbox"
    compositor: str = "none"
    injector: str = "lasting"
    # Calm sessions: the acts. Faults: the name of the fault, and its words.
    acts: tuple = ()
    fault: str = ""
    # Accepted causes: pairs of kinds (words) and roles (words).
    accept: tuple = ()
    # Measure of the truth, see truth.py.
    truth: str = ""
    beside: str = ""
    title: str = ""

    @property
    def name(self):
        if self.title:
            return self.title
        composed = "" if self.compositor == "none" else f"+{self.compositor}"
        return f"calm-{self.program}-{self.manager}{composed}-{self.injector}"

    @property
    def calm(self):
        return not self.fault

    @property
    def control(self):
        """Returns True if the fault must have no effect on the victim, so that there must be no
        finding."""
        return bool(self.fault) and not self.accept

    @property
    def wayland(self):
        """Returns True if a Wayland compositor replaces X server and window manager."""
        return self.manager in WAYLAND


def calm(injectors, rows):
    for program, manager, acts, *more in rows:
        words = TABLE["acts"].get(acts, acts) if isinstance(acts, str) else acts
        for injector in injectors:
            yield Scenario(program, manager, injector=injector, acts=tuple(words), **dict(*more))


def faults(rows):
    for title, (program, manager, fault, acts, truth, causes, *more) in rows.items():
        accept = tuple(tuple(cause.split(": ")) for cause in ([causes] if isinstance(causes, str) else causes))
        yield Scenario(program, manager, acts=tuple(acts), fault=fault, accept=accept, truth=truth, title=title, **dict(*more))


ALL = {scenario.name: scenario for scenario in (
    *calm(("lasting", "passing"), TABLE["calm"]["x11"]), *faults(TABLE["faults"]["life"]), *calm(("lasting",), TABLE["calm"]["wayland"]),
    *faults(TABLE["faults"]["wayland"]), *faults(TABLE["faults"]["reported"]))}
