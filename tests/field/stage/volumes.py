# SPDX-License-Identifier: MIT OR Apache-2.0
"""Private volumes of the session on loop devices, with a limit of the block layer: frozen,
ejected, copied up, started from."""

import os
import pathlib
import time

from . import processes, scripts
from .fault import Fault

BLKIO = pathlib.Path("/sys/fs/cgroup/blkio")
COPY = """
import shutil
shutil.copyfile(os.path.join(HOME, "film"), os.path.join(HOME, "disk/film"))
log("copied")
"""
BACKUP = """
import subprocess
subprocess.run(["fsfreeze", sys.argv[1], os.path.join(HOME, "disk")])
log(sys.argv[1])
"""


def limit(fault, what, value):
    """Sets a limit of the block layer for the device of a fault's mount, in the root group,
    during the fault."""
    device, file = os.stat(fault.place).st_dev, BLKIO / f"blkio.throttle.{what}_device"
    set_to = lambda now: file.write_text(f"{os.major(device)}:{os.minor(device)} {now}")  # noqa: E731
    fault.undo.append(lambda: set_to(0))
    set_to(value)


class Volume(Fault):
    """A file system in a file, mounted at `disk` in the home."""

    SIZE_MIB, TYPE, OPTIONS = 512, "ext4", "loop,noatime"
    bounded = False

    def ready(self):
        base = self.session.folder
        self.place = base / "home/disk"
        self.place.mkdir()
        image = base / "disk.image"
        scripts.run(["truncate", "-s", f"{self.SIZE_MIB}M", image], as_user=False)
        self.make(image)
        scripts.run(["mount", "-o", self.OPTIONS, image, self.place], as_user=False)
        self.unmounts(self.place)
        if "ro" not in self.OPTIONS.split(","):
            self.place.chmod(0o777)

    def make(self, image):
        scripts.run(["mke2fs", "-q", "-F", "-t", self.TYPE, image], as_user=False)


class Frozen(Volume):
    """A backup freezes the volume and ends; its second run thaws the volume."""

    bounded = True

    def ready(self):
        super().ready()
        (self.place / "log").write_text("one\n")
        scripts.own(self.place / "log")
        self.script = scripts.write(self.session, "vm-backup", BACKUP)

    def begin(self):
        self.undo.append(lambda: processes.start(["fsfreeze", "-u", self.place], as_user=False).wait())
        self.session.start("helper", [self.script, "-f"], as_user=False).wait()

    def end(self):
        at = processes.now_ns()
        self.session.start("thaw", [self.script, "-u"], as_user=False).wait()
        return at


class Eject(Volume):
    """A copy to a slow stick ends at once, with its data still to be written: `eject sync`."""

    TYPE, PARAMETERS = "ext2", {"command": "sync"}

    def ready(self):
        super().ready()
        (self.session.folder / "home/film").write_bytes(os.urandom(1 << 20) * 40)
        scripts.own(self.session.folder / "home/film")

    def settle(self):
        os.sync()
        limit(self, "write_bps", 12_000_000)

    def begin(self):
        self.session.start("helper", [scripts.write(self.session, "copy-film", COPY)]).wait()
        time.sleep(1)

    def end(self):
        return scripts.until_gone(self.session, self.command)


class Layered(Volume):
    """A file of a lower layer is opened for writing, and first copied to the upper one."""

    def ready(self):
        super().ready()
        base, home = self.session.folder, self.session.folder / "home"
        for name in ("upper", "work"):
            (base / name).mkdir()
            scripts.own(base / name, 0o755)
        (self.place / "big").write_bytes(os.urandom(1 << 20) * 30)
        scripts.own(self.place / "big")
        (home / "layers").mkdir()
        options = f"lowerdir={self.place},upperdir={base}/upper,workdir={base}/work"
        scripts.run(["mount", "-t", "overlay", "overlay", "-o", options, home / "layers"], as_user=False)
        self.unmounts(home / "layers", lazily=True)

    def settle(self):
        limit(self, "read_bps", 12_000_000)
        descriptor = os.open(self.place / "big", os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def end(self):
        time.sleep(1.5)
        return processes.now_ns()


class Packed(Volume):
    """A program starts from a compressed image on a slow disk, like snaps."""

    OPTIONS = "loop,ro"

    def make(self, image):
        folder = self.session.folder / "packed"
        folder.mkdir()
        (folder / "data").write_bytes(os.urandom(12_000_000))
        (folder / "calculator").write_text(scripts.PRELUDE + "print(len(open(os.path.dirname(__file__) + '/data', 'rb').read()))\n")
        (folder / "calculator").chmod(0o755)
        image.unlink()
        scripts.run(["mksquashfs", folder, image, "-comp", "xz", "-quiet", "-no-progress"], as_user=False)

    def settle(self):
        limit(self, "read_bps", 5_000_000)

    def end(self):
        return scripts.until_gone(self.session, "calculator")


FAULTS = {
    "frozen": Frozen, "eject": Eject, "layered": Layered, "packed": Packed,
}  # fmt: skip
