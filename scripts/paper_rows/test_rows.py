# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python3 -m unittest discover -s scripts`: measures nothing."""

import argparse
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock


from shared import machine
from shared.programs import script

from . import charts, document, extract, published, store
from .figures import FIGURES, KERNELS, MEASUREMENTS, NAMED_ONLY, Figure, Measurement

PAPERS = {"T": 12, "J": 4, "E": 9, "S": 12}


class Rows(unittest.TestCase):
    def test_every_row_of_the_four_papers_is_there_once_with_its_figures(self):
        words = "\n".join(page.read_text() for page in document.DOCUMENTS)
        wanted = [f"{letter}{number}" for letter, count in PAPERS.items() for number in range(1, count + 1)]
        self.assertEqual(sorted(re.findall(r"^## (\w+),", words, re.M)), sorted(wanted))
        places = re.findall(r"^## (\w+),.*\n\n<!-- figures (\w+) -->$", words, re.M)
        self.assertEqual([place for _, place in places], [row for row, _ in places])
        self.assertEqual({row for row, _ in places}, {figure.row for figure in FIGURES if not figure.is_absolute})

    def test_names_and_measurements_are_known(self):
        self.assertEqual({figure.measurement for figure in FIGURES}, set(MEASUREMENTS))
        names = [(figure.measurement, figure.name) for figure in FIGURES]
        self.assertEqual(sorted(set(names)), sorted(names))
        for kind in ("fork", "fork-managed", "systems", "validate"):
            self.assertLessEqual({f"vm-{kind}-{kernel}" for kernel in KERNELS}, set(MEASUREMENTS))

    def test_all_measurements_but_those_that_are_named_take_40_minutes(self):
        self.assertLessEqual(sum(one.takes_s for one in MEASUREMENTS.values() if one.name not in NAMED_ONLY), 40 * 60)
        due = script("papers").due
        names = [{one.name for one in due(argparse.Namespace(rows=rows, again=True))} for rows in ([], ["T11"])]
        self.assertEqual(("auto" in names[0], "timer" in names[0], names[1]), (False, True, {"auto"}))

    def test_a_bar_is_met_or_missed(self):
        figure = Figure("S5", "manager", "f", "-", "ms", 1, "f", "<= 10")
        self.assertEqual([figure.misses(value) for value in (10, 10.1, None)], [False, True, False])
        floor = Figure("J3", "timer", "f", "-", "%", 1, "f", ">= 95")
        self.assertEqual([floor.misses(value) for value in (95, 94.9)], [False, True])
        with unittest.mock.patch.object(store, "runs", return_value=[{"figures": {"f": 5}}, {"figures": {"f": 12.25}}, {"figures": {}}][:2]):
            self.assertEqual((document.here(figure), document.spread(figure)), ("12.2 ms (bar <= 10: **MISSED**)", "5.0 to 12.2 (2)"))

    def test_a_test_that_is_not_there_is_reported(self):
        words = "`evaluate` (scripts/nowhere.rs); `every_incident_gives_its_verdict` (tests/golden.rs); `no_such` (tests/golden.rs)"
        self.assertEqual(list(document.missing_tests(words)), ["no such test: scripts/nowhere.rs::evaluate", "no such test: tests/golden.rs::no_such"])


class Kept(unittest.TestCase):
    def test_figures_are_kept_of_many_runs_and_charts_of_the_last(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(store, "RESULTS", pathlib.Path(folder)):
            for number in range(store.RUNS_MAX + 1):
                store.keep("system", {"rows": [{"beside": "build", "arm": "managed", "times_unloaded": number, "median_s": number}]}, {"date": f"{number}"})
            kept = store.kept("system")
        self.assertEqual([run["figures"]["beside a build, managed"] for run in kept["runs"]], list(range(1, store.RUNS_MAX + 1)))
        self.assertEqual(kept["charts"]["system.svg"], {"unmanaged": [None] * 3, "managed": [None, store.RUNS_MAX, None]})

    def test_a_file_that_is_not_newer_than_what_is_kept_is_not_taken_up(self):
        measurement = MEASUREMENTS["vm-pagein"]
        with unittest.mock.patch.object(store, "runs", return_value=[]):
            _, where = store.written(measurement)
        self.assertRegex(where["machine"], r"^.+, 2 CPUs, guest of the test bed .*, Linux 6\.")
        for runs, taken in (([where], False), ([where | {"date": "2999"}], False), ([where | {"commit": "another"}], True)):
            with unittest.mock.patch.object(store, "runs", return_value=runs):
                self.assertEqual(store.written(measurement) is not None, taken)

    def test_figures_of_committed_results_are_found(self):
        with unittest.mock.patch.object(store, "runs", return_value=[]):
            read = {one.name: store.written(one)[0] for one in MEASUREMENTS.values() if one.file}
        ratio = re.compile(r" / ")  # of nothing there is none
        self.assertEqual([one.name for one in FIGURES if one.measurement in read and not ratio.search(one.expression)
                          and extract.evaluate(one.expression, read[one.measurement]) is None], [])

    def test_the_commit_is_that_of_the_begin_of_a_run(self):
        command = "scripts/any FILE"
        commits = iter(("begin", "end"))

        def run(words, _limit):
            pathlib.Path(words[-1]).write_text("{}")
            return next(commits) and (0, "")

        with unittest.mock.patch.object(store, "commit_of_program", side_effect=lambda: next(commits)), unittest.mock.patch.object(store, "run", side_effect=run):
            self.assertEqual(store.measure(sys.executable, Measurement("one", command, 1))[1]["commit"], "begin")

    def test_a_program_that_differs_from_its_commit_is_dirty(self):
        for status, words in (("", "1111111"), (" M crates/tipme/src/main.rs", "1111111-dirty")):
            with unittest.mock.patch.object(machine, "git", side_effect=lambda verb, *_, status=status: {"rev-parse": "1111111", "status": status}[verb]):
                self.assertEqual(machine.commit_of_program(), words)

    def test_a_section_has_its_tables_bullets_and_conditions(self):
        text = ("# Costs\n\n## A compile\n\n2026-01-01, commit 1111111, a, 1 CPUs.\n\n## Records and gestures\n\n2026-01-02, commit 2222222, b, 2 CPUs.\n\n"
                "Load average 5.5 at the begin, 0.1 at the end\n\n| switch | `sched_switch` | 151 (140 to 160) |\n| fork | | did not run |\n\n- added: **0.5** (bar 1)\n")
        found = store.overhead(text, "Records and gestures")
        self.assertEqual({key: found[key] for key in found if key != "rows"}, {"when": "2026-01-02", "commit": "2222222", "machine": "b, 2 CPUs", "host_load": 5.5, "bullets": {"added": "0.5"}})
        self.assertEqual([extract.evaluate(f"rows[{kind}][1]", found) for kind in ("switch", "fork", "exec")], [151, None, None])


class Expressions(unittest.TestCase):
    def test_paths_find_keys_places_and_rows_or_nothing(self):
        document = {"rows": [["hog", "71.4, 7.3"], ["fork", "-"]], "a": {"b": [4]}, "loads": [{"x": "1", "y": "2", "z": 3}], "bullets": {"a / b": 8}}
        expected = {"rows[0=hog][1]": 71.4, "rows[0=fork][1]": None, "rows[0=storm][1]": None, "a.b[0]": 4, "a.c": None, "a.b[7]": None,
                    "loads[x=1&y=2].z": 3, "loads[x=2].z": None, "bullets[a / b] / a.b[0] * 100": 200, "a.b[0] / nothing": None, "nothing + 1": None, "count(rows)": 2}
        self.assertEqual({words: extract.evaluate(words, document) for words in expected}, expected)

    def test_the_least_of_a_column_is_that_of_all_rows(self):
        self.assertEqual(extract.evaluate("least(1)", {"rows": [["window", "least"], ["1", "1.70"], ["2", "1.65 %"], ["3", "1.60 %"]]}), 1.6)

    def test_a_late_wakeup_has_a_culprit_where_something_else_had_the_cpu(self):
        causes = ("thread", "outside", "unexplained", "rest", "idle-exit", "own", "timer")
        outliers = [{"budget": [{"cause": cause}, {"cause": "thread"}]} for cause in causes] + [{"budget": None}]
        self.assertEqual([extract.attributed_share({"outliers": one}) for one in (outliers, [])], [25, None])

    def test_stolen_time_is_counted_by_its_holder(self):
        residents = [{"kind": kind, "share_of_stolen": share} for kind, share in (("hypervisor", 0.25), ("thread", 0.5), ("hypervisor", 0.125))]
        shares = [extract.held_by({"named": named, "residents": residents}, kind) for named, kind in (({}, "hypervisor"), ({}, "device"), (None, "device"))]
        self.assertEqual(shares, [37.5, 0, None])

    def test_the_limits_of_the_validation_allow_for_what_others_had(self):
        trial = {"injected_ms_min": 0, "injected_ms_max": 10, "p50_us_max": 35, "p90_us_max": 100,
                 "errors": {"p50_us": 40, "p90_us": 90}, "taken": {"others_share": 0.0, "steal_share": 0.002}}
        check = {"difference_points": -1.5, "difference_points_max": 1, "steal_share": 0.0}
        document = {"validation": {"trials": [trial], "checks": [check]}}
        self.assertEqual(extract.within_limits(document), 50)
        trial["taken"]["others_share"] = 0.1
        self.assertIsNone(extract.within_limits(document))

    def test_marks_are_counted_with_those_without_a_hitch(self):
        document = {"hitches": [{"marked_after_s": after} for after in (3.0, None, 5.0, 9.0)], "false_marks": [{}], "wall_s": 1200, "cpu": {"own_percent": 0.125, "children_percent": 0.25}}
        values = [extract.evaluate(figure.expression, document) for figure in FIGURES if figure.row == "T11"]
        self.assertEqual(values, [75, 3, 5.0, 0.375])
        none = document | {"hitches": [{"marked_after_s": None}]}
        self.assertEqual([of(none) for of in (extract.marked_share, extract.marked_after)], [0, None])


class Charts(unittest.TestCase):
    def test_every_chart_has_the_paper_s_panel_beside_ours_and_a_legend_that_fits(self):
        wanted, words = {chart.file for chart in published.CHARTS}, "\n".join(page.read_text() for page in document.DOCUMENTS)
        self.assertEqual({file for file in wanted if f"(../results/papers/{file})" in words}, wanted)
        for chart in published.CHARTS:
            panels = chart.panels(store.kept(chart.measurement)["charts"][chart.file])
            self.assertTrue(panels[0]["title"].startswith("paper") and len(panels) > 1 and all(points for _, points in panels[0]["series"]), chart.file)
            for panel in panels:
                self.assertLessEqual(charts.legend_width([name for name, _ in panel["series"]]), charts.WIDTH - charts.LEFT + charts.GAP, chart.file)

    def test_the_paper_s_histograms_have_all_callbacks_of_ten_seconds(self):
        counts = {name: sum(bins.values()) for name, bins in published.TIMER.items()}
        self.assertEqual([(name, count) for name, count in counts.items() if not 9_990 <= count <= 10_020], [])
        self.assertEqual([point[1] for point in published.added([2, 1])], [1000, 3000])
