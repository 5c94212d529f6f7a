# SPDX-License-Identifier: MIT OR Apache-2.0
"""Acts of a user at a desktop, at a human pace: the steps of calm sessions, and of the time
before a fault."""

import random
import subprocess
import time

from . import processes, programs

WORDS = "the quick brown fox jumps over a lazy dog and runs along the river bank until it is dark".split()
COMMANDS = ("echo one two", "ls /usr", "seq 1 30", "date", "pwd", "ls -l /etc", "true", "head -5 /etc/passwd")


def program_of(session):
    return programs.PROGRAMS[session.scenario.program]


def pause(low=0.3, high=0.8):
    time.sleep(random.uniform(low, high))


def typing(session):
    """Types some words, or commands in a terminal."""
    if program_of(session).shell:
        for command in random.sample(COMMANDS, 2):
            session.input.write(command)
            session.input.key("Return")
            pause()
        return
    session.input.write(" ".join(random.sample(WORDS, 3)) + " ")
    pause()


def erasing(session):
    for _ in range(4):
        session.input.key("BackSpace", expects=False)
        time.sleep(0.09)
    pause()


def clicking(session):
    """Clicks at some positions of the text; positions without an effect need no answer."""
    place = session.place()
    for down in (0.3, 0.5, 0.7):
        session.input.click(*place.at(random.uniform(0.2, 0.7), down), expects=False)
        pause(0.6, 1.0)


def selecting(session):
    place = session.place()
    session.input.drag(place.at(0.05, 0.25), place.at(0.5, 0.45))
    pause()
    session.input.click(*place.at(0.4, 0.7), expects=False)
    pause()


def scrolling(session):
    session.input.move(*session.place().at(0.5, 0.5))
    for number in (5, 4):
        session.input.scroll(number)
        pause()


def menu(session):
    """Opens a menu by a click and by keys, and closes it again."""
    program = program_of(session)
    if program.menu_at:
        session.input.click(*session.place().at(*program.menu_at))
        pause(0.7, 1.0)
        session.input.key("Escape")
        pause(0.5, 0.8)
    if program.menu:
        session.input.key(program.menu)
        pause(0.7, 1.0)
        for key in ("Down", "Down", "Escape"):
            session.input.key(key, expects=False)
            pause(0.3, 0.5)


def switching(session):
    """Switches to another window and back, by keys."""
    for _ in range(2):
        session.input.key("alt+Tab", expects=False)
        pause(0.8, 1.2)


def drag_title(session, across, down):
    """Drags the window by its title bar; returns the time of the press."""
    frame, place = session.windows.frame(session.window), session.place()
    begin = (place.x + place.width * 0.35, frame.y + (place.y - frame.y) * 0.6)
    return session.input.drag(begin, (begin[0] + across, begin[1] + down))


def moving(session):
    """Moves the window, if it has a title bar."""
    if session.place().y - session.windows.frame(session.window).y < 8:
        return
    drag_title(session, 60, 40)
    pause()
    session.screen.look_at(session.windows.frame(session.window))


def placing(session):
    """Lets another program move the window, as scripts do."""
    words = ["wmctrl", "-i", "-r", hex(session.window.id), "-e", "0,120,90,-1,-1"]
    processes.start(words, session.env, stderr=subprocess.DEVNULL).wait()
    pause()
    session.screen.look_at(session.windows.frame(session.window))


def hovering(session):
    """Moves the pointer around; nothing needs an answer."""
    place = session.place()
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.6, 0.2):
        session.input.move(*place.at(share, 1 - share))
        time.sleep(0.05)
    pause()


def paging(session):
    for key in ("Page_Down", "Page_Down", "Page_Up", "Down", "Down"):
        session.input.key(key)
        pause(0.25, 0.5)


ACTS = {act.__name__: act for act in (typing, erasing, clicking, selecting, scrolling, menu, switching, moving, placing, hovering, paging)}


def perform(session, names):
    for name in names:
        session.say(f"act {name}")
        ACTS[name](session)


def warm_up(session):
    """Performs the acts before a fault, from which the baseline is learned."""
    perform(session, program_of(session).usual)
    session.wait_quiet(5)
