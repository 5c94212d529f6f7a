# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of guests in the cache, as `tests/vm/build` leaves them: QEMU, kernels and disks.

Runs write to temporary copies of the disks.
"""

import dataclasses
import pathlib
import subprocess

from .places import HERE, CannotRun, cache

# Tested kernel series, and their Debian suites.
SERIES = {"6.1": "bookworm", "6.18": "trixie-backports"}
# User in a guest.
USER, USER_ID = "user", 1000


@dataclasses.dataclass(frozen=True)
class Kernel:
    series: str
    folder: pathlib.Path

    @property
    def image(self):
        return self.folder / "vmlinuz"

    @property
    def first(self):
        """Returns the initial file system, which mounts the disk."""
        return self.folder / "first.cpio.gz"

    @property
    def release(self):
        return (self.folder / "release").read_text().strip()


class Image:
    """The disks, and the ssh key of the guest."""

    def __init__(self, folder):
        self.root, self.data, self.swap = folder / "root.ext4", folder / "data.ext4", folder / "swap"
        self.key, self.known_hosts = folder / "key", folder / "known_hosts"


def built():
    """Returns QEMU's folder, the kernels and the disks; builds missing ones."""
    words = [str(HERE / "build"), str(cache()), *(f"{series}={suite}" for series, suite in SERIES.items())]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(f"the test bed could not be built: code {done.returncode}")
    (_, qemu), *kernels, (_, image) = (line.split(" ") for line in done.stdout.splitlines())
    return pathlib.Path(qemu), [Kernel(series, pathlib.Path(folder)) for _, series, folder in kernels], Image(pathlib.Path(image))
