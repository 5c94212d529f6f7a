# SPDX-License-Identifier: MIT OR Apache-2.0
"""Folder of the stored runs: an incident and its truth for each."""

import json
import os
import shutil
import subprocess

EMPTY = 3


def place(folder, name):
    """Makes a new folder `<name>-<n>`, under a temporary name until the run is complete."""
    number = 1
    while (folder / f"{name}-{number}").exists():
        number += 1
    partial = folder / f".{name}-{number}-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial, folder / f"{name}-{number}"


def write(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def runs(folder):
    """Returns the stored runs, by name."""
    return sorted(path.parent for path in folder.glob("*/truth.json") if not path.parent.name.startswith("."))


def diagnose(tipme, incident):
    """Returns the verdict as data, with the exit code in `exit`."""
    words = [str(tipme), "diagnose", str(incident), "--json"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return {"exit": -1, "error": "it took more than two minutes"}
    try:
        verdict = json.loads(done.stdout)
    except ValueError:
        return {"exit": done.returncode or -1, "error": done.stderr.strip()[:400]}
    return {**verdict, "exit": done.returncode}
