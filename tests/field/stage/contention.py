# SPDX-License-Identifier: MIT OR Apache-2.0
"""Competition for shared resources: CPUs, CPU quota, the display server."""

import os
import pathlib
import time

from . import fault, processes, scripts
from .fault import Fault

GRAB = """
from Xlib import display
d = display.Display()
print('ready')
for line in sys.stdin:
    d.grab_server() if line.strip() == 'grab' else d.ungrab_server()
    d.sync()
    print(now())
"""

FLOOD = """
from Xlib import X, display
d = display.Display()
screen = d.screen()
pixmap = screen.root.create_pixmap(1200, 780, screen.root_depth)
gc = pixmap.create_gc(function=X.GXxor, plane_mask=0x55555555, foreground=0x123456)
print('ready')
for line in sys.stdin:
    print(now())
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(200):
            pixmap.poly_arc(gc, [(0, 0, 1100, 700, 0, 360 * 64)] * 40)
        d.flush()
    break
print(now())
"""


class Grab(Fault):
    """Another client grabs the display server."""

    NAME, SOURCE = "take-screenshot", GRAB

    def ready(self):
        self.client = scripts.start(self.session, "helper", self.NAME, self.SOURCE)

    def begin(self):
        fault.send(self.client, "grab")

    def end(self):
        return fault.send(self.client, "ungrab")


class Flood(Grab):
    """Another client draws more than the display server can process."""

    NAME, SOURCE, bounded = "draw-always", FLOOD, False

    def begin(self):
        fault.send(self.client, "draw")
        time.sleep(0.5)

    def end(self):
        at = processes.now_ns()
        processes.end({self.client.pid})
        return at


class Hogs(Fault):
    """Busy processes: `hogs fifo 2`, `hogs nice0 20`."""

    PARAMETERS = {"kind": "nice0", "count": "20"}
    bounded = False
    BUSY = ["sh", "-c", "while :; do :; done"]
    NICE = {}

    def __init__(self, session, words=""):
        super().__init__(session, words)
        if self.kind == "fifo":
            self.hold_s = 1.3

    def settle(self):
        for pid in (self.session.roles.get("watcher"), self.session.input.pid(), os.getpid()):
            if pid:
                os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(60))

    def words(self):
        """Returns the command that starts them all."""
        urgent = "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))\n" if self.kind == "fifo" else ""
        source = f"import os\n{urgent}"
        source += f"for _ in range({self.count}):\n if os.fork() == 0:\n  os.execvp('sh', {self.BUSY})\nos.wait()\n"
        return ["nice", "-n", self.NICE.get(self.kind, "0"), "/usr/bin/python3", "-B", "-c", source]

    def begin(self):
        self.parent = self.session.start("hogs", self.words(), as_user=self.kind.startswith("nice"), preexec_fn=plain)
        time.sleep(0.25 if self.kind == "fifo" else 0.8)

    def end(self):
        at = processes.now_ns()
        for pid in {self.parent.pid} | processes.descendants(self.parent.pid):
            processes.send(pid, 9)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return at


class Starved(Hogs):
    """Busy processes take the compositor's CPU: `starved fifo 1`; `starved urgent 4` have the
    usual policy."""

    CPU = {0}
    NICE = {"urgent": "-20"}

    def settle(self):
        super().settle()
        for thread in pathlib.Path(f"/proc/{self.session.roles['server']}/task").iterdir():
            os.sched_setaffinity(int(thread.name), self.CPU)

    def words(self):
        return ["taskset", "-c", *map(str, self.CPU), *super().words()]

    def begin(self):
        """Gives each session of processes a group with its own nice value, if the kernel groups
        by sessions."""
        super().begin()
        group = pathlib.Path(f"/proc/{self.parent.pid}/autogroup")
        if self.kind in self.NICE and group.exists():
            group.write_text(self.NICE[self.kind])


def plain():
    """Prevents a started process from inheriting this process's priority."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class Storm(Hogs):
    """A build: many short-lived compilers."""

    BUSY = ["sh", "-c", "while :; do echo 'int main(void){return 0;}' | gcc -O2 -x c - -o /dev/null; done"]


class Quota(Fault):
    """A role's group has so small a quota that each answer waits for the next period: `quota
    server`."""

    PARAMETERS = {"role": "program"}
    bounded = False

    def ready(self):
        self.group = self.grouped("cpu", "cpu.cfs_quota_us", self.role)

    def begin(self):
        self.group.set("cpu.cfs_period_us", "1000000")
        self.group.set("cpu.cfs_quota_us", "1000")

    def end(self):
        at = processes.now_ns()
        self.group.set("cpu.cfs_quota_us", "-1")
        return at


FAULTS = {"grab": Grab, "flood": Flood, "hogs": Hogs, "starved": Starved, "storm": Storm, "quota": Quota}
