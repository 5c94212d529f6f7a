# SPDX-License-Identifier: MIT OR Apache-2.0
"""Unmodified programs: how each is started, and by what its window is known."""

import dataclasses
import time

from . import processes


@dataclasses.dataclass(frozen=True)
class Program:
    words: tuple
    window: str
    # Where a click is harmless, and gives the text the focus: shares of the window, or pixels.
    body: tuple = (0.5, 0.6)
    # A chord that opens a menu, and where a click opens one.
    menu: str = ""
    menu_at: tuple = ()
    # Keys before anything else, such as i in vim.
    prelude: str = ""
    # Seconds to wait after its window is there.
    settle_s: float = 0.5
    # The caret or something else changes by itself.
    blinks: bool = True
    # Return starts a command.
    shell: bool = False
    # What precedes a fault.
    usual: tuple = ("typing", "clicking", "typing", "typing")


XTERM = ("xterm", "-geometry", "84x28+40+40", "-fa", "Monospace", "-fs", "10", "-e")
BASH = ("bash", "--norc", "-i")
TERMINAL = {"blinks": False, "shell": True}

PROGRAMS = {
    "xterm": Program((*XTERM, *BASH), "xterm", **TERMINAL),
    "xterm-less": Program((*XTERM, "less", "/etc/services"), "xterm", blinks=False, usual=("paging", "paging")),
    "xterm-vim": Program((*XTERM, "vim", "-u", "NONE", "--not-a-term"), "xterm", blinks=False, prelude="iab"),
    "mousepad": Program(("mousepad",), "mousepad", menu="alt+f", menu_at=(20, 12)),
    "featherpad": Program(("featherpad",), "featherpad", menu="alt+f", menu_at=(20, 12)),
}


def start(session):
    """Starts the program, waits until its window can be seen, has the focus, and is quiet."""
    program = PROGRAMS[session.scenario.program]
    prepare(session)
    if session.scenario.beside:
        beside(session)
    words = [word.format(home=session.folder / "home") for word in program.words]
    session.start("program", words)
    window = session.windows.wait_for(program.window, 60)
    if not window:
        raise processes.CannotRun(f"no window of {words[0]}: {(session.folder / 'program.log').read_text()[-300:]}")
    session.window = window
    time.sleep(program.settle_s)
    fit(session)
    focus(session, program)
    if program.prelude:
        session.input.write(program.prelude)
    if not session.wait_quiet():
        session.say("the screen did not become quiet")


def beside(session):
    """Another window, for alt-tab to have somewhere to go."""
    words = session.scenario.beside.split()
    session.start("beside", words)
    if not session.windows.wait_for(words[2] if words[1:2] == ["-name"] else words[0], 30):
        raise processes.CannotRun(f"no window of {session.scenario.beside}")


def prepare(session):
    """Files that some programs want in their home."""


def fit(session):
    """Gives large windows a size at which all of their decoration is on the screen."""
    place = session.place()
    if place.width > 1000 or place.height > 660:
        session.windows.resize(session.window, min(place.width, 900), min(place.height, 600))
        time.sleep(0.5)
    session.screen.look_at(session.windows.frame(session.window))


def focus(session, program):
    """Puts the pointer into the window, and clicks there."""
    for _ in range(3):
        session.input.click(*session.place().at(*program.body))
        time.sleep(0.6)
        if session.windows.has_focus(session.window):
            return
    raise processes.CannotRun("the window did not get the focus")
