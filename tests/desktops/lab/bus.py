# SPDX-License-Identifier: MIT OR Apache-2.0
"""Session bus: the programs that it can start, and its traffic about notifications."""

import dataclasses
import json
import pathlib
import subprocess
import threading

from shared import until
from stage import processes

SERVICES = pathlib.Path("/usr/share/dbus-1/services")
NOTIFICATIONS = "org.freedesktop.Notifications"
CONFIGURATION = """<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{services}</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


def configure(folder, server):
    """Configures a bus of one desktop, which can start only that desktop's notification server."""
    services = folder / "services"
    services.mkdir()
    for file in SERVICES.glob("*.service"):
        if f"Name={NOTIFICATIONS}\n" not in file.read_text() or (server and server in file.read_text()):
            (services / file.name).symlink_to(file)
    configuration = folder / "bus.conf"
    configuration.write_text(CONFIGURATION.format(services=services))
    return configuration


@dataclasses.dataclass
class Shown:
    """A notification sent by a program: time, contents, and the number that the server assigned."""

    ns: int
    summary: str
    body: str
    actions: list
    replaces: int
    number: int = 0
    closed: bool = False


class Ear:
    """Monitors the bus: notifications, their numbers, and the actions that were invoked."""

    def __init__(self, session):
        self.say, self.shown, self.invoked, self.asked = session.say, [], [], {}
        words = ["busctl", f"--address={session.env['DBUS_SESSION_BUS_ADDRESS']}", "monitor", "--json=short"]
        words += [f"--match=interface='{NOTIFICATIONS}'", "--match=type='method_return'"]
        self.process = session.start("ear", words, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            at = processes.now_ns()
            try:
                self.take(at, json.loads(line))
            except (ValueError, KeyError, IndexError):
                continue

    def take(self, at, said):
        data, member = said.get("payload", {}).get("data", []), said.get("member")
        if member == "Notify":
            one = Shown(at, data[3], data[4], data[5][::2], data[1])
            self.asked[said["sender"], said["cookie"]] = one
            self.shown.append(one)
            self.say(f"notification: {one.summary}: {', '.join(one.actions)}")
        elif said["type"] == "method_return":
            one = self.asked.pop((said.get("destination"), said.get("reply_cookie")), None)
            if one:
                one.number = data[0]
        elif member == "ActionInvoked":
            self.invoked.append((data[0], data[1]))
            self.say(f"action: {data[1]} of notification {data[0]}")
        elif member == "NotificationClosed":
            for one in self.shown:
                one.closed = one.closed or one.number == data[0]

    def wait(self, begin_ns, words, timeout_s, has=True):
        """Returns the first notification after a time with one of these words (or none) in its
        summary; nothing on a timeout."""
        def found():
            return next((one for one in list(self.shown) if one.ns >= begin_ns and has == any(word in one.summary for word in words)), None)

        return until(found, None, timeout_s, 0.01)

    def wait_invoked(self, number, key, timeout_s=5):
        return until(lambda: (number, key) in self.invoked, None, timeout_s, 0.02)
