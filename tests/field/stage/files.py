# SPDX-License-Identifier: MIT OR Apache-2.0
"""File systems that do not answer: one in user space with a stopped daemon, and a disk that a
large copy keeps busy."""

import os
import signal
import time

from shared import until

from . import fault, processes, scripts, stopping, volumes
from .fault import Fault
from .wayland import compositors

DAEMON = """
import errno, stat
import fuse
fuse.fuse_python_api = (0, 2)
class Remote(fuse.Fuse):
    def getattr(self, path):
        found = fuse.Stat()
        found.st_nlink = 1
        if path == '/':
            found.st_mode = stat.S_IFDIR | 0o755
        elif path in ('/letter', '/report'):
            found.st_mode, found.st_size = stat.S_IFREG | 0o644, 7
        else:
            return -errno.ENOENT
        return found
    def readdir(self, path, offset):
        return [fuse.Direntry(name) for name in ('.', '..', 'letter', 'report')]
    def open(self, path, flags):
        return 0
    def read(self, path, size, offset):
        return b'# note\\n'[offset:offset + size]
remote = Remote(dash_s_do='setsingle')
remote.parse(['-f', '-s', '-o', 'allow_other,attr_timeout=0,entry_timeout=0,negative_timeout=0', sys.argv[1]])
print('ready')
remote.main()
"""

DISK = """
print('ready')
for line in sys.stdin:
    print(now())
    os.execvp('dd', ['dd', 'if=/dev/zero', 'of=' + sys.argv[1] + '/copy', 'bs=1M', 'count=' + sys.argv[2]])
"""


class Remote(Fault):
    """The daemon of a FUSE file system is stopped."""

    def ready(self):
        self.place = self.session.folder / "home/remote"
        self.place.mkdir()
        self.daemon = scripts.start(self.session, "helper", "remote-files", DAEMON, self.place, as_user=False)
        self.unmounts(self.place, lazily=True)
        self.undo.append(lambda: processes.send(self.daemon.pid, signal.SIGCONT))
        until(lambda: os.path.ismount(self.place), "the file system in user space was not mounted", 10)

    def begin(self):
        stopping.signalled(self.session, "STOP", self.daemon.pid)
        time.sleep(0.1)

    def end(self):
        at = processes.now_ns()
        stopping.signalled(self.session, "CONT", self.daemon.pid)
        return at


class Settings(Remote):
    """Sway reloads its settings, a part of which is on that file system."""

    def begin(self):
        super().begin()
        processes.start(compositors.sway_message(self.session, "reload"), self.session.env)
        time.sleep(0.2)


class Disk(volumes.Volume):
    """A large copy goes to a private disk with a journal that orders the data of all writers."""

    SIZE_MIB, COPY_MIB = 4400, 3600
    OPTIONS = "loop,noatime,data=ordered,nodelalloc"

    def make(self, image):
        scripts.run(["mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0", image], as_user=False)

    def ready(self):
        super().ready()
        self.copy = self.ends(scripts.start(self.session, "helper", "nightly-backup", DISK, self.place, self.COPY_MIB))

    def begin(self):
        fault.send(self.copy)
        time.sleep(1.0)

    def end(self):
        """The fault ends when the copy ends."""
        self.copy.wait()
        return processes.now_ns()


FAULTS = {"remote": Remote, "settings": Settings, "disk": Disk}
