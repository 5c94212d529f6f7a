# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables and bars of measurements without a load beside a display: new processes, the idle loop, safety."""

from shared.validation import checked_points, is_disturbed, is_within, limits_us, taken

from .measure_judge import SLOWER, bar, ms, percent

# Minimum share of a background job, in percent of a CPU.
SHARE_MIN = 1.0


def fork(document):
    """Returns the intervals of a process that works for 10 ms in every 60, by load; there is no
    bar, since only the kernel influences them."""
    rows = [["beside", "p50 ms", "longest ms", "over 150 ms, %", "intervals"]]
    for load in document["loads"]:
        figures = load["figures"]
        rows.append([load["load"], ms(figures["p50_ms"]), ms(figures["max_ms"]), percent(100 * figures["long_share"]), str(figures["n"])])
    return {"rows": rows, "bars": [], "note": "; ".join(document["bounds"])}


def validation(document):
    """Compares work of known length with the time that the idle loop missed."""
    validation = document["validation"]
    rows = [["method", "error p50 µs", "error p90 µs", "limits p50, p90 µs", "others had, %", "hypervisor reported, %", "events"]]
    bars = []
    for trial in validation["trials"]:
        errors, limits = trial["errors"], limits_us(trial, SLOWER)
        shares = [f"{100 * share:.2f}" for share in taken(trial)]
        rows.append([trial["method"], f"{errors['p50_us']:.1f}", f"{errors['p90_us']:.1f}", " and ".join(f"{limit:.0f}" for limit in limits) or "-", *shares,
                     str(errors["n"])])  # fmt: skip
        if limits:
            bars.append(validated(trial, limits))
    bars += [shared(check) for check in validation["checks"] if check["difference_points_max"] is not None]
    echo = validation["echoes"][0]
    return {"rows": rows, "bars": bars, "note": f"a program's own time stamps miss {echo['missed_us']:.0f} µs of an echo of {echo['conventional_ms']:.1f} ms"}


def validated(trial, limits):
    errors = trial["errors"]
    seen = f"{errors['p50_us']:.1f} and {errors['p90_us']:.1f} of {limits[0]:.0f} and {limits[1]:.0f} µs"
    met = errors["n"] > 0 and is_within(trial, limits)
    judged = bar(f"{trial['method']}: error of known work, p50 and p90, within the limits", met, seen)
    return {**judged, "unclear": True} if is_disturbed(trial) else judged


def shared(check):
    """Compares the stolen share with the kernel's account of the loops."""
    apart, most = checked_points(check)
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
    """Returns the kind of a changed value, from `group a/b`, `a/b/memory.low` and `4711:99 4711 slice`."""
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
