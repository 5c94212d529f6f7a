# SPDX-License-Identifier: MIT OR Apache-2.0
"""Table of the messages for each breakage, from the results of the runs."""

import datetime
import json
import re

import stage  # noqa: F401  (it sets the path of the shared modules)
from shared import machine

HEAD = """# Breakages

Messages of tipme while one part of a complete desktop is broken (`tests/desktops`): the
first line of `tipme status`, which `tipme doctor` prints too; notifications after a press of the key, and others of the
agent; the last line of `tipme setup`, and its failed steps; the remedy, followed literally from these texts. Paths are
shortened, and *wrong* lists untrue sentences and remedies without effect or in a circle. Written by
`tests/desktops/run --table`; rows of desktops that were not run again are older.

{date}, commit {commit}, {machine}.

| breakage | desktop | status | a press | the agent by itself | setup | mended by | wrong |
|---|---|---|---|---|---|---|---|
"""


def write(keep, path, names):
    """Writes all results of the folder in place of earlier rows of the same breakages and desktops, sorted by both."""
    rows = {tuple(kept.split(" | ")[:2]): kept + "\n" for kept in path.read_text().splitlines() if kept.startswith("| ")}
    for file in sorted(keep.glob("*/breakages.json")):
        for row in json.loads(file.read_text()):
            rows["| " + row["breakage"], file.parent.name] = line(file.parent.name, row)
    order = {f"| {name}": at for at, name in enumerate(names)}
    known = sorted((key for key in rows if key[0] in order), key=lambda key: (order[key[0]], key[1]))
    head = HEAD.format(date=datetime.date.today(), commit=machine.commit_of_program(), machine=machine.machine())
    path.write_text(head + "".join(rows[key] for key in known))


def line(desktop, row):
    cells = [row["breakage"], desktop, row["status"], said(row["press"]), said(row.get("agent", [])), row["setup"]]
    cells += [row["mended"], "; ".join(row["wrong"])]
    return "| " + " | ".join(cut(cell) or "-" for cell in cells) + " |\n"


def said(texts):
    return " / ".join(dict.fromkeys(texts))


def cut(text):
    """Removes the parts that differ between runs."""
    text = re.sub(r"note the recorder \(process \d+\) is not a service[^/]*/ ", "", text)
    text = re.sub(r" --state-dir \S*?/state\b", "", re.sub(r"/tmp/tipme-field-\w+/bin/tipme", "tipme", text))
    text = re.sub(r"/\S+/incidents/(\w+\.\w+)\S*", "ID", re.sub(r"/tmp/tipme-field-\w+/home", "~", text))
    text = re.sub(r"/tmp/tipme-field-\w+/state/\S+\.sock", "its socket", text)
    text = re.sub(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "since TIME", text)
    return re.sub(r"process \d+", "process N", text).replace("|", "\\|").strip()
