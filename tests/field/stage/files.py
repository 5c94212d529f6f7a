# SPDX-License-Identifier: MIT OR Apache-2.0
"""File systems that do not answer: one in user space whose daemon is stopped, and a disk that a large copy keeps busy."""

import os
import signal
import subprocess
import time

from . import fault, processes, stopping
from .fault import Fault
from .wayland import compositors

DAEMON = """
import errno, os, stat, sys, time
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
print('ready', flush=True)
remote.main()
"""

DISK = """
import os, subprocess, sys, time
print('ready', flush=True)
for line in sys.stdin:
    print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
    os.execvp('dd', ['dd', 'if=/dev/zero', 'of=' + sys.argv[1] + '/copy', 'bs=1M', 'count=' + sys.argv[2]])
"""


class Remote(Fault):
    """The daemon of a file system in user space is stopped."""

    def ready(self):
        self.place = self.session.folder / "home/remote"
        self.place.mkdir()
        self.daemon = fault.helper(self.session, "helper", DAEMON, self.place, as_user=False)
        limit = time.monotonic() + 10
        while not os.path.ismount(self.place):
            if time.monotonic() > limit:
                raise processes.CannotRun("the file system in user space was not mounted")
            time.sleep(0.05)

    def begin(self):
        stopping.signalled(self.session, "STOP", self.daemon.pid)
        time.sleep(0.1)

    def end(self):
        at = processes.now_ns()
        stopping.signalled(self.session, "CONT", self.daemon.pid)
        return at

    def clean(self):
        if hasattr(self, "daemon"):
            processes.send(self.daemon.pid, signal.SIGCONT)
            subprocess.run(["umount", "-l", str(self.place)], capture_output=True, check=False)


class Settings(Remote):
    """Sway reads its settings again, and a part of them lies on that file system."""

    def begin(self):
        super().begin()
        processes.start(compositors.sway_message(self.session, "reload"), self.session.env)
        time.sleep(0.2)


class Disk(Fault):
    """A large copy to a disk of the session's own, with a journal that orders the data of all."""

    bounded = False
    SIZE_MIB, COPY_MIB = 4400, 3600

    def ready(self):
        base = self.session.folder
        self.place = base / "home/disk"
        self.place.mkdir()
        image = base / "disk.image"
        for words in (
            ["truncate", "-s", f"{self.SIZE_MIB}M", image],
            ["mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0", image],
            ["mount", "-o", "loop,noatime,data=ordered,nodelalloc", image, self.place],
            ["chmod", "777", self.place],
        ):
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise processes.CannotRun(f"no disk of its own: {done.stderr.strip()}")
        self.copy = fault.helper(self.session, "helper", DISK, self.place, str(self.COPY_MIB))

    def begin(self):
        fault.tell(self.copy)
        time.sleep(1.0)

    def end(self):
        """The copy ends when it ends."""
        self.copy.wait()
        return processes.now_ns()

    def clean(self):
        if hasattr(self, "copy"):
            processes.end({self.copy.pid})
        for _ in range(20):
            if subprocess.run(["umount", str(self.place)], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.3)
        subprocess.run(["umount", "-l", str(self.place)], capture_output=True, check=False)


FAULTS = {"remote": Remote, "settings": Settings, "disk": Disk}
