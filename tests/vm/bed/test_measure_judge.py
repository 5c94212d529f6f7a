# SPDX-License-Identifier: MIT OR Apache-2.0
"""Choice of measurements, and judgments of their documents."""

import unittest

from . import judge_others, measure, measure_document
from . import measure_judge as judge
from .places import CannotRun

PARTS = {"cpu_time_percent": 0.4, "slower_percent": 2.6, "manager_percent": 0.2}


def lost(percent, blocks, parts=None):
    return judge.lost_bar({"throughput_lost_percent": percent, "throughput_lost_by_block_percent": blocks, "lost_parts": parts})


class Losses(unittest.TestCase):
    def test_a_miss_has_the_cause_from_the_benchmark(self):
        missed = lost(3.0, [2.5, 3.5], PARTS)
        self.assertEqual(measure_document.result(missed), "MISSED")
        self.assertIn("0.4 % less CPU time (the manager itself took 0.2 % of what the load had)", missed["seen"])
        self.assertIn("2.6 % less done in the same CPU time", missed["seen"])
        self.assertEqual(lost(1.0, [0.5, 1.5])["seen"], "1.0 %")

    def test_blocks_on_both_sides_of_the_bar_show_nothing(self):
        for percent, blocks, outcome in ((3.0, [-1.0, 5.0], "not shown"), (-9.0, [-30.0, 5.0], "not shown"), (1.0, [0.5, 1.5], "ok")):
            self.assertEqual(measure_document.result(lost(percent, blocks)), outcome)


class Typing(unittest.TestCase):
    def bar(self, managed_ms, machine):
        lost = {"throughput_lost_percent": 0.0, "throughput_lost_by_block_percent": [0.0], "lost_parts": None}
        rows = [{"turn": turn, "arm": turn, "figures": {"p50_ms": 1.0, "p95_ms": ms, "p99_ms": None, "max_ms": ms}, "run_queue_delay_ms": waited, **lost}
                for turn, ms, waited in (("unloaded", 6.0, None), ("managed", managed_ms, 4.91))]  # fmt: skip
        return judge.typing({"arms": rows, "not_available": [], "machine": machine})["bars"][0]

    def test_a_miss_has_the_run_queue_delay(self):
        seen = "18.8 of 16.6 ms; each time 4.9 ms waiting for a CPU, unloaded - ms; preemption"
        self.assertEqual(self.bar(16.6, {})["seen"], "16.6 of 16.6 ms")
        self.assertEqual(self.bar(18.8, {"preemption": "lazy"})["seen"], f"{seen} lazy")
        self.assertEqual(self.bar(18.8, {})["seen"], f"{seen} unknown")


class Histograms(unittest.TestCase):
    def test_waits_are_counted_by_arm_in_buckets_of_10_ms(self):
        runs = [{"name": name, "classes": [{"latencies_ns": waits}]} for name, waits in (("a", [0, 9_999_999, 25_000_000]), ("b", [1]), ("a", [10_000_000]))]
        self.assertEqual(judge.histograms({"runs": runs}), {"a": [(0, 2), (10, 1), (20, 1)], "b": [(0, 1)]})


class Validations(unittest.TestCase):
    def bars(self, p50, others):
        taken = {"others_share": others, "steal_share": 0.0}
        limited = {"method": "gaps", "injected_ms_min": 0.0, "injected_ms_max": 10.0, "errors": {"p50_us": p50, "p90_us": 80.0, "n": 240},
                   "p50_us_max": 35.0, "p90_us_max": 100.0, "taken": taken}  # fmt: skip
        free = {**limited, "method": "classic", "p50_us_max": None, "p90_us_max": None}
        checks = [{"method": "gaps", "load": "loaded", "difference_points": -2.5, "difference_points_max": most, "steal_share": 0.004} for most in (2.0, 2.2, None)]
        validation = {"trials": [limited, free], "echoes": [{"missed_us": 20.0, "conventional_ms": 5.0}], "checks": checks}
        return judge_others.validation({"validation": validation})["bars"]

    def test_limits_allow_for_other_load_up_to_a_share(self):
        outcomes = [[measure_document.result(one) for one in self.bars(*trial)] for trial in ((350.0, 0.0), (351.0, 0.0), (399.0, 0.01), (9000.0, 0.06))]
        self.assertEqual(outcomes, [[first, "MISSED", "ok"] for first in ("ok", "MISSED", "ok", "not shown")])
        self.assertEqual(self.bars(351.0, 0.0)[0]["seen"], "351.0 and 80.0 of 350 and 1000 µs")


class Kernels(unittest.TestCase):
    def names(self, *asked):
        return [one.name for one in measure.chosen(*asked)]

    def test_a_measurement_for_both_kernels_has_one_name(self):
        self.assertEqual(self.names("fork"), ["fork-6.1", "fork-6.18"])
        self.assertEqual(self.names("fork-6.18"), ["fork-6.18"])
        self.assertEqual(self.names("systems,fork", "6.1"), ["systems-6.1", "fork-6.1"])
        self.assertEqual(self.names("fork-managed"), ["fork-managed-6.1", "fork-managed-6.18"])
        self.assertEqual(self.names("typing"), ["typing"])

    def test_the_others_are_for_the_newest_kernel(self):
        self.assertEqual({one.kernel for one in measure.MEASUREMENTS if one.names == {one.name}}, {"6.18"})
        with self.assertRaisesRegex(CannotRun, "no such measurement: typing; there are systems-6.1, fork-6.1, fork-managed-6.1, validate-6.1"):
            self.names("typing", "6.1")

    def test_a_row_of_a_load_has_its_longest_interval_and_the_long_share(self):
        figures = {"n": 8, "p50_ms": None, "max_ms": 561.0, "long_share": 0.125}
        judged = judge_others.fork({"bounds": ["one CPU"], "loads": [{"load": "fork", "figures": figures}]})
        self.assertEqual((judged["rows"][1], judged["note"]), (["fork", "-", "561", "12.5", "8"], "one CPU"))

    def test_a_comparison_of_kernels_has_its_interval_or_a_reason(self):
        known = {"statement": "more", "difference": 2.0, "low": 1.0, "high": 3.5}
        few = {"statement": "too-few-repeats", "difference": None, "low": None, "high": None}
        groups = [{"run": run, "classes": [{"class": "key", "differences": [{"p50_ms": p50}]}]} for run, p50 in (("unloaded", few), ("load 6", known))]
        self.assertEqual(judge.compared({"groups": groups}, "6.18", "6.1"),
                         "kernel 6.18 less kernel 6.1, p50 of a key: unloaded too few repeats; load 6 +2.00 ms (95 % interval +1.00 to +3.50 ms): more")
