# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python3 -m unittest discover -s scripts`: measures nothing."""

import re
import unittest

from paper_rows.figures import FIGURES
from recorder_cost import gestures, records
from shared.programs import script


class Scripts(unittest.TestCase):
    def test_a_comparison_has_its_interval_and_a_warning_on_deviation(self):
        def pair(deviation, **stated):
            sides = {name: {"deviation_percent": percent} for name, percent in (("X11", 1.0), ("Wayland", deviation))}
            return {"sides": sides, "p50": {"statement": "no-difference-shown", "difference": None, "low": None, "high": None} | stated}

        of = script("compare-systems").words_of
        self.assertEqual(of(pair(2.0)), "Wayland less X11, p50: no difference shown")
        self.assertEqual(of(pair(20.0, statement="more", difference=0.5, low=0.25, high=1.0)),
                         "Wayland less X11, p50: +0.50 ms (95 % interval +0.25 to +1.00 ms): more; cumulative latency deviates over the "
                         "repeats (Wayland 20 %), so small differences are not significant")

    def test_an_arm_has_the_medians_of_its_starts_and_all_first_windows(self):
        starts = [{"first_ms": first, "latency_ms": 2 * first, "label": "start"} for first in (900.0, 300.0, 500.0)]
        self.assertEqual(script("measure-preload").figures(starts), {"first_ms": 500.0, "latency_ms": 1000.0, "firsts_ms": [900.0, 300.0, 500.0]})
        preloads = [{"programs": 2, "files": 300, "bytes": mib << 20, "fetched_bytes": mib << 19, "seconds": 5.0, "paused_seconds": 2.0} for mib in (100, 300, 200)]
        reading = script("measure-preload").of_reading(preloads)
        self.assertEqual((reading["mib"], reading["fetched_mib"], reading["files"]), (200.0, 100.0, 300))

    def test_idle_activity_of_programs_does_not_count_for_a_gesture(self):
        counters = gestures.Counters({})
        # A run of 1 ns each millisecond; a key makes 100 runs besides, a start 1000, a menu 400.
        extra = [(100, 1000), (2_000, 100), (2_300, 100), (5_000, 400)]
        ms = 1_000_000
        sums = [(at, at + sum(more for when, more in extra if at > when)) for at in range(0, 6_000, 20)]
        counters.looks = [(at * ms, whole, whole) for at, whole in sums]

        def runs(task, *events):
            played = [{"label": label, "t_ns": at * ms, "latency_ms": latency} for label, at, latency in events]
            return {label: round(runs) for label, (_, runs) in gestures.counts(played, counters, task).items()}

        editor = runs(gestures.TASKS[0], ("start (first)", 90, 500), ("typing", 2_000, 1), ("typing", 2_300, 1), ("menu", 5_000, 20), ("close", 5_400, 1))
        self.assertEqual(editor, {"start": 1000, "typing": 100, "menu": 400})
        terminal = runs(gestures.TASKS[1], ("start (first)", 90, 500), ("pointing", 2_000, 1), ("pointing", 2_300, 1), ("rest", 5_400, 1))
        self.assertEqual(terminal, {"pointing": 100})

    def test_gestures_are_in_the_table_and_each_move_changes_the_place(self):
        shown = {figure.name.partition(":")[0] for figure in FIGURES if figure.measurement == "records"}
        self.assertEqual(set(gestures.GESTURES.values()) - shown, set())
        places = re.findall(r"move = (\[.*\])", gestures.TERMINAL)
        self.assertEqual((len(places), [one for one, other in zip(places, places[1:]) if one == other]), (gestures.MOVES + 1, []))

    def test_a_kind_without_runs_of_one_program_has_no_figure(self):
        took = {"begin": [300, 2], "end": [100, 2], "never": [0, 0]}
        self.assertEqual([records.each(took, names) for names in (("begin", "end"), ("begin", "never"), ("lacking",))], [200, None, None])
