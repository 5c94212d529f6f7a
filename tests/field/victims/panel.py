# SPDX-License-Identifier: MIT OR Apache-2.0
"""GTK 4 window with a text and two buttons below it, also alt+l and alt+t. One locks the file
`lock` itself; for the other a thread does, while the window's own thread waits for it."""

import fcntl
import pathlib
import threading

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import Gtk  # noqa: E402


def lock():
    with open(pathlib.Path.home() / "lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def lock_by_thread():
    thread = threading.Thread(target=lock)
    thread.start()
    thread.join()


def press(_button, said, work):
    work()
    said.set_text(said.get_text() + " locked")


def show(application):
    window = Gtk.ApplicationWindow(application=application, default_width=700, default_height=500)
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    text, said, row = Gtk.TextView(vexpand=True), Gtk.Label(label="ready"), Gtk.Box(homogeneous=True)
    for name, work in (("_lock", lock), ("by a _thread", lock_by_thread)):
        button = Gtk.Button(label=name, use_underline=True, height_request=80)
        button.connect("clicked", press, said, work)
        row.append(button)
    for part in (text, said, row):
        box.append(part)
    window.set_child(box)
    window.present()
    text.grab_focus()


application = Gtk.Application()
application.connect("activate", show)
application.run()
