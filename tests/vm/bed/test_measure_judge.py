# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is made of the documents of measurements. Run: make test-vm, or python3 -m unittest discover -t tests/vm -s tests/vm/bed"""

import unittest

from . import measure_document
from . import measure_judge as judge

PARTS = {"cpu_time_percent": 0.4, "slower_percent": 2.6, "manager_percent": 0.2}


def lost(percent, blocks, parts=None):
    return judge.lost_bar({"throughput_lost_percent": percent, "throughput_lost_by_block_percent": blocks, "lost_parts": parts})


class Losses(unittest.TestCase):
    def test_a_miss_has_the_cause_that_the_benchmark_tells(self):
        missed = lost(3.0, [2.5, 3.5], PARTS)
        self.assertEqual(measure_document.result(missed), "MISSED")
        self.assertIn("0.4 % less CPU time (the manager itself took 0.2 % of what the load had)", missed["seen"])
        self.assertIn("2.6 % less done in the same CPU time", missed["seen"])
        self.assertEqual(lost(1.0, [0.5, 1.5])["seen"], "1.0 %")

    def test_blocks_on_both_sides_of_the_bar_show_nothing_whichever_side_the_middle_is(self):
        for percent, blocks, told in ((3.0, [-1.0, 5.0], "not shown"), (-9.0, [-30.0, 5.0], "not shown"), (1.0, [0.5, 1.5], "ok")):
            self.assertEqual(measure_document.result(lost(percent, blocks)), told)


class Histograms(unittest.TestCase):
    def test_waits_are_counted_by_arm_in_buckets_of_10_ms(self):
        runs = [{"name": name, "classes": [{"latencies_ns": waits}]} for name, waits in (("a", [0, 9_999_999, 25_000_000]), ("b", [1]), ("a", [10_000_000]))]
        self.assertEqual(judge.histograms({"runs": runs}), {"a": [(0, 2), (10, 1), (20, 1)], "b": [(0, 1)]})


if __name__ == "__main__":
    unittest.main()
