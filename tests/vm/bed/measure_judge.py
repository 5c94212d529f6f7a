# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables and bars from the documents of the measurements.

`rows` begins with the header of a table; `bars` has the required and the reached values.
"""

import collections
import statistics

from shared.figures import difference

# Slowdown of emulated CPUs, by which bars in milliseconds are larger.
SLOWER = 10
# Bars: p95 of typing as a multiple of unloaded, plus milliseconds; the system test by load; the gain of the warm start and
# of page waits; the load's loss of throughput in percent.
TYPING_TIMES, TYPING_MORE_MS = 1.1, 1.0 * SLOWER
SYSTEM_TIMES = {"build": 1.05, "synthetic": 1.2}
WARM_GAIN, WAIT_GAIN, LOST_MAX = 10, 10, 2.0
# Buckets of the paper's histograms.
BUCKET_MS, BUCKET_NS = 10, 10_000_000


def bar(text, met, seen):
    return {"bar": text, "met": bool(met), "seen": " ".join(str(seen).split())}


def ms(value):
    return "-" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def percent(value):
    return "-" if value is None else f"{value:.1f}"


def typing(document):
    arms = document["arms"]
    calm = named(arms, "unloaded")["figures"]["p95_ms"]
    rows = [["", "p50 ms", "p95 ms", "p99 ms", "max ms", "p95, times unloaded", "throughput lost, %"]]
    for row in arms:
        times = row["figures"]
        lost = percent(row["throughput_lost_percent"])
        shown = [ms(times[name]) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")]
        rows.append([row["turn"], *shown, f"{times['p95_ms'] / calm:.2f}", lost])
    managed = next(row for row in arms if row["arm"] == "managed")
    reached, most = managed["figures"]["p95_ms"], TYPING_TIMES * calm + TYPING_MORE_MS
    text = f"p95 managed <= {TYPING_TIMES} x unloaded + {TYPING_MORE_MS:.0f} ms"
    lacking = "; ".join(f"{one['arm']}: {one['because']}" for one in document["not_available"])
    seen = f"{ms(reached)} of {ms(most)} ms"
    bars = [bar(text, reached <= most, seen if reached <= most else seen + waited(document, managed)), lost_bar(managed)]
    return {"rows": rows, "bars": bars, "note": lacking}


def waited(document, managed):
    """Returns the run queue delays, and the kernel's preemption model."""
    delays = [row.get("run_queue_delay_ms") for row in (managed, named(document["arms"], "unloaded"))]
    rule = document["machine"].get("preemption", "unknown")
    return "; each time {} ms waiting for a CPU, unloaded {} ms; preemption {}".format(*map(ms, delays), rule)


def compared(document, later, earlier):
    """Returns the differences of the medians by run, with their intervals."""
    differences = [f"{group['run']} {difference(one['differences'][0]['p50_ms'])}" for group in document["groups"] for one in group["classes"]]
    return f"kernel {later} less kernel {earlier}, p50 of a key: {'; '.join(differences)}"


def named(arms, turn):
    return next(row for row in arms if row["turn"] == turn)


def lost_bar(row, because=None):
    """Returns the bar of the lost throughput. `because` is a reason why it cannot be measured."""
    lost = row["throughput_lost_percent"]
    if lost is None:
        because = because or "the load reports no rounds"
    where = f" beside {row['beside']}" if "beside" in row else ""
    seen = f"not measured: {because}" if because else f"{percent(lost)} %"
    blocks = row.get("throughput_lost_by_block_percent") or []
    apart = len(blocks) > 1 and min(blocks) < LOST_MAX < max(blocks)
    if apart and not because:
        seen += f", by block {percent(min(blocks))} to {percent(max(blocks))} %: they differ by more than the bar"
    seen += lost_words(row.get("lost_parts"))
    judged = bar(f"throughput lost{where} <= {LOST_MAX:.0f} %", not because and lost <= LOST_MAX, seen)
    return {**judged, "unclear": True} if apart and not because else judged


def lost_words(parts):
    """Returns the parts of a loss, as reported by the benchmark."""
    if not parts:
        return ""
    manager = parts["manager_percent"]
    took = "" if manager is None else f" (the manager itself took {percent(manager)} % of what the load had)"
    return f"; {percent(parts['cpu_time_percent'])} % less CPU time{took}, and {percent(parts['slower_percent'])} % less done in the same CPU time"


def too_few(document, beside, what):
    """Returns the reason if the load finished too little to measure a loss."""
    done = [row["done"] for row in document["rows"] if (row["beside"], row["arm"]) == (beside, "unmanaged")][0]
    reason = f"unmanaged {done} {what} were finished in all, and four of them are more than {LOST_MAX:.0f} %"
    return reason if done * LOST_MAX < 400 else None


def system(document):
    found = {(row["beside"], row["arm"]): row for row in document["rows"]}
    calm = found["nothing", "unmanaged"]["median_s"]
    rows = [["beside", "arm", "median s", "least and most s", "times unloaded", "throughput lost, %"]]
    for (beside, arm), row in found.items():
        span = f"{row['min_s']:.1f} to {row['max_s']:.1f}"
        lost = percent(row["throughput_lost_percent"])
        rows.append([beside, arm, f"{row['median_s']:.1f}", span, f"{row['median_s'] / calm:.2f}", lost])
    bars = []
    for beside, most in SYSTEM_TIMES.items():
        times = found[beside, "managed"]["median_s"] / calm
        because = too_few(document, beside, {"build": "files", "synthetic": "rounds"}[beside])
        bars += [bar(f"{beside}, managed <= {most} x unloaded", times <= most, f"{times:.2f} x"),
                 lost_bar(found[beside, "managed"], because)]  # fmt: skip
    return {"rows": rows, "bars": bars, "note": f"build: {document['build']}; synthetic: {document['synthetic']}"}


def warmstart(*documents):
    """Judges several runs of the command, with one pause of each arm in each."""
    rows = [["", "first key ms, each pause", "median ms", "page-ins", "longest of the next keys ms", "throughput lost, %"]]
    middle = {}
    for row in documents[0]["arms"]:
        turn = row["turn"]
        pauses = [one for document in documents for one in document["pauses"] if one["turn"] == turn]
        first = [one["first_ns"] / 1e6 for one in pauses]
        middle[row["arm"], row["level"] > 0] = median = statistics.median(first)
        after = max((time for one in pauses for time in one["after_ns"]), default=0) / 1e6
        lost = [named(document["arms"], turn)["throughput_lost_percent"] for document in documents]
        lost = percent(None if None in lost else statistics.median(lost))
        page_ins = ", ".join(str(one["page_ins"]) for one in pauses)
        rows.append([turn, ", ".join(map(ms, first)), ms(median), page_ins, ms(after), lost])
    managed, unmanaged = middle["managed", True], middle["unmanaged", True]
    text = f"first key managed: {WARM_GAIN} x better than unmanaged"
    seen = f"{unmanaged / managed:.1f} x: {ms(managed)} of {ms(unmanaged)} ms"
    gone = sum(document["pushed_out"] for document in documents) * 2 > len(documents)
    if not gone:
        seen = f"not shown, since the load pushed nothing out in most pauses ({seen})"
    met = gone and unmanaged >= WARM_GAIN * managed
    return {"rows": rows, "bars": [bar(text, met, seen)], "note": conditions(documents[0])}


def pagein(document):
    rounds = loaded(document)["managed"]["window_rounds_min"]
    return beside_hog(document, [gained(document, "p95_ms", "p95 of the wait"), bar("the hog goes on in every 10 s, managed", rounds, f"{rounds} rounds or more")])


def slow_disk(document):
    """Judges the same with each remedy by the longest wait, like the paper."""
    figures = beside_hog(document, [gained(document, "max_ms", "longest wait")])
    return {**figures, "note": f"{figures['note']}; I/O scheduler mq-deadline"}


def loaded(document):
    return {row["arm"]: row for row in document["arms"] if row["level"] > 0}


def gained(document, figure, words):
    """Returns the bar of a tenfold reduction of the wait."""
    of = {arm: row["figures"][figure] for arm, row in loaded(document).items()}
    seen = f"{ms(of['managed'])} of {ms(of['unmanaged'])} ms"
    gone = page_ins(document)[loaded(document)["unmanaged"]["turn"]]
    if not gone:
        seen = f"not shown, since nothing was pushed out ({seen})"
    return bar(f"{words}, managed <= 1/{WAIT_GAIN} of unmanaged", gone and of["managed"] * WAIT_GAIN <= of["unmanaged"], seen)


def page_ins(document):
    return {one["turn"]: one["page_ins"] for one in document["turns"]}


def beside_hog(document, bars):
    rows = [["", "wait p50 ms", "wait p95 ms", "wait max ms", "page-ins", "rounds of the hog in its worst 10 s", "throughput lost, %"]]
    for row in document["arms"]:
        shown = [ms(row["figures"][name]) for name in ("p50_ms", "p95_ms", "max_ms")]
        rounds, lost = row["window_rounds_min"], percent(row["throughput_lost_percent"])
        rows.append([row["turn"], *shown, str(page_ins(document)[row["turn"]]), "-" if rounds is None else str(rounds), lost])
    sizes = f"hog {document['hog_bytes'] >> 20} MiB, program {document['working_set_bytes'] >> 20} MiB"
    return {"rows": rows, "bars": bars, "note": f"{sizes}, of {document['room']['available'] >> 20} MiB available",
            "histograms": histograms(document)}  # fmt: skip


def histograms(document):
    """Returns the number of waits by arm and bucket of 10 ms."""
    counts = {}
    for run in document["runs"]:
        buckets = counts.setdefault(run["name"], collections.Counter())
        buckets.update(wait // BUCKET_NS * BUCKET_MS for one in run["classes"] for wait in one["latencies_ns"])
    return {name: sorted(buckets.items()) for name, buckets in counts.items()}


def conditions(document):
    load = document["conditions"]
    return f"load {load['type']} at {document['load']}, {load['memory_bytes'] >> 20} MiB; pause {document['pause_s']:.0f} s"
