# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether runs agree, of made-up figures."""

import unittest

from .agreement import agreement, comparable, earlier, interval
from .model import Figure


def figure(unit="ms", **words):
    return Figure("f", "timer", lambda document: None, unit, **words)


def runs(*told, machine="a CPU, 2 CPUs, Linux 1"):
    """Runs of (day, value)."""
    return [{"date": f"2026-01-{day:02} 23:59", "machine": machine, "figures": {"f": value}} for day, value in told]


class Agreement(unittest.TestCase):
    def test_two_days_agree_within_the_stated_interval_or_are_flagged(self):
        words = [agreement(figure(share=0.25), runs((1, 100), (2, value))) for value in (130, 140)]
        self.assertEqual(words, ["agrees", "FLAGGED"])
        self.assertEqual([agreement(figure(share=0, least=3), runs((1, 10), (2, value))) for value in (13, 13.1)], ["agrees", "FLAGGED"])

    def test_runs_of_one_day_are_no_repetition(self):
        self.assertEqual([agreement(figure(), told) for told in ([], runs((1, None)), runs((1, 1)), runs((1, 1), (1, 1)))],
                         ["not measured", "not measured", "one day so far", "one day so far"])

    def test_the_last_run_is_held_against_the_newest_of_another_day(self):
        told = runs((1, 100), (2, 101), (3, 102), (3, 103))
        self.assertIs(earlier(figure(), told), told[1])
        self.assertEqual(agreement(figure(share=0.25), told), "agrees")

    def test_a_figure_that_the_last_run_lacks_does_not_agree(self):
        self.assertEqual(agreement(figure(), runs((1, 1), (2, 1), (3, None))), "not measured this time")
        self.assertEqual(agreement(figure(), runs((1, 1), (2, None), (3, 1))), "agrees")

    def test_what_the_interval_could_not_fail_for_is_no_agreement(self):
        word = "nothing to tell apart"
        self.assertEqual([agreement(figure(least=5), runs((1, 1), (2, value))) for value in (0, -5, 5.1, 7)], [word, "FLAGGED", "agrees", "FLAGGED"])
        self.assertEqual([agreement(figure(least=least), runs((1, 0), (2, 0))) for least in (0, 5)], [word, word])
        self.assertEqual(agreement(figure(least=5), runs((1, 0), (1, 0))), "one day so far")

    def test_a_run_that_differed_stays_in_sight(self):
        self.assertEqual(agreement(figure(share=0.25), runs((1, 50), (2, 100), (3, 100))), "FLAGGED")
        self.assertEqual(agreement(figure(share=0.25), runs((1, 100), (1, 50))), "FLAGGED")

    def test_another_machine_counts_where_no_other_day_is_of_this_one(self):
        other = runs((1, 50), machine="another CPU, 2 CPUs, Linux 1")
        words = [agreement(figure(share=0.25), other + runs((day, value))) for day, value in ((2, 55), (2, 100), (1, 55))]
        self.assertEqual(words, ["agrees", "FLAGGED", "one day so far"])
        self.assertEqual(agreement(figure(), runs((1, 100)) + other + runs((2, 100))), "agrees")
        self.assertEqual(earlier(figure(), runs((1, 100)) + other + runs((3, 100)))["figures"], {"f": 100})
        fast, slow, unknown = ({**run, "work_ms": ms} for run, ms in zip(runs((1, 50), (2, 100), (1, 100)), (54, 84, None)))
        self.assertEqual(comparable(figure(), [fast, unknown, slow]), [unknown, slow])
        self.assertEqual(comparable(figure(), [{**fast, "work_ms": 55}, slow]), [{**fast, "work_ms": 55}, slow])

    def test_the_interval_is_told(self):
        self.assertEqual(interval(figure(share=0.25, least=3)), "±25 % or 3 ms")
        self.assertEqual(interval(figure(share=0.0, least=3)), "±3 ms")
        self.assertEqual(interval(figure(share=0.0)), "exactly")

    def test_an_absolute_part_of_percentages_is_in_points(self):
        self.assertEqual([interval(figure(unit, share=0.25, least=1)) for unit in ("%", "% of a CPU")],
                         ["±25 % or 1 points", "±25 % or 1 points of a CPU"])


if __name__ == "__main__":
    unittest.main()
