# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is made of the documents of measurements without a load beside a display: newborn processes, the idle loop, safety."""

from .measure_judge import SLOWER, bar, ms, percent

# What a background job gets at least, in percent of a CPU.
SHARE_MIN = 1.0
# Above this share of a trial's time it is about others, and is not judged.
DISTURBED_SHARE = 0.05


def fork(document):
    """What each load does to a process that works for 10 ms in every 60; no bar, since the kernel alone has its part in it."""
    rows = [["beside", "p50 ms", "longest ms", "over 150 ms, %", "intervals"]]
    for load in document["loads"]:
        figures = load["figures"]
        rows.append([load["load"], ms(figures["p50_ms"]), ms(figures["max_ms"]), percent(100 * figures["long_share"]), str(figures["n"])])
    return {"rows": rows, "bars": [], "note": "; ".join(document["bounds"])}


def validation(document):
    """Work of known length against what the idle loop missed of it. The limits allow for what others and the hypervisor had, as tipme has it."""
    told = document["validation"]
    rows = [["method", "error p50 µs", "error p90 µs", "limits p50, p90 µs", "others had, %", "hypervisor reported, %", "events"]]
    bars = []
    for trial in told["trials"]:
        errors, limits = trial["errors"], limits_us(trial)
        shares = [f"{100 * share:.2f}" for share in taken(trial)]
        rows.append([trial["method"], f"{errors['p50_us']:.1f}", f"{errors['p90_us']:.1f}", " and ".join(f"{limit:.0f}" for limit in limits) or "-", *shares,
                     str(errors["n"])])  # fmt: skip
        if limits:
            bars.append(validated(trial, limits))
    bars += [shared(check) for check in told["checks"] if check["difference_points_max"] is not None]
    echo = told["echoes"][0]
    return {"rows": rows, "bars": bars, "note": f"a program's own time stamps miss {echo['missed_us']:.0f} µs of an echo of {echo['conventional_ms']:.1f} ms"}


def taken(trial):
    """The shares of the CPU that others had, and that the hypervisor reports to have had."""
    return [(trial["taken"] or {}).get(name, 0.0) for name in ("others_share", "steal_share")]


def limits_us(trial):
    """What is demanded, p50 and p90, of processors so slow, and what others may account for: their share of a middling and of the longest work."""
    if trial["p50_us_max"] is None:
        return []
    share, middling = 1e3 * sum(taken(trial)), (trial["injected_ms_min"] + trial["injected_ms_max"]) / 2
    return [SLOWER * trial["p50_us_max"] + share * middling, SLOWER * trial["p90_us_max"] + share * trial["injected_ms_max"]]


def validated(trial, limits):
    p50, p90 = trial["errors"]["p50_us"], trial["errors"]["p90_us"]
    seen = f"{p50:.1f} and {p90:.1f} of {limits[0]:.0f} and {limits[1]:.0f} µs"
    met = trial["errors"]["n"] > 0 and p50 <= limits[0] and p90 <= limits[1]
    judged = bar(f"{trial['method']}: error of known work, p50 and p90, within the limits", met, seen)
    return {**judged, "unclear": True} if sum(taken(trial)) > DISTURBED_SHARE else judged


def shared(check):
    """The stolen share against the kernel's account of the loops."""
    apart, most = abs(check["difference_points"]), check["difference_points_max"] + 100 * check["steal_share"]
    return bar(f"{check['method']}, {check['load']}: share of the kernel's account <= {check['difference_points_max']:g} points apart", apart <= most, f"{apart:.2f} points")


def starvation(document):
    rows = [["window", "least of a background job, % of a CPU", "all background jobs", "focused job"]]
    for number, window in enumerate(document["windows"], 1):
        figures = [f"{window[name]:.2f}" for name in ("least", "rest", "focus")]
        rows.append([f"{number}, {document['window_s']} s", *figures])
    least = min(window["least"] for window in document["windows"])
    ahead = min(window["focus"] / max(window["rest"], 0.01) for window in document["windows"])
    focus, jobs = document["weights"]["focus"], document["weights"]["jobs"]
    in_force = focus is not None and all(job is not None and job < focus for job in jobs)
    seen = ", ".join(sorted({"no cpu.weight" if job is None else str(job) for job in jobs}))
    weighs = f"{'no cpu.weight' if focus is None else focus}, each job {seen}"
    text = f"each of {document['jobs']} background jobs has {SHARE_MIN:.0f} % of a CPU in each {document['window_s']} s"
    bars = [bar("the focused job's group weighs more", in_force, weighs),
            bar("the focused job has more than all background jobs", ahead > 1, f"{ahead:.2f} x"),
            bar(text, least >= SHARE_MIN, f"{least:.2f} %")]  # fmt: skip
    return {"rows": rows, "bars": bars, "note": "strength strong; the focused job wants every CPU"}


def kind(key):
    """What was changed, from `group a/b`, `a/b/memory.low` and `4711:99 4711 slice`."""
    return "groups made" if key.startswith("group ") else key.split(" ")[-1].rpartition("/")[2]


def weights_seen(changed):
    weights = sorted({int(now) for key, (_, now) in changed.items() if kind(key) == "cpu.weight"})
    return f"cpu.weight {', '.join(map(str, weights))}" if weights else "no cpu.weight"


def restore(document):
    kinds = {kind(key) for key in document["after_kill"]}
    changed, left = len(document["after_kill"]), document["left"]
    seen = "; ".join(f"{key}: {was} is {now}" for key, (was, now) in list(left.items())[:5])
    rows = [["changed by the manager", "of these when it was killed", "left after the next start"],
            [str(len(document["changed"])), f"{changed}: {', '.join(sorted(kinds))}", str(len(left))]]  # fmt: skip
    bars = [bar("something was changed, with a limit to memory", changed and document["limited"], f"{changed} values"),
            bar("weights of the CPUs were changed", "cpu.weight" in kinds, weights_seen(document["after_kill"])),
            bar("nothing is left changed", not left, seen or "nothing")]  # fmt: skip
    return {"rows": rows, "bars": bars, "note": ""}
