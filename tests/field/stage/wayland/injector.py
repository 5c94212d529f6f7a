# SPDX-License-Identifier: MIT OR Apache-2.0
"""Injector: reads an event a line, and answers with the time at which it was sent.

It uses any interface that the compositor offers: a virtual keyboard and pointer (sway), KWin's
fake input, or the remote desktop of Mutter. None of them waits for the compositor, which may be
stopped."""

import os
import sys
import time

import keysyms
import wire

HOLD_S = 0.03
LEFT, RIGHT, MIDDLE = 0x110, 0x111, 0x112
BUTTONS = {1: LEFT, 2: MIDDLE, 3: RIGHT}
# Wheel notches by their X11 button numbers: down is 5.
NOTCHES = {4: -1, 5: 1}
WIDTH, HEIGHT = map(int, os.environ["TIPME_FIELD_SIZE"].split("x"))
ROWS = ((2, "1234567890-="), (16, "qwertyuiop[]"), (30, "asdfghjkl;'`"), (43, "\\zxcvbnm,./"))
SHIFTED = dict(zip('!@#$%^&*()_+{}:"~|<>?', "1234567890-=[];'`\\,./"))
LETTERS = {name: letter for letter, name in keysyms.NAMES.items() if letter not in " \n"}
CODES = {letter: first + at for first, letters in ROWS for at, letter in enumerate(letters)}
CODES |= {"space": 57, "Return": 28, "Escape": 1, "BackSpace": 14, "Tab": 15, "Page_Up": 104, "Page_Down": 109,
          "Up": 103, "Down": 108, "Left": 105, "Right": 106, "Home": 102, "End": 107, "Delete": 111,
          "Shift_L": 42, "Control_L": 29, "Alt_L": 56, "Super_L": 125} | {f"F{at}": 58 + at for at in range(1, 11)}  # fmt: skip
# Bits of the modifiers in that keymap.
MODIFIERS = {42: 1, 29: 4, 56: 8, 125: 64}
KEYMAP = b"""xkb_keymap {
    xkb_keycodes { include "evdev+aliases(qwerty)" };
    xkb_types { include "complete" };
    xkb_compat { include "complete" };
    xkb_symbols { include "pc+us+inet(evdev)" };
};
\0"""


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def now_ms():
    return now_ns() // 1_000_000 & 0xFFFFFFFF


class Virtual:
    """Uses the protocols zwp_virtual_keyboard_v1 and zwlr_virtual_pointer_v1."""

    def __init__(self, client):
        self.client, self.held = client, 0
        seat = client.bind("wl_seat", 1)
        keyboards = client.bind("zwp_virtual_keyboard_manager_v1", 1)
        pointers = client.bind("zwlr_virtual_pointer_manager_v1", 1)
        self.keyboard, self.pointer = client.new(), client.new()
        client.request(keyboards, 0, wire.words(seat, self.keyboard))
        client.request(pointers, 0, wire.words(seat, self.pointer))
        file = os.memfd_create("keymap")
        os.write(file, KEYMAP)
        client.request(self.keyboard, 0, wire.words(1, len(KEYMAP)), [file])
        client.settle()

    def key(self, code, down):
        self.client.request(self.keyboard, 1, wire.words(now_ms(), code, down))
        if code in MODIFIERS:
            self.held = self.held | MODIFIERS[code] if down else self.held & ~MODIFIERS[code]
            self.client.request(self.keyboard, 2, wire.words(self.held, 0, 0, 0))

    def point(self, opcode, *arguments):
        self.client.request(self.pointer, opcode, wire.words(now_ms(), *arguments))
        self.client.request(self.pointer, 4)

    def button(self, code, down):
        self.point(2, code, down)

    def wheel(self, notch):
        self.point(7, 0, wire.fixed(15 * notch), notch)

    def move(self, x, y):
        self.point(1, x, y, WIDTH, HEIGHT)


class Fake:
    """Uses the protocol org_kde_kwin_fake_input."""

    def __init__(self, client):
        self.client, self.input = client, client.bind("org_kde_kwin_fake_input", 4)
        client.request(self.input, 0, wire.text("tipme") + wire.text("the field test"))
        client.settle()

    def key(self, code, down):
        self.client.request(self.input, 10, wire.words(code, down))

    def button(self, code, down):
        self.client.request(self.input, 2, wire.words(code, down))

    def wheel(self, notch):
        self.client.request(self.input, 3, wire.words(0, wire.fixed(15 * notch)))

    def move(self, x, y):
        self.client.request(self.input, 9, wire.words(wire.fixed(x), wire.fixed(y)))


class Remote:
    """Uses org.gnome.Mutter.RemoteDesktop on the session's bus."""

    NAME = "org.gnome.Mutter.RemoteDesktop"

    def __init__(self):
        import dbus

        self.dbus, self.bus = dbus, dbus.SessionBus()
        desktop = self.bus.get_object(self.NAME, "/org/gnome/Mutter/RemoteDesktop")
        path = desktop.CreateSession(dbus_interface=self.NAME)
        self.session = self.bus.get_object(self.NAME, path)
        self.session.Start(dbus_interface=f"{self.NAME}.Session")
        # The seat has a keyboard from the first key on.
        for down in (1, 0):
            self.key(CODES["Shift_L"], down)

    def call(self, method, *arguments):
        call = self.session.get_dbus_method(f"Notify{method}", f"{self.NAME}.Session")
        call(*arguments, ignore_reply=True)
        self.bus.flush()

    def key(self, code, down):
        self.call("KeyboardKeycode", self.dbus.UInt32(code), bool(down))

    def button(self, code, down):
        self.call("PointerButton", self.dbus.Int32(code), bool(down))

    def wheel(self, notch):
        self.call("PointerAxisDiscrete", self.dbus.UInt32(0), self.dbus.Int32(notch))

    def move(self, x, y):
        """Moves relative to the lower right corner, since absolute positions need a screen cast
        stream; the upper left corner opens the overview of GNOME Shell."""
        self.call("PointerMotionRelative", 10_000.0, 10_000.0)
        self.call("PointerMotionRelative", float(x - WIDTH + 1), float(y - HEIGHT + 1))


def device():
    client = wire.Client()
    if "zwp_virtual_keyboard_manager_v1" in client.offers:
        return Virtual(client)
    if "org_kde_kwin_fake_input" in client.offers:
        return Fake(client)
    return Remote()


def codes(names):
    """Returns the keys of a chord in the order in which they are pressed."""
    names = [LETTERS.get(name, name) for name in names]
    plain = [SHIFTED.get(name, name.lower() if len(name) == 1 else name) for name in names]
    found = [CODES[name] for name in plain]
    shift = CODES["Shift_L"]
    return [shift, *found] if plain[-1] != names[-1] and shift not in found else found


def chord(target, names):
    *held, last = codes(names)
    for code in held:
        target.key(code, 1)
    at = now_ns()
    target.key(last, 1)
    time.sleep(HOLD_S)
    for code in (last, *reversed(held)):
        target.key(code, 0)
    return at


def point(target, word, numbers):
    at = now_ns()
    if word == "move":
        target.move(*numbers)
    elif numbers[0] in NOTCHES:
        if word == "pressbutton":
            target.wheel(NOTCHES[numbers[0]])
    else:
        target.button(BUTTONS[numbers[0]], word == "pressbutton")
    return at


def main():
    target = device()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        print(chord(target, rest) if word == "chord" else point(target, word, [int(one) for one in rest]), flush=True)


main()
