# SPDX-License-Identifier: MIT OR Apache-2.0
"""A desktop portal that refuses shortcuts or hangs for a time; a separate program of the user.

    portal.py refuse      opens a session, and refuses to bind
    portal.py silent S    hangs for S seconds, then binds the shortcut `mark` in sway
"""

import os
import pathlib
import subprocess
import sys
import time

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME, OBJECT = "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop"
SHORTCUTS, REQUEST = "org.freedesktop.portal.GlobalShortcuts", "org.freedesktop.portal.Request"
DONE, REFUSED = 0, 2
# Interface for the key binding of sway.
LAB = "io.tipme.Lab"
CHORD = "Ctrl+Alt+minus"


class Request(dbus.service.Object):
    @dbus.service.signal(REQUEST, signature="ua{sv}")
    def Response(self, response, results):
        pass


class Portal(dbus.service.Object):
    def __init__(self, bus, refuses):
        super().__init__(bus, OBJECT)
        self.bus, self.refuses, self.requests, self.bound = bus, refuses, {}, None

    def answer(self, sender, options, response, results):
        """Answers by a signal of the request, whose path the specification sets."""
        path = f"{OBJECT}/request/{sender[1:].replace('.', '_')}/{options['handle_token']}"
        if path not in self.requests:
            self.requests[path] = Request(self.bus, path)
        GLib.idle_add(lambda: self.requests[path].Response(dbus.UInt32(response), results) and False)
        return dbus.ObjectPath(path)

    @dbus.service.method(SHORTCUTS, "a{sv}", "o", sender_keyword="sender")
    def CreateSession(self, options, sender):
        session = f"{OBJECT}/session/{sender[1:].replace('.', '_')}/{options['session_handle_token']}"
        return self.answer(sender, options, DONE, {"session_handle": session})

    @dbus.service.method(SHORTCUTS, "oa(sa{sv})sa{sv}", "o", sender_keyword="sender")
    def BindShortcuts(self, session, shortcuts, _window, options, sender):
        if self.refuses:
            return self.answer(sender, options, REFUSED, {})
        self.bound = (session, "mark")
        bind_in_sway()
        given = {"trigger_description": "Ctrl+Alt+Minus"}
        bound = [(name, dbus.Dictionary(given, signature="sv")) for name, _ in shortcuts]
        return self.answer(sender, options, DONE, {"shortcuts": dbus.Array(bound, signature="(sa{sv})")})

    @dbus.service.signal(SHORTCUTS, signature="osta{sv}")
    def Activated(self, session, name, at, options):
        pass

    @dbus.service.method(LAB)
    def Press(self):
        self.Activated(*self.bound, dbus.UInt64(time.monotonic() * 1000), {})

    @dbus.service.method("org.freedesktop.DBus.Properties", "ss", "v")
    def Get(self, _interface, _name):
        return dbus.UInt32(1)


def bind_in_sway():
    """Makes the key call `Press`; a reload of sway takes it back."""
    socket = max(pathlib.Path(os.environ["XDG_RUNTIME_DIR"]).glob("sway-ipc.*"))
    address = os.environ["DBUS_SESSION_BUS_ADDRESS"].partition(",")[0]  # sway ends a command at a comma
    bus = f"busctl --address={address}"
    words = ["swaymsg", "-s", str(socket), "--", f"bindsym {CHORD} exec {bus} call {NAME} {OBJECT} {LAB} Press"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def main():
    bus = dbus.SessionBus(mainloop=dbus.mainloop.glib.DBusGMainLoop())
    name = dbus.service.BusName(NAME, bus, replace_existing=True, do_not_queue=True)
    portal = Portal(bus, sys.argv[1] == "refuse")
    print("ready", flush=True)
    if sys.argv[1] == "silent":
        time.sleep(float(sys.argv[2]))
    GLib.MainLoop().run()
    del name, portal


main()
