# SPDX-License-Identifier: MIT OR Apache-2.0
"""Causes that are accepted for a stop: the hypervisor, alone or as one of two."""

import unittest
import unittest.mock

from . import stalls


class Judged(unittest.TestCase):
    def judged(self, *named):
        """Judges stops of 400 ms with late wakeups by these causes; returns the outcome and details."""
        late = [{"cpu": stalls.CPU, "lateness_us": 400_000, "budget": [{"cause": cause, "name": name}]} for cause, name in named]
        machine, results = unittest.mock.MagicMock(), unittest.mock.MagicMock()
        with unittest.mock.patch.object(stalls, "beside_stops", return_value=({"outliers": late, "notes": []}, [(0.0, 0.4)] * len(late))):
            stalls.late_wake_ups(machine, results)
        return results.met.call_args.args[1:]

    def test_the_hypervisor_alone_or_beside_another_is_right(self):
        right, detail = self.judged(("hypervisor", "one CPU"), ("outside", "the hypervisor or interrupt (timer of the CPU), one CPU"))
        self.assertTrue(right)
        self.assertIn("1 of them by the hypervisor, 1 by it or another", detail)

    def test_a_gap_of_the_idle_loop_is_judged_by_its_largest_part(self):
        for name, kind, right in (("the hypervisor", "hypervisor", True), ("bash", "thread", False)):
            gaps = [{"cpu": cpu, "length_ms": ms, "by": [{"name": name, "ms": ms}]} for cpu, ms in ((stalls.CPU, 400.0), (stalls.CPU, 3.0), (0, 900.0))]
            document = {"largest": gaps, "residents": [{"name": name, "kind": kind}]}
            results = unittest.mock.MagicMock()
            with unittest.mock.patch.object(stalls, "beside_stops", return_value=(document, [(0.0, 0.4)])):
                stalls.idle_loop(unittest.mock.MagicMock(), results)
            self.assertEqual(results.met.call_args.args[1], right)

    def test_an_unrelated_cause_may_not_be_named_for_certain(self):
        for named in (("interrupt", "interrupt (timer of the CPU)"), ("own", ""), ("outside", "the firmware or the hardware, one CPU")):
            self.assertFalse(self.judged(("hypervisor", "one CPU"), named)[0])
