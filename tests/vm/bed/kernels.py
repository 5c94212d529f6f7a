# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's generic kernels: image, modules, and a first file system that finds the disk.

The generic flavour is taken, since the one for clouds lacks uinput, the display driver and PS/2 input.
Modules that no guest here can use are left out.
"""

import dataclasses
import gzip
import lzma
import pathlib
import re
import shutil
import stat

from .packages import Apt, newest, unpack
from .places import GUEST, CannotRun, cache, digest, forget_old, made_whole, run, say

# Which kernels are tested: the series, and the suites that have it.
SERIES = {"6.1": ("bookworm",), "6.18": ("trixie-backports",)}
# Modules that the first file system loads, with what they depend on.
FIRST_MODULES = ("virtio_pci", "virtio_blk", "ext4")
# The same where a kernel has it as a module; the file system asks for it by its algorithm, not as a dependency.
FIRST_WHERE_THERE = ("crc32c_generic",)
# Modules that the tests need; a kernel without one of them is refused here and not in the middle of a test.
NEEDED_MODULES = (*FIRST_MODULES, "virtio_net", "bochs", "psmouse", "uinput", "evdev")
LEFT_OUT = [
    f"*/kernel/{name}"
    for name in (
        "sound", "drivers/media", "drivers/infiniband", "drivers/staging", "drivers/iio", "drivers/scsi",
        "drivers/isdn", "drivers/net/ethernet", "drivers/net/wireless", "drivers/net/can", "drivers/net/wan",
        "drivers/net/usb", "drivers/net/phy", "drivers/gpu/drm/amd", "drivers/gpu/drm/i915", "drivers/gpu/drm/xe",
        "drivers/gpu/drm/nouveau", "drivers/gpu/drm/radeon", "drivers/gpu/drm/vmwgfx", "drivers/gpu/drm/gma500",
        "drivers/usb/serial", "drivers/usb/gadget", "drivers/bluetooth", "drivers/mtd", "drivers/platform",
        "drivers/target", "drivers/comedi", "drivers/accel", "drivers/edac", "drivers/leds", "drivers/mfd",
        "fs/btrfs", "fs/xfs", "fs/ceph", "fs/nfs", "fs/nfsd", "fs/ocfs2", "fs/gfs2", "fs/smb", "fs/cifs",
        "fs/f2fs", "fs/jfs", "fs/ntfs3", "fs/bcachefs", "net/bluetooth", "net/mac80211", "net/wireless",
        "net/netfilter", "net/sctp", "net/tipc", "net/openvswitch", "net/ceph",
    )
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel in the cache."""

    series: str
    folder: pathlib.Path

    @property
    def image(self):
        return self.folder / "vmlinuz"

    @property
    def first(self):
        return self.folder / "first.cpio.gz"

    @property
    def modules(self):
        return self.folder / "modules"

    @property
    def release(self):
        return (self.folder / "release").read_text().strip()


def kernel(series):
    """The newest kernel of a series, or the newest there is where the series is gone; from the cache if it has one."""
    folder = cache() / f"kernel-{series}-{digest(SERIES[series], LEFT_OUT, pathlib.Path(__file__))}"
    if not folder.is_dir():
        apt = Apt(SERIES[series])
        apt.update()
        build(apt, choose(apt, series), folder)
        forget_old(f"kernel-{series}-", folder)
    return Kernel(series, folder)


def choose(apt, series):
    generic = re.compile(r"linux-image-\d[\d.+-]*(?:deb\d[\d.]*)?-amd64")
    names = [name for name in apt.names("linux-image-") if generic.fullmatch(name)]
    wanted = [name for name in names if name.startswith(f"linux-image-{series}.")]
    package = newest([name for name in wanted or names if apt.version(name)])
    if package is None:
        raise CannotRun(f"no kernel package in {' '.join(apt.suites)}")
    if not wanted:
        say(f"there is no kernel {series} in {' '.join(apt.suites)} any more: taking {package}")
    return package


def build(apt, package, folder):
    say(f"fetching {package} {apt.version(package)}")
    [archive] = apt.download([package], whole=False)
    say(f"unpacking {archive.name}")
    with made_whole(folder) as partial:
        tree = partial / "tree"
        tree.mkdir()
        unpack(archive, tree, LEFT_OUT + ["./usr/share/doc"])
        archive.unlink()
        [modules] = [*tree.glob("lib/modules/*"), *tree.glob("usr/lib/modules/*")]
        shutil.move(next(tree.glob("boot/vmlinuz-*")), partial / "vmlinuz")
        (partial / "release").write_text(modules.name)
        target = partial / "modules" / modules.name
        target.parent.mkdir()
        shutil.move(modules, target)
        shutil.rmtree(tree)
        first = first_modules(target)
        (partial / "first.cpio.gz").write_bytes(first_file_system(target, first))


def first_modules(modules):
    """Paths of the modules to load first, each after what it depends on."""
    known = dependencies(modules)
    lost = [name for name in NEEDED_MODULES if name not in known and not is_built_in(modules, name)]
    if lost:
        raise CannotRun(f"kernel {modules.name} lacks modules: {' '.join(lost)}")
    order = []
    for name in (*FIRST_WHERE_THERE, *FIRST_MODULES):
        if name in known:
            path, needs = known[name]
            order += [one for one in [*reversed(needs), path] if one not in order]
    return order


def dependencies(modules):
    """For each module its path and the paths of what it depends on, nearest first."""
    # depmod wants the folder that has lib/modules in it.
    base = modules.parent.parent / "depmod"
    (base / "lib").mkdir(parents=True)
    (base / "lib/modules").symlink_to(modules.parent.resolve())
    depmod = next((path for path in ("/usr/sbin/depmod", "/sbin/depmod") if pathlib.Path(path).exists()), "depmod")
    run([depmod, "-b", base, modules.name])
    shutil.rmtree(base)
    known = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, needs = line.split(":", 1)
        known[module_name(path)] = (path, needs.split())
    return known


def module_name(path):
    return pathlib.Path(path).name.split(".")[0].replace("-", "_")


def is_built_in(modules, name):
    listed = (modules / "modules.builtin").read_text().splitlines()
    return name in {module_name(path) for path in listed}


def first_file_system(modules, order):
    """A compressed archive with a shell, the modules, and the script that goes on to the real one."""
    archive = Archive()
    for name in ("dev", "proc", "sys", "bin", "modules", "root"):
        archive.add(name, b"", stat.S_IFDIR | 0o755)
    archive.add("bin/busybox", busybox().read_bytes(), stat.S_IFREG | 0o755)
    archive.add("init", (GUEST / "first-init").read_bytes(), stat.S_IFREG | 0o755)
    for number, path in enumerate(order):
        data = (modules / path).read_bytes()
        plain = lzma.decompress(data) if path.endswith(".xz") else data
        archive.add(f"modules/{number:02}-{module_name(path)}.ko", plain, stat.S_IFREG | 0o644)
    return gzip.compress(archive.end(), 1)


def busybox():
    """A shell without libraries."""
    folder = cache() / "busybox"
    if not folder.is_dir():
        apt = Apt(("bookworm",))
        apt.update()
        with made_whole(folder) as partial:
            [archive] = apt.download(["busybox-static"], whole=False)
            unpack(archive, partial)
    return next(path for path in (folder / "bin/busybox", folder / "usr/bin/busybox") if path.exists())


class Archive:
    """The archive format of first file systems: cpio, `newc`."""

    def __init__(self):
        self.data = bytearray()
        self.count = 0

    def add(self, name, content, mode):
        self.count += 1
        fields = [self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        self.data += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.align()
        self.data += content
        self.align()

    def align(self):
        self.data += bytes(-len(self.data) % 4)

    def end(self):
        self.add("TRAILER!!!", b"", 0)
        return bytes(self.data)
