# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waits of commands: for locks, peers, name servers, disks, which a helper holds until it
receives a line."""

import time

from . import fault, processes, scripts, stopping
from .fault import Fault

JUST_BEFORE_NS = 20_000_000

# A script takes the resource; at a line on its standard input it releases it and reports the time:
# see scripts.PRELUDE.
SOURCES = {
    "flock": """
file = open("lock", "w"); fcntl.flock(file, fcntl.LOCK_EX)
hold(); fcntl.flock(file, fcntl.LOCK_UN); released()
""",
    "sqlite": """
import sqlite3
base = sqlite3.connect("data.db", isolation_level=None)
base.execute("create table if not exists t (a)"); base.execute("begin exclusive")
hold(); base.execute("commit"); released()
""",
    "fifo": """
os.path.exists("fifo") or os.mkfifo("fifo")
hold(); open("fifo", "w").write("answer\\n"); released()
""",
    "tcp": "answer_late(listening(), ANSWER)",
    # Requests in succession, while it still computes for an earlier one.
    "busy": """
server = listening()
print("ready")
while not select.select([sys.stdin], [], [], 0)[0]:
    sum(range(9000))
sys.stdin.readline()
print(now())
while True:
    one, _ = server.accept(); one.recv(999); one.sendall(ANSWER); one.close()
""",
    "resolver": """
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(("127.0.0.1", int(open("port").read())))
go = threading.Event()
def serve():
    while True:
        data, peer = server.recvfrom(600); go.wait()
        server.sendto(data[:2] + b"\\x81\\x83" + data[4:], peer)
in_thread(serve); hold(); go.set(); released()
""",
    "backlog": """
server = listening(0)
waiting = [socket.socket() for _ in range(3)]
for one in waiting:
    one.setblocking(False); one.connect_ex(server.getsockname())
hold(); at = now()
for one in waiting:
    one.close()
print(at); server.settimeout(9)
while True:
    one, _ = server.accept(); one.settimeout(0.2)
    try:
        if one.recv(99):
            one.sendall(ANSWER)
    except OSError:
        pass
    one.close()
""",
    "pipe": """
os.path.exists("full") or os.mkfifo("full")
file = os.open("full", os.O_RDWR)
hold(); print(now())
while os.read(file, 1 << 16):
    pass
""",
    "dns": """
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(("127.0.0.77", 53))
print("ready")
asked, late = [], True
def answer(data, peer):
    server.sendto(data[:2] + b"\\x81\\x83" + data[4:], peer)
while True:
    ready = select.select([sys.stdin, server], [], [])[0]
    if server in ready:
        one = server.recvfrom(600)
        asked.append(one) if late else answer(*one)
    if sys.stdin in ready:
        if not sys.stdin.readline():
            break
        late = False
        for one in asked:
            answer(*one)
        print(now())
""",
    "unix": """
server = socket.socket(socket.AF_UNIX); server.bind("peer"); server.listen(8)
answer_late(server, b"HTTP/1.0 200 OK\\r\\n\\r\\nanswer\\n")
""",
    "log": """
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); log.bind("log")
filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); filler.connect("log"); filler.setblocking(False)
try:
    while True:
        filler.send(b"line")
except BlockingIOError:
    pass
hold()
for _ in range(5):
    log.recv(100)
released()
""",
}

# A name on the session bus with an owner that does not answer.
SILENT = """
import dbus.bus
bus = dbus.bus.BusConnection(dbus.bus.BusConnection.TYPE_SESSION)
bus.request_name("{}")
hold(); bus.close(); released()
"""
for what, name in (("portal", "org.freedesktop.portal.Desktop"), ("accessibility", "org.a11y.Bus"), ("notifications", "org.freedesktop.Notifications")):
    SOURCES[what] = SILENT.format(name)


class Held(Fault):
    """A command waits for a resource that a helper holds: `held flock`."""

    PARAMETERS, AS_USER = {"what": ""}, True

    def script(self):
        """Returns the script's name and its text."""
        return f"hold-{self.what}", SOURCES[self.what]

    def settle(self):
        self.helper = scripts.start(self.session, "helper", *self.script(), as_user=self.AS_USER)

    def end(self):
        """Releases the resource. That may take a while itself, such as a commit; the waiting
        command may answer just before the helper has confirmed it."""
        at = processes.now_ns()
        return max(at, fault.send(self.helper) - JUST_BEFORE_NS)


class HeldStopped(Held):
    """The same, with the helper stopped meanwhile."""

    def begin(self):
        stopping.signalled(self.session, "STOP", self.helper.pid)
        time.sleep(0.1)

    def end(self):
        at = processes.now_ns()
        stopping.signalled(self.session, "CONT", self.helper.pid)
        fault.send(self.helper)
        return at


class Names(Held):
    """A name server on the loopback answers late; the program sees a resolv.conf of its own."""

    PARAMETERS, what, AS_USER = {}, "dns", False


FAULTS = {"held": Held, "held-stopped": HeldStopped, "names": Names}
