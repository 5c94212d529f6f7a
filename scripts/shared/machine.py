# SPDX-License-Identifier: MIT OR Apache-2.0
"""Origin of figures: the commit, the processor, the kernel."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIPME = ROOT / "target/release/tipme"


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout.strip()


def commit():
    return git("rev-parse", "--short", "HEAD") or "unknown"


def commit_of_program():
    """Returns the commit, with `-dirty` if the program's own tree differs from it."""
    return commit() + ("-dirty" if git("status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock") else "")


def processor():
    """Returns the name and the number of processors."""
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{found[1] if found else os.uname().machine}, {os.cpu_count()} CPUs"


def machine():
    """Returns processor, kind and kernel, as in all documents with figures."""
    kind = "virtual machine" if " hypervisor" in pathlib.Path("/proc/cpuinfo").read_text() else "no hypervisor"
    return f"{processor()}, {kind}, Linux {os.uname().release}"
