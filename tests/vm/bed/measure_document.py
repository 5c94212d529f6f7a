# SPDX-License-Identifier: MIT OR Apache-2.0
"""The measurements' part of a document, between markers."""

from shared.figures import table, write_between

BEGIN, END = "<!-- written by make measure-vm -->", "<!-- end of make measure-vm -->"


def write(document, measured, memory_mib):
    """Replaces the part of the document."""
    write_between(document, BEGIN, END, section(measured, memory_mib))


def section(measured, memory_mib):
    lines = ["", f"A guest with {memory_mib} MiB. Measurements without a bar are in [the appendix of the papers](papers.md).", ""]
    lines += table([["measurement", "bar", "result", "figure"], *bars(measured)])
    for one in (one for one in measured if one["bars"]):
        source = f"{one['when']} UTC, commit {one['commit']}, Linux {one['release']}, emulated on {one['host']}, load average {one['host_load']:.1f}."
        note = f" {one['note'][0].upper()}{one['note'][1:]}." if one.get("note") else ""
        lines += ["", f"**{one['title']}** ({source}{note})", "", *table(one["rows"])]
        lines += ["", f"`tipme compare`: {one['notes']}."] if one.get("notes") else []
    return [*lines, ""]


def bars(measured):
    for one in measured:
        for row in one["bars"]:
            yield [one["title"], row["bar"], result(row), row["seen"]]


def result(row):
    return "not shown" if row.get("unclear") else "ok" if row["met"] else "MISSED"
