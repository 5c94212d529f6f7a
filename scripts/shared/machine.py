# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where figures are from: the commit, the processor, the kernel."""

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
    """The commit, with `-dirty` where the program's own tree differs from it."""
    return commit() + ("-dirty" if git("status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock") else "")


def processor():
    """Its name, and how many of them there are."""
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{found[1] if found else os.uname().machine}, {os.cpu_count()} CPUs"


def machine():
    """Processor, kind and kernel, as all documents of figures name them."""
    kind = "virtual machine" if " hypervisor" in pathlib.Path("/proc/cpuinfo").read_text() else "no hypervisor"
    return f"{processor()}, {kind}, Linux {os.uname().release}"
