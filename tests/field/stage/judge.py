# SPDX-License-Identifier: MIT OR Apache-2.0
"""Comparison of a verdict with the truth."""

import dataclasses

from . import keep, scenarios, truth

# Tolerance of the interval, as a share of the truth or in milliseconds.
SHARE, FLOOR_MS = 0.15, 50


@dataclasses.dataclass
class Judged:
    """Judgment of one run, as diagnosed by one program."""

    run: str
    truth: dict
    verdict: dict
    # right, wrong, none (a fault without finding), silent, false, still (the screen agrees), uncounted, error
    result: str = ""
    why: str = ""

    def line(self):
        return first_line(self.verdict)


def first_line(verdict):
    """Returns the verdict in one line."""
    interval, findings = verdict.get("interval"), verdict.get("findings") or []
    if verdict.get("error"):
        return f"error: {verdict['error'][:120]}"
    if not interval:
        return "no finding"
    client = (interval.get("client") or {}).get("comm", "?")
    text = f"{interval.get('class')} in {client} {interval.get('latency_ms', 0):.0f} ms ({interval.get('join')}"
    text += f", {interval['milestone']})" if interval.get("milestone") else ")"
    if verdict.get("exit") == keep.EMPTY or not findings:
        return f"no finding; {text}"
    first = findings[0]
    return f"{text}: {first['kind']} {culprit_words(first.get('culprit'))} {first.get('share', 0):.0%}"


def culprit_words(culprit):
    if not culprit:
        return "nobody"
    if "pid" in culprit:
        return f"{culprit.get('comm')} ({culprit['pid']})"
    return str(next(iter(culprit.values())))


def judge(run, known, verdict):
    judged = Judged(run, known, verdict)
    if not known.get("counted", True):
        judged.result, judged.why = "uncounted", known.get("why", "")
    elif verdict.get("exit") not in (0, keep.EMPTY):
        judged.result, judged.why = "error", verdict.get("error", "")
    elif known["kind"] == "calm":
        judge_calm(judged)
    else:
        judge_fault(judged)
    return judged


def judge_calm(judged):
    verdict = judged.verdict
    if verdict["exit"] == keep.EMPTY or not verdict.get("findings"):
        judged.result = "silent"
        return
    stood = truth.stands_still(judged.truth, verdict["interval"])
    latency = verdict["interval"]["latency_ms"]
    if stood > truth.CALM_STILL_MS and stood > 0.8 * latency:
        judged.result, judged.why = "still", f"the screen stood still for {stood:.0f} ms after that input"
    else:
        judged.result, judged.why = "false", f"the screen answered after {stood:.0f} ms" if stood else ""


def accepted(known):
    """Returns the accepted causes: from the current table, or as they were when the run was
    made."""
    scenario = scenarios.ALL.get(known["scenario"])
    if scenario:
        return scenario.accept
    return known.get("accept", [])


def judge_fault(judged):
    known, verdict = judged.truth, judged.verdict
    findings = verdict.get("findings") or []
    if verdict["exit"] == keep.EMPTY or not findings:
        judged.result, judged.why = "none", "no finding"
        return
    wrong = [why for why in (cause(known, findings[0], accepted(known)), interval(known, verdict)) if why]
    judged.result, judged.why = ("wrong", ", ".join(wrong)) if wrong else ("right", "")


def right_cause(judged):
    """Returns True if kind and culprit of the first finding are accepted; in a calm session none
    is."""
    return judged.truth["kind"] == "fault" and not cause(judged.truth, judged.verdict["findings"][0], accepted(judged.truth))


def cause(known, finding, pairs):
    """Returns nothing if kind and culprit match one of the pairs; else the part that did not
    match."""
    fitting = [culprits for kinds, culprits in pairs if finding["kind"] in kinds.split()]
    if not fitting:
        return "kind"
    roles = " ".join(fitting).split()
    return "" if any(is_culprit(known, finding.get("culprit"), role) for role in roles) else "culprit"


def is_culprit(known, culprit, role):
    """Returns True if a culprit is in a role, or a descendant of it. `any` matches every
    culprit, `~text` those with the text in their description, `driver` the test itself, for
    which the helper waits."""
    if role == "any":
        return True
    if not culprit:
        return False
    if role.startswith("~"):
        return role[1:] in str(culprit)
    parents = {row["pid"]: row["parent"] for row in known["processes"]}
    if role == "driver":
        return culprit.get("pid") == parents.get(known["roles"].get("helper"), 0)
    wanted = known["roles"].get(role)
    if wanted is None:
        return False
    pid = culprit.get("pid")
    while pid:
        if pid == wanted:
            return True
        pid = parents.get(pid)
    return False


def interval(known, verdict):
    """Returns nothing if the verdict is about one of the true intervals, and as long."""
    if any(fits(true, verdict["interval"]) for true in known.get("intervals") or [known["interval"]]):
        return ""
    return f"interval {verdict['interval']['latency_ms']:.0f} for {known['interval']['ms']:.0f} ms"


def fits(true, said):
    near = abs(said["latency_ms"] - true["ms"]) <= max(FLOOR_MS, SHARE * true["ms"])
    return near and min(true["end_ns"], said["end_ns"]) > max(true["start_ns"], said["start_ns"])


def judged(folder, verdict=None):
    known = keep.read(folder / "truth.json")
    return judge(folder.name, known, verdict or keep.read(folder / "verdict.json"))
