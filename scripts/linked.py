# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages linked into the programs, from Cargo's lock file, without build tools and macros."""

import json
import pathlib
import re
import subprocess

TARGET = "x86_64-unknown-linux-gnu"
PROGRAMS = ("tipme", "tipme-lab")
# Folders of C sources inside of crates; others there belong to tests and examples.
INNER = {"libbpf-sys": "libbpf", "zstd-sys": "zstd"}


def metadata():
    words = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def packages(programs=PROGRAMS):
    """Returns the runtime dependencies of the programs, including the workspace's own crates, by
    name and version."""
    known = metadata()
    by_id = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    found, open_ids = set(), [id for id, package in by_id.items() if package["name"] in programs]
    while open_ids:
        id = open_ids.pop()
        if id in found or is_macro(by_id[id]):
            continue
        found.add(id)
        for edge in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in edge["dep_kinds"]):
                open_ids.append(edge["pkg"])
    return sorted((by_id[id] for id in found), key=lambda package: (package["name"], package["version"]))


def foreign(programs=PROGRAMS):
    """Returns the external ones."""
    return [package for package in packages(programs) if package["source"] is not None]


def licence_files(package):
    """Returns the files of a package with licence texts."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [file for place in dict.fromkeys((folder, folder / INNER.get(package["name"], ""))) for file in sorted(place.iterdir())]
    return [file for file in files if file.is_file() and re.match(r"(?i)(un)?(licen[cs]e|copying|copyright|notice)", file.name)]
