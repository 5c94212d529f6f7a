# SPDX-License-Identifier: MIT OR Apache-2.0
"""Injection of keyboard and mouse input, in two ways.

`Lasting` keeps one client of the XTEST extension for the whole session; `Passing` starts a
process (xdotool) for each event. Results differ: a new client wakes every window manager. Both
log the time at which each event was sent."""

import subprocess
import sys
import time

from . import processes
from .keysyms import NAMES

# Time between press and release of a key or button, in seconds.
HOLD_S = 0.03
MODIFIERS = {"ctrl": "Control_L", "alt": "Alt_L", "shift": "Shift_L", "super": "Super_L"}


def names(chord):
    """Returns the keysyms of a chord such as ctrl+shift+t, in the order in which they are
    pressed."""
    words = [chord] if len(chord) == 1 else chord.split("+")
    return [MODIFIERS.get(word, NAMES.get(word, word)) for word in words]


class Input:
    """Common part of both ways: the log, and gestures composed of single events."""

    def __init__(self):
        self.events = []

    def log(self, begin_ns, what, expects):
        self.events.append({"ns": begin_ns, "what": what, "expects": expects})
        return begin_ns

    def key(self, chord, expects=True):
        """Presses and releases a chord; returns the time of the press."""
        return self.log(self.chord(names(chord)), f"key {chord}", expects)

    def button(self, number, down, expects=False):
        word = "press" if down else "release"
        return self.log(self.send(f"{word}button {number}"), f"{word} {number}", expects)

    def move(self, x, y, expects=False):
        return self.log(self.send(f"move {int(x)} {int(y)}"), "move", expects)

    def click(self, x, y, number=1, expects=True):
        """Moves the pointer and clicks; returns the time of the press."""
        self.move(x, y)
        time.sleep(0.12)
        begin = self.button(number, True, expects)
        time.sleep(0.06)
        self.button(number, False)
        return begin

    def drag(self, begin, end, steps=12, pace_s=0.02):
        self.move(*begin)
        time.sleep(0.1)
        pressed = self.button(1, True)
        for step in range(1, steps + 1):
            time.sleep(pace_s)
            at = [one + (other - one) * step / steps for one, other in zip(begin, end)]
            self.move(*at)
        time.sleep(0.05)
        self.button(1, False)
        return pressed

    def scroll(self, number, times=5, pace_s=0.08):
        for _ in range(times):
            self.button(number, True)
            self.button(number, False)
            time.sleep(pace_s)

    def write(self, text, pace_s=0.11, expects=True):
        """Types a text; returns the time of the last key."""
        sent = 0
        for at, letter in enumerate(text):
            sent = self.key(letter, expects)
            time.sleep(pace_s * (0.7 + 0.6 * ((at * 7) % 10) / 10))
        return sent


class Lasting(Input):
    """Uses one client for the whole session, in a process of its own."""

    def __init__(self, process):
        super().__init__()
        self.process = process
        if self.process.stdout.readline().strip() != "ready":
            raise processes.CannotRun("the injector did not start")

    def pid(self):
        return self.process.pid

    def send(self, line):
        self.process.stdin.write(line + "\n")
        return int(self.process.stdout.readline())

    def chord(self, keysyms):
        return self.send("chord " + " ".join(keysyms))


class Passing(Input):
    """Uses a process for each event."""

    WORDS = {"pressbutton": "mousedown", "releasebutton": "mouseup", "move": "mousemove"}

    def __init__(self, env):
        super().__init__()
        self.env = env

    def pid(self):
        return None

    def run(self, words):
        begin = processes.now_ns()
        processes.start(["xdotool", *words], self.env).wait()
        return begin

    def send(self, line):
        word, *rest = line.split()
        return self.run([self.WORDS[word], *rest])

    def chord(self, keysyms):
        return self.run(["key", "--delay", str(int(HOLD_S * 1000)), "+".join(keysyms)])


# Pipes of an injector, which reads one event per line, and answers with its time.
ASKED = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}


def make(kind, env):
    return Passing(env) if kind == "passing" else Lasting(processes.start([sys.executable, "-B", "-c", PROGRAM], env, **ASKED))


# The injector for a whole session.
PROGRAM = f"""
import sys, time
from Xlib import X, XK, display
from Xlib.ext import xtest
d = display.Display()
codes = {{}}
def code(name):
    if name not in codes:
        sym = XK.string_to_keysym(name)
        places = sorted(d.keysym_to_keycodes(sym), key=lambda place: place[1])
        codes[name] = places[0]
    return codes[name]
def fake(kind, detail, **more):
    xtest.fake_input(d, kind, detail, **more)
def chord(syms):
    keys = [code(name) for name in syms]
    shift = code('Shift_L')[0]
    downs = [key for key, _ in keys]
    if keys[-1][1] % 2 == 1 and shift not in downs:
        downs.insert(0, shift)
    for key in downs[:-1]:
        fake(X.KeyPress, key)
    d.flush()
    at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    fake(X.KeyPress, downs[-1])
    d.flush()
    time.sleep({HOLD_S})
    for key in reversed(downs):
        fake(X.KeyRelease, key)
    d.flush()
    return at
def one(words):
    if words[0] == 'chord':
        return chord(words[1:])
    at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if words[0] == 'move':
        fake(X.MotionNotify, False, x=int(words[1]), y=int(words[2]))
    else:
        fake(X.ButtonPress if words[0] == 'pressbutton' else X.ButtonRelease, int(words[1]))
    d.flush()
    return at
print('ready', flush=True)
for line in sys.stdin:
    print(one(line.split()), flush=True)
"""
