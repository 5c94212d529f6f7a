# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run with a fault: baseline, fault, delayed input, end, and a check of its effect."""

import random
import time

from shared import until

from . import acts, contention, display, files, inside, mounted, processes, programs, services, shells, stopping, truth
from . import volumes, waiting

FAULTS = {
    **stopping.FAULTS, **contention.FAULTS, **waiting.FAULTS, **inside.FAULTS, **files.FAULTS,
    **services.FAULTS, **shells.FAULTS, **mounted.FAULTS, **volumes.FAULTS, **display.FAULTS,
}  # fmt: skip
# Minimum effect on the screen of a counted fault; for a command, a user notices a second.
EFFECT_MIN_MS, COMMAND_MIN_MS = 300, 1000
# Share of a browser's window with its own controls, and that with the text of the page.
UPPER = 0.75


def make(session, scenario):
    name, _, words = scenario.fault.partition(" ")
    return FAULTS[name](session, words)


def prepare(session):
    """Makes files and environment for the fault of the session's scenario."""
    name, _, words = session.scenario.fault.partition(" ")
    if name:
        FAULTS[name].prepare(session, *words.split())


def act_plain(session, act):
    """Performs the delayed input; returns its time."""
    word, _, rest = act.partition(" ")
    if word == "key":
        return session.input.key(rest)
    if word == "rest":
        time.sleep(float(rest))
        return processes.now_ns()
    if word == "click":
        return session.input.click(*session.place().at(*map(float, rest.split())))
    if word == "write":
        *first, last = rest
        session.input.write("".join(first))
        return session.input.key(last)
    if word == "beside":
        window = session.windows.find(rest)
        return session.input.click(*session.windows.place(window).at(0.5, 0.5))
    if word == "drag":
        return acts.drag_title(session, 80, 60)
    raise ValueError(act)


def split(acts_of_row):
    """Splits the acts into preparation and delayed input: the latter begins at the act with a
    star, or is all; a command is prepared by typing it."""
    words = []
    for act in acts_of_row:
        words += [f"write {act.removeprefix('command ')}", "*key Return"] if act.startswith("command ") else [act]
    star = next((at for at, act in enumerate(words) if act.startswith("*")), 0)
    return words[:star], [act.removeprefix("*") for act in words[star:]]


def perform(session, fault, all_acts):
    """Performs acts at a human pace; returns the time of each."""
    begins = []
    for act in all_acts:
        begins.append(act_plain(session, act.format(**fault.names())))
        time.sleep(0.25)
    return begins


def commit(session, scenario):
    """Runs the fault; returns its known facts."""
    fault = session.fault = make(session, scenario)
    session.at_close.append(fault.clean)
    fault.ready()
    acts.warm_up(session)
    fault.settle()
    before, suffering = split(scenario.acts)
    perform(session, fault, before)
    time.sleep(0.5)
    region = region_of(session, scenario)
    said = {"roles": session.roles, "hold_s": fault.hold_s}
    said["fault_begin_ns"] = processes.now_ns()
    fault.begin()
    said["acts_ns"] = perform(session, fault, suffering)
    said["act_ns"] = fault.act_ns = said["acts_ns"][0]
    said["bounded"] = fault.bounded
    time.sleep(max(fault.hold_s - (processes.now_ns() - said["act_ns"]) / 1e9, 0.1))
    said["processes"] = processes.table()
    if scenario.truth == "mark":
        return finish(said, scenario, region)
    said["fault_end_ns"] = fault.end()
    wait_for_answer(session, said)
    time.sleep(random.uniform(0.4, 2))
    return finish(said, scenario, region)


def finish(said, scenario, region):
    said["region"] = region
    said["accept"] = [list(pair) for pair in scenario.accept]
    return said


def wait_for_answer(session, said):
    """Waits until the screen has changed after the fault, and is quiet."""
    until(lambda: truth.first_after(session.screen.changes(), said["fault_end_ns"]), None, 8, 0.1)
    session.wait_quiet(5)


def region_of(session, scenario):
    """Returns the region of an answer: the window, its lower part, its frame, or the whole
    screen."""
    where = scenario.truth.partition(":")[2] or "window"
    if where == "screen" or not session.windows.located:
        return None
    place = session.windows.frame(session.window) if where == "frame" else session.place()
    if where == "bottom":
        upper = int(place.height * UPPER)
        return [place.x, place.y + upper, place.width, place.height - upper]
    return [place.x, place.y, place.width, place.height]


def judge_effect(scenario, said):
    """Adds the true interval to the facts, or the reason why the run does not count; needs only
    the logs."""
    changes = truth.in_region([tuple(change) for change in said["changes"]], said["region"])
    mode = scenario.truth.partition(":")[0]
    said["truth"] = scenario.truth
    said["act_ns"] = said["acts_ns"][0]
    end_ns = truth.MODES[mode](changes, said)
    if mode in ("slowest", "letters"):
        said["act_ns"], end_ns = truth.slowest(changes, said)
    if mode == "still":
        after_ns = programs.PROGRAMS[scenario.program].acts_after_ms * 1_000_000
        said["begun_ns"] = [at + after_ns for at in said["acts_ns"]]
        said["act_ns"], end_ns = truth.standstill(changes, said["act_ns"], said["mark_ns"])
    if not end_ns:
        said.update(counted=False, why="the screen did not answer", interval=None)
        return
    interval_ms = (end_ns - said["act_ns"]) / 1e6
    said["interval"] = {"start_ns": said["act_ns"], "end_ns": end_ns, "ms": interval_ms}
    said["intervals"] = [said["interval"], *truth.alternatives(changes, said, end_ns)]
    if mode == "mark":
        answered = truth.first_after(changes, said["act_ns"] + EFFECT_MIN_MS * 1_000_000, end_ns)
        said["counted"], said["why"] = not answered, "the screen answered before the mark" if answered else ""
        return
    said["counted"], said["why"] = counts(said, interval_ms, end_ns, said["bounded"])


def counts(said, interval_ms, end_ns, bounded):
    least_ms = COMMAND_MIN_MS if said["truth"].startswith("last") else EFFECT_MIN_MS
    if interval_ms < least_ms:
        return False, f"the screen answered after {interval_ms:.0f} ms"
    late_ms = (end_ns - said["fault_end_ns"]) / 1e6
    if bounded and late_ms < -30:
        return False, f"the screen answered {-late_ms:.0f} ms before the fault's end"
    if bounded and late_ms > truth.ANSWER_MAX_MS:
        return False, f"the screen answered {late_ms:.0f} ms after the fault's end"
    return True, ""
