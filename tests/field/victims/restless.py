# SPDX-License-Identifier: MIT OR Apache-2.0
"""A window of GTK 4 with a text, whose idle handler always has work: it never waits for an event."""

import time

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk  # noqa: E402

WORK_S = 0.004


def work():
    until = time.monotonic() + WORK_S
    while time.monotonic() < until:
        pass
    return True


def show(application):
    window = Gtk.ApplicationWindow(application=application, default_width=600, default_height=400)
    text = Gtk.TextView()
    window.set_child(text)
    window.present()
    text.grab_focus()
    GLib.idle_add(work, priority=GLib.PRIORITY_LOW)


application = Gtk.Application()
application.connect("activate", show)
application.run()
