# SPDX-License-Identifier: MIT OR Apache-2.0
"""What commands wait for: locks, peers, name servers, disks; held by a helper until it is told to let go."""

import time

from . import fault, processes, stopping
from .fault import Fault

JUST_BEFORE_NS = 20_000_000

TOLD = "print('ready'); sys.stdin.readline()\n"
TIMED = "print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))\nsys.stdin.readline()\n"

# A helper takes what is wanted, and at a line on its standard input lets go of it and says when.
SOURCES = {
    "flock": f"""
import fcntl, sys, time
file = open('lock', 'w'); fcntl.flock(file, fcntl.LOCK_EX)
{TOLD}fcntl.flock(file, fcntl.LOCK_UN)
{TIMED}""",
    "fcntl": f"""
import fcntl, sys, time
file = open('lock', 'w'); fcntl.lockf(file, fcntl.LOCK_EX)
{TOLD}fcntl.lockf(file, fcntl.LOCK_UN)
{TIMED}""",
    "sqlite": f"""
import sqlite3, sys, time
base = sqlite3.connect('data.db', isolation_level=None)
base.execute('create table if not exists t (a)'); base.execute('begin exclusive')
{TOLD}base.execute('commit')
{TIMED}""",
    "fifo": f"""
import os, sys, time
os.path.exists('fifo') or os.mkfifo('fifo')
{TOLD}open('fifo', 'w').write('answer\\n')
{TIMED}""",
    "tcp": f"""
import socket, sys, threading, time
server = socket.socket(); server.bind(('127.0.0.1', int(open('port').read()))); server.listen(8)
go = threading.Event()
def serve():
    while True:
        one, _ = server.accept(); go.wait()
        one.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Length: 7\\r\\n\\r\\nanswer\\n'); one.close()
threading.Thread(target=serve, daemon=True).start()
print('ready', server.getsockname()[1]); sys.stdin.readline()
go.set()
{TIMED}""",
    # One request after the other, and it still computes for an earlier one.
    "busy": f"""
import select, socket, sys, time
server = socket.socket(); server.bind(('127.0.0.1', int(open('port').read()))); server.listen(8)
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    sum(range(9000))
sys.stdin.readline()
print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
while True:
    one, _ = server.accept(); one.recv(999)
    one.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Length: 7\\r\\n\\r\\nanswer\\n'); one.close()
""",
    "resolver": f"""
import socket, sys, threading, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('127.0.0.1', int(open('port').read())))
go = threading.Event()
def serve():
    while True:
        data, peer = server.recvfrom(600); go.wait()
        server.sendto(data[:2] + b'\\x81\\x83' + data[4:], peer)
threading.Thread(target=serve, daemon=True).start()
{TOLD}go.set()
{TIMED}""",
    "backlog": f"""
import socket, sys, time
server = socket.socket(); server.bind(('127.0.0.1', int(open('port').read()))); server.listen(0)
waiting = [socket.socket() for _ in range(3)]
for one in waiting:
    one.setblocking(False); one.connect_ex(server.getsockname())
{TOLD}at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
for one in waiting:
    one.close()
print(at); server.settimeout(9)
while True:
    one, _ = server.accept(); one.settimeout(0.2)
    try:
        if one.recv(99):
            one.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Length: 7\\r\\n\\r\\nanswer\\n')
    except OSError:
        pass
    one.close()
""",
    "pipe": f"""
import os, sys, time
os.path.exists('full') or os.mkfifo('full')
file = os.open('full', os.O_RDWR)
{TOLD}at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
print(at)
while os.read(file, 1 << 16):
    pass
""",
    "dns": f"""
import select, socket, sys, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('127.0.0.77', 53))
print('ready', flush=True)
asked, late = [], True
def answer(data, peer):
    server.sendto(data[:2] + b'\\x81\\x83' + data[4:], peer)
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
        print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
""",
    "unix": f"""
import os, socket, sys, threading, time
server = socket.socket(socket.AF_UNIX); server.bind('peer'); server.listen(8)
go = threading.Event()
def serve():
    while True:
        one, _ = server.accept(); go.wait(); one.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nanswer\\n'); one.close()
threading.Thread(target=serve, daemon=True).start()
{TOLD}go.set()
{TIMED}""",
    "log": f"""
import socket, sys, time
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); log.bind('log')
filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); filler.connect('log'); filler.setblocking(False)
try:
    while True:
        filler.send(b'line')
except BlockingIOError:
    pass
{TOLD}for _ in range(5):
    log.recv(100)
{TIMED}""",
}

# A name on the bus of the session whose owner does not answer.
SILENT = """
import dbus.bus, sys, time
bus = dbus.bus.BusConnection(dbus.bus.BusConnection.TYPE_SESSION)
bus.request_name('{}')
print('ready'); sys.stdin.readline()
bus.close()
""" + TIMED
SOURCES["portal"] = SILENT.format("org.freedesktop.portal.Desktop")
SOURCES["accessibility"] = SILENT.format("org.a11y.Bus")


class Held(Fault):
    """A command waits for what a helper holds: `held flock`."""

    def __init__(self, session, what):
        super().__init__(session)
        self.what = what

    def settle(self):
        self.helper = fault.helper(self.session, "helper", SOURCES[self.what])

    def end(self):
        """To let go may take a while itself, such as a commit; what waits may answer just before the helper has said so."""
        at = processes.now_ns()
        return max(at, fault.tell(self.helper) - JUST_BEFORE_NS)


class HeldStopped(Held):
    """The same, and the helper is stopped meanwhile."""

    def begin(self):
        stopping.signalled(self.session, "STOP", self.helper.pid)
        time.sleep(0.1)

    def end(self):
        at = processes.now_ns()
        stopping.signalled(self.session, "CONT", self.helper.pid)
        fault.tell(self.helper)
        return at


class Names(Held):
    """Names are asked of a server on the loopback that answers late; the program sees a resolv.conf of its own."""

    def __init__(self, session):
        super().__init__(session, "dns")

    def settle(self):
        self.helper = fault.helper(self.session, "helper", SOURCES["dns"], as_user=False)


FAULTS = {"held": Held, "held-stopped": HeldStopped, "names": Names}
