# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands that the rows rest on, in short settings: all but those that have to be named take 36 minutes, and ten until it is quiet again between them."""

import re

from .model import Measurement


def section(text, title):
    """The part of `make bench-recorder`'s document below a title."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def events(text):
    """What recording of scheduler events costs, and when and by which commit it was measured."""
    part = section(text, "Scheduler events")
    ftrace = re.search(r"added by tipme / added by ftrace: \*\*([\d.]+)", part)
    added = re.search(r"\| tipme \| .* \| \+([\d.]+) \|", part)
    return {"added_us": float(added[1]), "of_ftrace": float(ftrace[1])} | conditions(part)


def compiling(text):
    """The slowdown of a compile."""
    part = section(text, "A compile")
    return {"percent": float(re.search(r"slowdown, wall time, median: \*\*(-?[\d.]+)", part)[1])} | conditions(part)


def conditions(text):
    """When, by which commit and where the figures of a section were measured; beside what load, and how fast, where that is told."""
    told = re.search(r"(?P<when>\d{4}-\d\d-\d\d), commit (?P<commit>[\w-]+), (?P<machine>.*)\.\n", text).groupdict()
    beside = re.search(r"Load average ([\d.]+) at the begin.* a fixed piece of work took ([\d.]+) ms", text)
    return told | ({"host_load": float(beside[1]), "work_ms": float(beside[2])} if beside else {})


def records(text):
    """The tables of what records and gestures cost: cells by the first one of their row."""
    part = section(text, "Records and gestures")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {"rows": {row[0]: row[1:] for row in rows}} | conditions(part)


# Of guests in which the same is measured side by side: the last with CFS that there is, and one with EEVDF.
KERNELS = ("6.1", "6.18")
GUEST = "guest of the test bed (emulated, 768 MiB)"


def guest(name, speed=None):
    """A measurement of the virtual test bed, which `make measure-vm` writes; `speed` tells in words how fast the guest was."""
    return Measurement(f"vm-{name}", file=f"docs/results/vm/{name}.json", written_by=f'make measure-vm VM="--only {name}"', guest=GUEST, speed=speed)


def unloaded(what, column, unit="", row=1):
    """The guest's speed by a cell of its table."""
    return lambda document: f"{what} {document['rows'][row][column]} {unit}".strip()


HOG = unloaded("the hog's rounds in its worst 10 s, unmanaged", 5, row=2)


def typing(*display):
    """Keys beside a load in the same session, with the manager and without."""
    return ("bench", "typing", *display, "--load", "0,10,20", "--managed", "--sessions", "0", "--keys", "120", "--json", "{json}")


def task(name, takes_s, inputs=None):
    """A task at a real program, five times; its script is cut where it does not fit."""
    cut = ("--inputs", str(inputs)) if inputs else ()
    return Measurement(f"task-{name}", ("measure", name, *cut, "--repeat", "5", "--json", "{json}", "--svg", "{svg}"), takes_s=takes_s,
                       plots=("latency-profile.svg", "cumulative-by-count.svg", "histogram.svg"))


ALL = [
    Measurement("timer", ("bench", "timer", "--mechanism", "all", "-d", "10s", "--json", "{json}"), takes_s=65),
    Measurement("timer-realtime", ("bench", "timer", "--policy", "fifo:99", "-d", "10s", "--json", "{json}"), takes_s=12),
    Measurement("idle", ("idle", "-d", "30s", "--json", "{json}"), takes_s=35),
    Measurement("validate", ("idle", "--validate", "--json", "{json}"), takes_s=50),
    Measurement("memory", ("bench", "memory", "-d", "18s", "--json", "{json}"), takes_s=95),
    Measurement("fork", ("bench", "fork", "-d", "7s", "--managed", "--json", "{json}"), takes_s=165),
    Measurement("typing", typing(), takes_s=110),
    Measurement("typing-wayland", typing("--display", "wayland"), takes_s=110),
    Measurement("scroll", ("bench", "scroll", "--load", "0,10,20", "--managed", "--sessions", "0", "--blocks", "2", "--json", "{json}"), takes_s=120),
    Measurement("system", ("bench", "system", "--managed", "--sessions", "0", "--rounds", "1", "--blocks", "2", "--json", "{json}"), takes_s=70),
    task("editor", 210, inputs=290),
    task("writer", 160, inputs=150),
    task("impress", 270),
    Measurement("day", ("--json", "{json}"), program="scripts/measure-day", takes_s=65),
    Measurement("systems", ("--json", "{json}"), program="scripts/compare-systems", takes_s=270),
    Measurement("manager", ("--json", "{json}"), program="scripts/check-manager", takes_s=185),
    Measurement("preload", ("--json", "{json}"), program="scripts/measure-preload", takes_s=180),
    Measurement("auto", ("--minutes", "20", "--json", "{json}"), program="scripts/check-auto", takes_s=1240, named_only=True),
    Measurement("recorder", file="docs/overhead.md", written_by="make bench-recorder", read=events),
    Measurement("compile", file="docs/overhead.md", written_by="make bench-recorder BENCH=--compile", read=compiling),
    Measurement("records", file="docs/overhead.md", written_by="make bench-recorder BENCH=--records", read=records),
    guest("pagein", HOG),
    guest("slowdisk", HOG),
    guest("warmstart", unloaded("a key, unloaded", 2, "ms")),
    guest("starvation"),
    guest("system", unloaded("the script, unloaded", 2, "s")),
    guest("typing", unloaded("a key, unloaded, p50", 1, "ms")),
    guest("typing-units", unloaded("a key, unloaded, p50", 1, "ms")),
    *(guest(f"systems-{kernel}", unloaded("a key, unloaded, p50", 1, "ms")) for kernel in KERNELS),
    *(guest(f"{name}-{kernel}", unloaded("10 ms of work every 60 ms beside nothing, p50", 1, "ms")) for name in ("fork", "fork-managed") for kernel in KERNELS),
    *(guest(f"validate-{kernel}") for kernel in KERNELS),
]

BY_NAME = {measurement.name: measurement for measurement in ALL}
