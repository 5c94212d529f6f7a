# SPDX-License-Identifier: MIT OR Apache-2.0
"""GTK 4 window with a text and an idle handler that always has work: it never waits for an
event. F8 computes for two seconds."""

import time

import gi

gi.require_version("Gdk", "4.0")
gi.require_version("Gtk", "4.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402

WORK_S, LONG_S = 0.004, 2


def compute(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return True


def press(_controller, key, _code, _state, text):
    if key == Gdk.KEY_F8:
        compute(LONG_S)
        text.get_buffer().insert_at_cursor("done")


def show(application):
    window = Gtk.ApplicationWindow(application=application, default_width=600, default_height=400)
    text = Gtk.TextView()
    window.set_child(text)
    window.present()
    text.grab_focus()
    keys = Gtk.EventControllerKey()
    keys.connect("key-pressed", press, text)
    text.add_controller(keys)
    GLib.idle_add(compute, WORK_S, priority=GLib.PRIORITY_LOW)


application = Gtk.Application()
application.connect("activate", show)
application.run()
