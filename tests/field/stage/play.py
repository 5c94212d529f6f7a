# SPDX-License-Identifier: MIT OR Apache-2.0
"""One run of a scenario: a session, its acts, a mark, and the stored results."""

import datetime
import platform
import random
import signal
import time

from shared import machine

from . import acts, faults, judge, keep, processes, truth
from . import session as x11
from .wayland import session as wayland

# Maximum duration of a run, in seconds; a permanent grab of the display would block it forever.
RUN_MAX_S = 240
# Number of last changes that are stored with the truth.
CHANGES_MAX = 20_000


def about(session, scenario):
    return {
        "schema": 1,
        "scenario": scenario.name,
        "kind": "calm" if scenario.calm or scenario.control else "fault",
        "fault": scenario.fault,
        "program": scenario.program,
        "manager": scenario.manager,
        "compositor": scenario.compositor,
        "injector": scenario.injector,
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.release()}",
        "commit": machine.commit(),
        "roles": session.roles,
        "window": session.windows.words(session.window).strip(),
    }


def calm(session, scenario):
    """Runs without a fault; the mark comes up to three seconds later."""
    acts.perform(session, scenario.acts)
    time.sleep(random.uniform(0, 3))
    return {"counted": True}


def close_truth(session, said):
    """Adds the parts of all truths: input, changes of the screen, processes."""
    changes = session.screen.changes()[-CHANGES_MAX:]
    said["inputs"] = session.input.events
    known = {row["pid"]: row for row in said.get("processes", [])}
    said["processes"] = list({**{row["pid"]: row for row in processes.table()}, **known}.values())
    said["changes"] = [list(change) for change in changes]
    if said["kind"] == "calm":
        said["slowest"] = truth.still(said["inputs"], changes)[:3]
    return said


def too_long(*_):
    raise processes.CannotRun(f"it took longer than {RUN_MAX_S} s")


def play(scenario, options):
    """Runs the scenario once, stores incident, truth and log; returns the judged run."""
    partial, whole = keep.place(options.keep, scenario.name)
    session = (wayland if scenario.wayland else x11).Session(scenario, options.tipme)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(RUN_MAX_S)
    try:
        with session:
            said = about(session, scenario)
            said.update(calm(session, scenario) if scenario.calm else faults.commit(session, scenario))
            said["mark_ns"] = session.mark(partial / "incident.tipme")
            close_truth(session, said)
            if said["kind"] == "fault":
                faults.judge_effect(scenario, said)
    finally:
        signal.alarm(0)
        (partial / "session.log").write_text("\n".join([*session.log_lines, ""]))
    keep.write(partial / "truth.json", said)
    keep.write(partial / "verdict.json", keep.diagnose(options.tipme, partial / "incident.tipme"))
    partial.rename(whole)
    return judge.judged(whole)
