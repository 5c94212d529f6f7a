# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of calm sessions: nothing goes wrong in them, so nothing may be found."""

from .scenarios import Scenario

TEXT = ("typing", "menu", "erasing", "selecting", "switching", "scrolling", "moving", "clicking", "typing")
SHELL = ("typing", "selecting", "switching", "scrolling", "moving", "clicking", "typing", "hovering")

ROWS = (
    # program, window manager, compositing manager, acts, beside
    ("mousepad", "openbox", "none", TEXT, "xclock -update 1"),
    ("xterm", "openbox", "none", SHELL, ""),
    ("featherpad", "openbox", "none", TEXT, "xclock"),
    ("mousepad", "xfwm4", "none", TEXT, ""),
    ("xterm", "xfwm4", "none", SHELL, "xclock"),
    ("featherpad", "xfwm4", "none", TEXT, ""),
)

SCENARIOS = tuple(
    Scenario(program, manager, compositor, injector, acts, beside=beside)
    for program, manager, compositor, acts, beside in ROWS
    for injector in ("lasting", "passing")
)
