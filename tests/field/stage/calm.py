# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of calm sessions: nothing goes wrong in them, so nothing may be found."""

from .scenarios import Scenario

TEXT = ("typing", "menu", "erasing", "selecting", "switching", "scrolling", "moving", "clicking", "typing")
SHELL = ("typing", "selecting", "switching", "scrolling", "moving", "clicking", "typing", "hovering")

# twm moves a window only by its menu.
TWM = tuple(act for act in SHELL if act != "moving")
FILES = ("paging", "clicking", "menu", "scrolling", "switching", "moving", "hovering", "paging")
PLAIN = ("typing", "erasing", "selecting", "switching", "scrolling", "clicking", "typing", "hovering", "placing", "typing")
CLOCK = "xclock -update 1"

ROWS = (
    # program, window manager, compositing manager, acts, beside
    ("mousepad", "openbox", "none", TEXT, CLOCK),
    ("xterm", "openbox", "none", SHELL, ""),
    ("featherpad", "openbox", "none", TEXT, "xclock"),
    ("mousepad", "xfwm4", "none", TEXT, ""),
    ("xterm", "xfwm4", "none", SHELL, "xclock"),
    ("featherpad", "xfwm4", "none", TEXT, ""),
    ("mousepad", "openbox", "picom", TEXT, ""),
    ("xterm", "metacity", "none", SHELL, ""),
    ("gnome-text-editor", "openbox", "none", PLAIN, "xclock"),
    ("emacs", "marco", "none", TEXT, CLOCK),
    ("mousepad", "kwin_x11", "none", TEXT, ""),
    ("pcmanfm", "icewm", "none", FILES, "xclock"),
    ("xterm", "twm", "none", TWM, "xclock"),
    ("idle", "openbox", "none", PLAIN, ""),
    ("tmux", "icewm", "none", SHELL, CLOCK),
    ("thunar", "xfwm4", "own", FILES, "xclock"),
    ("qterminal", "kwin_x11", "own", SHELL, "xclock"),
    ("chromium", "openbox", "none", PLAIN, ""),
    ("firefox", "xfwm4", "none", PLAIN, "xclock"),
    ("libreoffice", "openbox", "none", TEXT, ""),
    ("gvim", "metacity", "own", PLAIN, "xclock"),
    ("screen", "twm", "none", TWM, ""),
    ("featherpad", "marco", "own", TEXT, CLOCK),
    ("mousepad", "marco", "picom", TEXT, "xclock"),
    ("xterm-less", "openbox", "picom", ("paging", "scrolling", "clicking", "paging", "moving", "hovering"), ""),
    ("swing", "openbox", "none", ("typing", "clicking", "typing", "switching", "hovering"), ""),
    ("tk", "icewm", "none", ("typing", "clicking", "typing", "switching", "hovering"), "xclock"),
    ("emacs", "openbox", "none", TEXT, ""),
    ("mousepad", "twm", "none", PLAIN, ""),
    ("mousepad", "icewm", "none", TEXT, "xclock"),
    ("featherpad", "kwin_x11", "none", TEXT, CLOCK),
    ("xterm", "marco", "own", SHELL, CLOCK),
    ("xterm", "kwin_x11", "none", SHELL, "xclock"),
)

SCENARIOS = tuple(
    Scenario(program, manager, compositor, injector, acts, beside=beside)
    for program, manager, compositor, acts, beside in ROWS
    for injector in ("lasting", "passing")
)
