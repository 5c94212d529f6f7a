# SPDX-License-Identifier: MIT OR Apache-2.0
"""What guests are made of, as `tests/vm/build` leaves it in the cache: QEMU, kernels, and the disks.

Runs do not write to the disks in the cache, but to a copy that is gone when they end.
"""

import dataclasses
import pathlib
import subprocess

from .places import HERE, CannotRun, cache

# Which kernels are tested: the series, and the suite that has it.
SERIES = {"6.1": "bookworm", "6.18": "trixie-backports"}
# The person in a guest.
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
        """The first file system, which finds the disk."""
        return self.folder / "first.cpio.gz"

    @property
    def release(self):
        return (self.folder / "release").read_text().strip()


class Image:
    """The disks and the key that opens the guest."""

    def __init__(self, folder):
        self.root, self.data, self.swap = folder / "root.ext4", folder / "data.ext4", folder / "swap"
        self.key, self.known_hosts = folder / "key", folder / "known_hosts"


def built():
    """QEMU's folder, the kernels and the disks; what is missing is built."""
    words = [str(HERE / "build"), str(cache()), *(f"{series}={suite}" for series, suite in SERIES.items())]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(f"the test bed could not be built: code {done.returncode}")
    (_, qemu), *kernels, (_, image) = (line.split(" ") for line in done.stdout.splitlines())
    return pathlib.Path(qemu), [Kernel(series, pathlib.Path(folder)) for _, series, folder in kernels], Image(pathlib.Path(image))
