# SPDX-License-Identifier: MIT OR Apache-2.0
"""Actions of a user in a session: work in a program, and buttons of a banner."""

import time

from shared import until
from stage import processes
from stage.windows import Place

from . import picture

FOCUS_MAX_S = 5
NOTIFICATIONS = ("org.freedesktop.Notifications", "/org/freedesktop/Notifications", "org.freedesktop.Notifications")


class Person:
    """User of a session with display, input and a monitor of the bus."""

    def banner_region(self):
        width, height = self.grab().size
        left, top, right, bottom = self.desktop.banners
        return Place(int(width * left), int(height * top), int(width * (right - left)), int(height * (bottom - top)))

    def start_program(self, is_open):
        """Starts the program of the test, and waits for its window."""
        words = [word.format(home=self.folder / "home") for word in self.desktop.program]
        self.start("program", words)
        if not until(is_open, None, 30, 0.3):
            raise self.failure(f"no window of {words[0]}", "program")
        time.sleep(self.desktop.settle_s)

    def open_program(self):
        """Opens the program with the focus, at the left of the screen."""
        self.start_program(lambda: self.windows.find(self.desktop.window))
        # The first window may have been a dialog or splash screen.
        window = self.windows.wait_for(self.desktop.window, 30)
        window.configure(x=60, y=120, width=600, height=420)
        self.windows.display.sync()
        time.sleep(0.7)
        self.window = window
        self.focus()

    def focus(self):
        """Clicks into the program until it has the focus."""
        def clicked():
            self.input.click(*self.windows.place(self.window).at(0.5, 0.6))
            time.sleep(0.5)
            return self.windows.has_focus(self.window)

        if not until(clicked, None, FOCUS_MAX_S, 0):
            self.say(f"{self.desktop.program[0]} does not get the focus")

    def victim(self):
        return self.roles["program"]

    def names(self):
        """Returns the names that a verdict may use for the program."""
        return (processes.comm(self.victim()), self.desktop.program[0])

    def act(self, banner, key):
        """Invokes an action of a verdict; returns the time, or None if the bus has no such action."""
        if not banner.note:
            return None
        now = next((one for one in reversed(self.ear.shown) if not one.closed and key in one.actions), banner.note)
        buttons = [one for one in now.actions if one != "default"]
        place = picture.changed(banner.before, self.await_quiet(3), self.banner_region())
        begin = processes.now_ns()
        if key == "default" and place:
            self.input.click(*place.at(*self.desktop.body))
        elif key in buttons and place and self.desktop.buttons:
            self.input.click(*self.desktop.buttons(buttons.index(key), len(buttons), place))
        elif self.desktop.invoke:
            self.run([word.format(number=now.number, key=key) for word in self.desktop.invoke])
        return begin if self.ear.wait_invoked(now.number, key) else None

    def dismiss(self, note):
        """Closes a notification."""
        address = f"--address={self.env['DBUS_SESSION_BUS_ADDRESS']}"
        self.run(["busctl", address, "call", *NOTIFICATIONS, "CloseNotification", "u", note.number])
        time.sleep(0.7)

    def clear(self):
        """Closes all notifications."""
        for note in [one for one in self.ear.shown if one.number and not one.closed]:
            self.dismiss(note)

    def pasted(self):
        """Pastes into the program and saves; returns the contents of the file."""
        self.focus()
        for chord in (self.desktop.paste, self.desktop.save):
            self.input.key(chord)
            time.sleep(0.5)
        time.sleep(0.5)
        return (self.folder / "home/note.txt").read_text(errors="replace")
