# SPDX-License-Identifier: MIT OR Apache-2.0
"""Opens that another process must allow: scanners, automounters, file servers; and core dumps
that a handler receives."""

import pathlib
import time

from . import scripts
from .scripts import Logged

SCANNER = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
group = libc.fanotify_init(0x5, os.O_RDONLY)
if group < 0 or libc.fanotify_mark(group, 0x11, 0x10000, -100, sys.argv[1].encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
hold = False
print("ready")
while True:
    for source in select.select([group, sys.stdin], [], [])[0]:
        if source is sys.stdin:
            hold = bool(sys.stdin.readline()) or sys.exit()
            print(now())
            continue
        data = os.read(group, 4096)
        while data:
            length, _, _, _, mask, file, pid = struct.unpack("=IBBHQii", data[:24])
            data = data[length:]
            if hold and os.readlink(f"/proc/self/fd/{file}").endswith("/letter"):
                hold = False
                log("begin")
                compute(1.6) if sys.argv[2] == "computing" else time.sleep(1.6)
                log("end")
            os.write(group, struct.pack("=iI", file, 1))
            os.close(file)
"""

AUTOMOUNT = """
import ctypes, struct
place = sys.argv[1]
read, write = os.pipe()
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={write},pgrp={os.getpgrp()},minproto=5,maxproto=5,indirect"
if libc.mount(b"field", place.encode(), b"autofs", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
control = os.open(place, os.O_RDONLY)
os.close(write)
asked = False
print("ready")
while True:
    packet = os.read(read, 4096)
    if not packet:
        break
    version, kind, token = struct.unpack("=iiI", packet[:12])
    name = packet[40:].split(b"\\0")[0].decode(errors="replace")
    if not asked:
        log("begin"); time.sleep(1.8); log("end")
    asked = True
    fcntl.ioctl(control, 0x9361, token)
"""

LEASE = """
import signal
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
def wanted(*_):
    log("begin"); time.sleep(1.8); log("end")
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.signal(signal.SIGIO, wanted)
print("ready")
while True:
    signal.pause()
"""

COREDUMP = """
log("begin")
import zlib
size = len(zlib.compress(sys.stdin.buffer.read(1 << 12), 9))
compute(1.6)
log("end")
size += len(zlib.compress(sys.stdin.buffer.read(), 9))
"""


class Scanner(Logged):
    """A scanner must allow each open below a mount, and delays it: `scanner computing`."""

    PARAMETERS = {"how": "sleeping"}

    def ready(self):
        self.place = self.session.folder / "home/inbox"
        self.place.mkdir()
        scripts.run(["mount", "-t", "tmpfs", "scan", self.place], as_user=False)
        self.unmounts(self.place, lazily=True)
        (self.place / "letter").write_text("dear reader\n")
        scripts.own(self.place / "letter")
        words = (self.place, self.how)
        self.scanner = self.ends(scripts.start(self.session, "helper", "onaccess-scan", SCANNER, *words, as_user=False))

    def begin(self):
        super().begin()
        self.scanner.stdin.write("hold\n")
        self.scanner.stdin.flush()
        self.scanner.stdout.readline()


class Automount(Logged):
    """A directory is mounted on access, from a server that answers late and does not have it."""

    def ready(self):
        place = self.session.folder / "home/net"
        place.mkdir()
        self.unmounts(place, lazily=True)
        self.ends(scripts.start(self.session, "helper", "automount-net", AUTOMOUNT, place, as_user=False))


class FileServer(Logged):
    """A file server has a lease of a file, and releases it late."""

    def ready(self):
        path = self.session.folder / "home/shared"
        path.write_text("text\n")
        scripts.own(path)
        scripts.start(self.session, "helper", "file-server", LEASE, path)


class CoreDump(Logged):
    """A crashed program is kept until a handler has read its memory."""

    PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")

    def ready(self):
        handler = scripts.write(self.session, "core-handler", COREDUMP)
        before = self.PATTERN.read_text()
        self.undo += [lambda: time.sleep(0.1), lambda: self.PATTERN.write_text(before)]
        # The pattern has a maximum of 127 characters; the handler runs as root.
        self.PATTERN.write_text(f"|{handler}")


FAULTS = {"scanner": Scanner, "automount": Automount, "file-lease": FileServer, "core-dump": CoreDump}
