# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a scenario is, and where it was declared."""

import dataclasses


WAYLAND = ("sway", "mutter", "kwin_wayland")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One row of the tables of calm sessions and of faults."""

    program: str
    manager: str = "openbox"
    compositor: str = "none"
    injector: str = "lasting"
    # Calm sessions: the acts. Faults: the name of the fault, and its words.
    acts: tuple = ()
    fault: str = ""
    # What may be said: pairs of kinds (words) and roles (words); and milestones, all where none is named.
    accept: tuple = ()
    milestones: tuple = ()
    # How the truth is measured, see truth.py.
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
        """Whether the fault must have no effect on the victim, so that nothing may be found."""
        return bool(self.fault) and not self.accept

    @property
    def wayland(self):
        """Whether a compositor of Wayland takes the place of X server and window manager."""
        return self.manager in WAYLAND
