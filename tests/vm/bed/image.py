# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest's disks: a Debian 12 root file system, a data disk, and swap.

The root file system is made with mmdebstrap and holds the modules of every tested kernel. Runs do not write
to the disks in the cache, but to a copy that is gone when they end.
"""

import dataclasses
import os
import pathlib
import secrets
import shutil
import time

from .packages import source_line
from .places import GUEST, CannotRun, cache, digest, forget_old, made_whole, run, say

SUITE = "bookworm"
PACKAGES = [
    # the system
    "systemd", "systemd-sysv", "libpam-systemd", "udev", "dbus", "dbus-user-session", "kmod", "iproute2",
    "openssh-server", "procps", "psmisc", "util-linux", "python3",
    # the desktop
    "xserver-xorg-core", "xserver-xorg-input-libinput", "xauth", "xterm", "openbox", "x11-utils", "xfonts-base",
    "fonts-dejavu-core", "fontconfig",
    # what the benchmarks open and build
    "xvfb", "vim-tiny", "less", "make", "gcc", "libc6-dev",
    # what `tipme setup` uses, and what shows its answer
    "sudo", "dunst",
    # what the executable is linked with
    "libelf1", "zlib1g", "libgcc-s1",
]  # fmt: skip
# Files of packages that no test reads; LLVM and the 3D drivers are most of a display server's size.
LEFT_OUT = [
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/icons/*",
    "/usr/lib/x86_64-linux-gnu/dri/*", "/usr/lib/x86_64-linux-gnu/libLLVM*", "/usr/lib/x86_64-linux-gnu/libz3*",
    "/usr/share/themes/*",
]  # fmt: skip
KEPT_THEME = "/usr/share/themes/Clearlooks/*"
# Services that would work in the middle of a test.
MASKED = [
    "systemd-udev-settle.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer",
    "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "logrotate.timer", "man-db.timer",
    "systemd-tmpfiles-clean.timer", "systemd-timesyncd.service", "systemd-networkd-wait-online.service",
    "getty@tty1.service", "systemd-firstboot.service", "systemd-update-utmp.service",
]  # fmt: skip
ENABLED = ["systemd-networkd.service", "ssh.service"]
USER, USER_ID = "user", 1000
# Sizes of the disks, in MiB. They are sparse files.
ROOT_MIB, DATA_MIB, SWAP_MIB = 2560, 1024, 512


@dataclasses.dataclass(frozen=True)
class Image:
    """The disks and the key that opens the guest."""

    folder: pathlib.Path

    @property
    def root(self):
        return self.folder / "root.ext4"

    @property
    def data(self):
        return self.folder / "data.ext4"

    @property
    def swap(self):
        return self.folder / "swap"

    @property
    def key(self):
        return self.folder / "key"

    @property
    def known_hosts(self):
        return self.folder / "known_hosts"


def image(kernels):
    """The disks for these kernels, built where the cache lacks them."""
    guest = sorted(path for path in (GUEST / "etc").rglob("*") if path.is_file())
    releases = [kernel.folder.name for kernel in kernels]
    folder = cache() / f"image-{digest(PACKAGES, LEFT_OUT, releases, pathlib.Path(__file__), *guest)}"
    if not folder.is_dir():
        build(folder, kernels)
        forget_old("image-", folder)
    return Image(folder)


def build(folder, kernels):
    if os.geteuid() != 0:
        raise CannotRun("the root file system is not built yet, and only root can build it: run make vm")
    begin = time.monotonic()
    say("building the root file system")
    with made_whole(folder) as partial:
        tree = partial / "tree"
        bootstrap(tree)
        say(f"  bootstrapped after {time.monotonic() - begin:.0f} s")
        configure(tree, partial)
        for kernel in kernels:
            shutil.copytree(kernel.modules, tree / "usr/lib/modules", symlinks=True, dirs_exist_ok=True)
        make_disks(tree, partial)
        shutil.rmtree(tree)
    say(f"  done after {time.monotonic() - begin:.0f} s")


def bootstrap(tree):
    suites = [SUITE, f"{SUITE}-updates"]
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    # In a mount namespace of its own: what is mounted in there is gone with it, however it ends.
    command = ["unshare", "--mount", "--propagation", "private", "--kill-child", "mmdebstrap", "--quiet", "--mode=root"]
    command += ["--variant=minbase", "--arch=amd64", f"--include={','.join(PACKAGES)}"]
    command += [*options, f"--dpkgopt=path-include={KEPT_THEME}", "--aptopt=Acquire::Retries 3", SUITE, str(tree)]
    run([*command, *[source_line(suite) for suite in suites]])


def configure(tree, folder):
    """What makes a guest of the packages: user, key, network, disks, display."""
    run(["chroot", tree, "useradd", "-m", "-u", USER_ID, "-s", "/bin/bash", USER])
    shutil.copytree(GUEST / "etc", tree / "etc", dirs_exist_ok=True)
    (tree / "etc/machine-id").write_text(f"{secrets.token_hex(16)}\n")
    for unit in MASKED:
        link(tree, unit, "/dev/null")
    for unit in ENABLED:
        link(tree, f"multi-user.target.wants/{unit}", f"/lib/systemd/system/{unit}")
    (tree / "data").mkdir()
    make_keys(tree, folder)
    run(["chroot", tree, "fc-cache", "-f"])


def link(tree, name, target):
    path = tree / "etc/systemd/system" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def make_keys(tree, folder):
    """A key for root in the guest, and the guest's own key, so that nobody else answers in its place."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tipme-vm", "-f", folder / "key"])
    home = tree / "root/.ssh"
    home.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(folder / "key.pub", home / "authorized_keys")
    host_key = tree / "etc/ssh/ssh_host_ed25519_key"
    if not host_key.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "guest", "-f", host_key])
    kind, key, *_ = host_key.with_name(f"{host_key.name}.pub").read_text().split()
    (folder / "known_hosts").write_text(f"tipme-vm {kind} {key}\n")


def make_disks(tree, folder):
    options = ["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
    run(["mke2fs", *options, "-d", tree, folder / "root.ext4", f"{ROOT_MIB}M"])
    run(["mke2fs", *options, "-L", "tipme-data", folder / "data.ext4", f"{DATA_MIB}M"])
    swap = folder / "swap"
    with swap.open("wb") as file:
        file.truncate(SWAP_MIB << 20)
    swap.chmod(0o600)
    run(["mkswap", "-q", swap])
