# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python3 -m unittest discover -t scripts -s scripts/paper_rows`: no machine is measured."""

import argparse
import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

import record_cost

from . import charts, document, extract, published, rows, store
from .measurements import ALL, BY_NAME, KERNELS, records
from .model import Figure, Measurement

PAPERS = {"T": 12, "J": 4, "E": 9, "S": 12}


class Kept(unittest.TestCase):
    def test_charts_are_kept_of_the_last_run_and_figures_of_many(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(store, "RESULTS", pathlib.Path(folder)):
            for number in range(store.RUNS_MAX + 1):
                store.keep("one", {"date": f"2026-01-{number + 1:02}", "figures": {"f": number}, "charts": {"f.svg": [number]}})
            kept = store.runs("one")
        self.assertEqual([run["figures"]["f"] for run in kept], list(range(1, store.RUNS_MAX + 1)))
        self.assertEqual([run["charts"] for run in kept], [{}] * (store.RUNS_MAX - 1) + [{"f.svg": [store.RUNS_MAX]}])


    def test_a_file_that_is_not_newer_than_what_is_kept_is_not_taken_up(self):
        kept = [{"date": date, "commit": commit} for date, commit in (("2026-01-01 10:00", "1111111"), ("2026-01-02 10:00", "2222222"))]
        with unittest.mock.patch.object(store, "runs", return_value=kept):
            told = [store.is_kept("one", {"date": date, "commit": commit}) for date, commit in (
                ("2026-01-01 10:00", "1111111"), ("2026-01-01 11:00", "3333333"), ("2026-01-02 10:00", "2222222"), ("2026-01-02 11:00", "2222222"))]
        self.assertEqual(told, [True, True, True, False])

    def test_runs_are_kept_in_the_order_of_time(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(store, "RESULTS", pathlib.Path(folder)):
            for day in (2, 1, 3):
                store.keep("one", {"date": f"2026-01-0{day}", "charts": {"f.svg": day}})
            self.assertEqual([(run["date"][-1], run["charts"]) for run in store.runs("one")], [("1", {}), ("2", {}), ("3", {"f.svg": 3})])

    def test_the_commit_is_that_of_the_begin_of_a_run(self):
        script = "import json, sys; print('{{}}', file=open(sys.argv[2], 'w'))"
        commits = iter(("begin", "end"))
        with unittest.mock.patch.object(store, "commit", side_effect=lambda: next(commits)), unittest.mock.patch.object(store, "work_ms"):
            _, told = store.measure(sys.executable, Measurement("one", ("-c", script, "any", "{json}"), takes_s=1))
        self.assertEqual(told["commit"], "begin")

    def test_a_program_that_differs_from_its_commit_is_told(self):
        for status, words in (("", "1111111"), (" M crates/tipme/src/main.rs\n", "1111111-dirty")):
            with unittest.mock.patch.object(store, "git", side_effect=lambda verb, *_, status=status: {"rev-parse": "1111111\n", "status": status}[verb]):
                self.assertEqual(store.commit(), words)

    def test_a_guest_is_kept_with_its_host_and_its_kernel(self):
        told = store.of_file(BY_NAME["vm-system"])[1]
        self.assertRegex(told["machine"], r"^.+, 2 CPUs, guest of the test bed .*, Linux 6\.")

    def test_all_kept_runs_have_a_machine_of_that_form(self):
        machines = {run["machine"] for measurement in ALL for run in store.runs(measurement.name)}
        self.assertEqual([machine for machine in machines if not re.fullmatch(r".+, \d+ CPUs, .+, Linux \S+", machine)], [])


class Extracts(unittest.TestCase):
    def test_a_cell_is_the_number_at_its_begin_or_nothing(self):
        table = {"rows": [["-12.7", "125, 7.3", "-", "", "1.60 %"]]}
        self.assertEqual([extract.cell(0, column)(table) for column in range(5)], [-12.7, 125, None, None, 1.6])

    def test_a_cell_is_found_by_the_name_of_its_row(self):
        table = {"rows": [["beside", "p50 ms"], ["hog", "71.4"], ["fork", "-"]]}
        self.assertEqual([extract.row_cell(name, 1)(table) for name in ("hog", "fork", "storm")], [71.4, None, None])

    def test_the_least_of_a_column_is_that_of_all_rows(self):
        table = {"rows": [["window", "least"], ["1, 10 s", "1.70"], ["2, 10 s", "1.65 %"], ["3, 10 s", "1.60 %"]]}
        self.assertEqual(extract.least(1)(table), 1.6)


class Document(unittest.TestCase):
    def test_the_range_of_all_runs_is_told_with_their_number(self):
        figure = Figure("f", "timer", None, "ms")
        for values, words in ((((5, 2.25, None), "2.2 to 5.0 (2)")), ((1, 1), "1.0 (2)"), ((), "")):
            with unittest.mock.patch.object(store, "runs", return_value=[{"figures": {"f": value}} for value in values]):
                self.assertEqual(document.spread(figure), words)


    def test_the_machine_of_a_run_is_told_in_short(self):
        self.assertEqual([document.short(machine) for machine in ("A CPU, 2 CPUs, virtual machine, Linux 6.18-a", "B, 1 CPUs, guest of the bed (emulated, 1 MiB), Linux 6.1")],
                         ["A CPU, Linux 6.18-a", "B, guest, Linux 6.1"])

    def test_what_the_last_run_lacks_is_shown_so(self):
        figure, told = Figure("f", "timer", None, "ms"), {"commit": "1111111", "machine": "a", "load_average": None}
        kept = [{**told, "date": f"2026-01-0{day}", "figures": {"f": value}} for day, value in ((1, 5), (2, None))]
        with unittest.mock.patch.object(store, "runs", return_value=kept):
            self.assertIn("| - | 5.0 ms | 5.0 (1) | not measured this time |", document.figure_row(rows.ROWS[0], figure))

    def test_a_figure_that_a_run_cannot_have_says_why(self):
        figure = Figure("between", "timer", None, "s", needs=("events", 2))
        told = {"date": "2026-01-01", "commit": "1111111", "machine": "a", "load_average": None}
        for events, words in ((1, "nothing to measure: it takes 2, there were 1"), (2, "not measured"), (None, "not measured")):
            with unittest.mock.patch.object(store, "runs", return_value=[{**told, "figures": {"between": None, "events": events}}]):
                self.assertIn(f"| {words} |", document.figure_row(rows.ROWS[0], figure))

    def test_what_a_figure_needs_is_a_figure_of_the_same_measurement(self):
        names = {(figure.measurement, figure.name) for row in rows.ROWS for figure in row.figures}
        self.assertEqual([figure.name for row in rows.ROWS for figure in row.figures if figure.needs and (figure.measurement, figure.needs[0]) not in names], [])

    def test_conditions_are_told_as_far_as_a_script_tells_them(self):
        run = {"load_average": [1.25], "took_s": None, "speed": "a key, unloaded 5.0 ms"}
        self.assertEqual(document.state(run), "load average 1.2, speed of the guest: a key, unloaded 5.0 ms")
        self.assertEqual(store.of_file(BY_NAME["vm-system"])[1]["speed"].partition(" unloaded ")[0], "the script,")

    def test_a_bar_is_met_or_missed_with_the_cause_that_is_told(self):
        figure, notes = Figure("f", "task-editor", None, "%", bar=3), "deviation 4.0 % of the mean; 90 % of the differences: waiting"
        for number, words in ((3, "met, 3.0 %."), (4, f"**MISSED**, 4.0 %. Cause, as the measurement tells it: {notes}. Meanwhile: load average 0.2."), (None, "not measured.")):
            with unittest.mock.patch.object(store, "runs", return_value=[{"figures": {"f": number}, "notes": notes, "load_average": [0.21]}]):
                self.assertEqual(document.bar_words(figure), f"f, bar 3 % at most: {words}")
        self.assertEqual({row.id for row in rows.ROWS for figure in row.figures if figure.bar}, {"E6", "S5", "T11"})

    def test_a_bar_may_be_the_least(self):
        figure = Figure("f", "timer", None, "%", floor=95)
        for number, words in ((95, "met, 95.0 %."), (94, "**MISSED**, 94.0 %. Cause, as the measurement tells it: none. Meanwhile: load average 0.2.")):
            with unittest.mock.patch.object(store, "runs", return_value=[{"figures": {"f": number}, "load_average": [0.21]}]):
                self.assertEqual(document.bar_words(figure), f"f, bar 95 % at least: {words}")
        self.assertEqual({row.id for row in rows.ROWS for figure in row.figures if figure.floor}, {"J3", "T11"})

    def test_a_bar_that_a_guest_missed_is_told_and_none_that_shows_nothing(self):
        bars = [{"bar": "a", "met": False, "seen": "9 of 8 ms"}, {"bar": "b", "met": False, "seen": "", "unclear": True}, {"bar": "c", "met": True, "seen": ""}]
        with unittest.mock.patch.object(store, "of_file", return_value=({"title": "Typing", "bars": bars}, {})):
            self.assertEqual(document.missed_in_guest("vm-typing"), ["Typing, a: **MISSED**, 9 of 8 ms."])
        self.assertEqual(document.missed_in_guest("timer"), [])

    def test_a_command_is_told_as_it_is_typed(self):
        told = {name: document.command(BY_NAME[name]) for name in ("idle", "typing", "systems", "task-impress", "vm-typing")}
        self.assertEqual(told, {"idle": "`tipme idle -d 30s --json FILE`", "systems": "`scripts/compare-systems --json FILE`",
                                "typing": "`setsid -w tipme bench typing --load 0,10,20 --managed --sessions 0 --keys 120 --json FILE`",
                                "task-impress": "`tipme measure impress --repeat 5 --json FILE --svg DIR`", "vm-typing": "`make measure-vm VM=\"--only typing\"`"})

    def test_a_measurement_that_keeps_plots_draws_them(self):
        self.assertEqual([one.name for one in ALL if bool(one.plots) != ("{svg}" in one.command)], [])

    def test_a_missed_bar_has_a_cause_in_the_document(self):
        self.assertNotIn("tells it: none", document.text())

    def test_the_head_of_a_table_names_all_machines(self):
        told = [{"date": "2026-01-01 10:00", "commit": "1111111-dirty", "machine": machine, "load_average": [1.0]} for machine in ("b", "a")]
        kept = {"timer": told[:1], "idle": told[1:]}
        with unittest.mock.patch.object(store, "runs", side_effect=lambda name: kept.get(name, [])):
            self.assertTrue(document.conditions().startswith("2026-01-01, commit 1111111-dirty, a; b; load average"))

    def test_an_interval_as_wide_as_the_figure_is_told_so(self):
        figure, told = Figure("f", "timer", None, "%", least=5), {"commit": "1111111", "machine": "a", "load_average": [0.5], "figures": {"f": 1}}
        with unittest.mock.patch.object(store, "runs", return_value=[{**told, "date": f"2026-01-0{day}"} for day in (1, 2)]):
            self.assertIn("nothing to tell apart |", document.figure_row(rows.ROWS[0], figure))


class Rows(unittest.TestCase):
    def test_every_chart_has_the_paper_s_beside_ours(self):
        drawn = {chart.file: chart.panels(document.drawn(chart)[0]) for row in rows.ROWS for chart in row.charts}
        self.assertEqual([file for file, panels in drawn.items() if not panels[0]["title"].startswith("paper") or len(panels) < 2], [])
        self.assertEqual([file for file, (paper, *_) in drawn.items() if not all(points for _, points in paper["series"])], [])

    def test_a_legend_ends_within_its_panel(self):
        drawn = {chart.file: chart.panels(document.drawn(chart)[0]) for row in rows.ROWS for chart in row.charts}
        wide = [charts.legend_width([name for name, _ in panel["series"]]) for panels in drawn.values() for panel in panels]
        self.assertEqual([one for one in wide if one > charts.WIDTH - charts.LEFT + charts.GAP], [])
        self.assertGreater(charts.legend_width(5 * ["Pentium 2, NT5 fixed"]), charts.WIDTH)

    def test_the_paper_s_histograms_have_all_callbacks_of_ten_seconds(self):
        counts = {name: sum(bins.values()) for name, bins in published.TIMER.items()}
        self.assertEqual([(name, count) for name, count in counts.items() if not 9_990 <= count <= 10_020], [])
        self.assertEqual([point[1] for point in published.added([2, 1])], [1000, 3000])

    def test_every_row_of_the_four_papers_is_there_once(self):
        wanted = [f"{letter}{number}" for letter, count in PAPERS.items() for number in range(1, count + 1)]
        self.assertEqual([row.id for row in rows.ROWS], wanted)

    def test_every_row_has_a_figure_a_test_or_says_why_not(self):
        self.assertEqual([row.id for row in rows.ROWS if not (row.figures or row.tests or row.words)], [])

    def test_figures_have_names_of_their_own_and_measurements_that_there_are(self):
        figures = [figure for row in rows.ROWS for figure in row.figures]
        self.assertEqual({figure.measurement for figure in figures} - set(BY_NAME), set())
        names = [(figure.measurement, figure.name) for figure in figures if not BY_NAME[figure.measurement].file]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_what_a_remedy_costs_stands_beside_what_it_gives(self):
        costs = {row.id: len([figure for figure in row.figures if "lost" in figure.name]) for row in rows.ROWS if any("lost" in figure.name for figure in row.figures)}
        self.assertEqual(costs, {"T9": 4, "S6": 1, "S10": 3})

    def test_what_the_paper_has_no_figure_for_stands_beside_none(self):
        paper = {figure.name: figure.paper for row in rows.ROWS for figure in row.figures}
        starving = [name for name in paper if name.startswith("longest, ") and paper[name] != "-"]
        self.assertEqual((starving, paper["scrolling, load 20, p50, unmanaged"], paper["slowdown of a compile of tipme-command"]), ([], "-", "-"))

    def test_conditions_that_differ_from_the_paper_s_are_told(self):
        told = {"J1": "highest real-time priority", "J2": "highest real-time priority", "E6": "cut to", "E7": "caches are cold", "S1": "`--type cpu`", "S6": "`--type cpu`",
                "S10": "read off figure 2", "T7": "the server's own"}
        self.assertEqual([row.id for row in rows.ROWS if told.get(row.id, "") not in row.words], [])

    def test_all_measurements_but_those_that_are_named_take_40_minutes(self):
        self.assertLessEqual(sum(measurement.takes_s for measurement in ALL if not measurement.named_only), 40 * 60)

    def test_a_long_measurement_is_made_only_where_its_row_is_named(self):
        wanted = script("papers").wanted
        names = [{one.name for one in wanted(argparse.Namespace(rows=rows))} for rows in ([], ["T11"])]
        self.assertEqual(("auto" in names[0], "timer" in names[0], names[1]), (False, True, {"auto"}))

    def test_both_kernels_stand_side_by_side_with_the_same_figures(self):
        for row, kind in (("T10", "fork"), ("E8", "systems")):
            [figures] = [one.figures for one in rows.ROWS if one.id == row]
            told = [[figure.name.replace(kernel, "") for figure in figures if figure.measurement == f"vm-{kind}-{kernel}"] for kernel in KERNELS]
            self.assertEqual((told[0] != [], told[0]), (True, told[1]))

    def test_figures_of_committed_results_are_found(self):
        read = {measurement.name: store.of_file(measurement)[0] for measurement in ALL if store.is_written(measurement)}
        figures = [figure for row in rows.ROWS for figure in row.figures if figure.measurement in read]
        self.assertEqual([figure.name for figure in figures if figure.of(read[figure.measurement]) is None], [])

    def test_what_another_script_wrote_is_taken_up_once(self):
        papers, one = script("papers"), BY_NAME["vm-pagein"]
        with unittest.mock.patch.object(store, "runs", return_value=[]):
            found = papers.not_taken_up()
        self.assertEqual(set(found), {measurement.name for measurement in ALL if store.is_written(measurement)})
        with unittest.mock.patch.object(store, "runs", side_effect=lambda name: [found[name]]):
            self.assertEqual(papers.not_taken_up(), {})
        self.assertEqual(set(found[one.name]["figures"]), {figure.name for row in rows.ROWS for figure in row.figures if figure.measurement == one.name})


class Extraction(unittest.TestCase):
    def test_what_is_not_there_is_none_and_no_error(self):
        for of in (extract.at("a", 0), extract.load("storm", "p50_ms"), extract.ratio(extract.at("a"), extract.at("b")),
                   extract.turn("x", "figures", "p50_ms")):
            self.assertIsNone(of({"loads": [], "arms": []}))

    def test_a_late_wake_up_has_a_culprit_where_somebody_had_the_cpu(self):
        causes = ("thread", "outside", "unexplained", "rest", "idle-exit", "own", "timer")
        outliers = [{"budget": [{"cause": cause}, {"cause": "thread"}]} for cause in causes] + [{"budget": None}]
        self.assertEqual(extract.attributed_share({"outliers": outliers}), 25)
        self.assertIsNone(extract.attributed_share({"outliers": []}))

    def test_what_wake_ups_were_late_by_is_told_beside_other_notes(self):
        outliers = [{"budget": [{"cause": cause}]} for cause in ("timer", "thread", "thread")] + [{"budget": None}]
        notes = [script("papers").notes_of({"outliers": late, "notes": ["a"]}) for late in (outliers, [])]
        self.assertEqual(notes, ["a; late by thread 2, timer 1, not recorded 1", "a; late by nothing"])

    def test_stolen_time_is_told_by_who_had_it(self):
        residents = [{"kind": kind, "share_of_stolen": share} for kind, share in (("hypervisor", 0.25), ("thread", 0.5), ("hypervisor", 0.125))]
        shares = [extract.held_by(kind)({"named": {}, "residents": residents}) for kind in ("hypervisor", "device")]
        self.assertEqual((shares, extract.held_by("device")({"named": None, "residents": residents})), ([37.5, 0], None))

    def test_the_limits_of_the_validation_allow_for_what_others_had(self):
        trial = {"method": "gaps", "injected_ms_min": 0, "injected_ms_max": 10, "p50_us_max": 35, "p90_us_max": 100,
                 "errors": {"p50_us": 40, "p90_us": 90}, "taken": {"others_share": 0.0, "steal_share": 0.002}}
        check = {"difference_points": -1.5, "difference_points_max": 1, "steal_share": 0.0}
        self.assertEqual(extract.within_limits({"validation": {"trials": [trial], "checks": [check]}}), 50)


def script(name):
    """A program of scripts as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(store.ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Systems(unittest.TestCase):
    def pair(self, deviation, **told):
        sides = {name: {"deviation_percent": percent} for name, percent in (("X11", 1.0), ("Wayland", deviation))}
        return {"sides": sides, "p50": {"statement": "no-difference-shown", "difference": None, "low": None, "high": None} | told}

    def test_the_verdict_of_a_comparison_is_told_with_its_interval_and_whether_repeats_were_steady(self):
        of = script("compare-systems").words_of
        self.assertEqual(of(self.pair(2.0)), "Wayland less X11, p50: no difference shown")
        self.assertEqual(of(self.pair(20.0, statement="more", difference=0.5, low=0.25, high=1.0)),
                         "Wayland less X11, p50: +0.50 ms (95 % interval +0.25 to +1.00 ms): more; cumulative latency deviates over the "
                         "repeats (Wayland 20 %), so small differences cannot be told")

    def test_notes_of_a_script_stand_below_its_row(self):
        self.assertEqual([row.id for row in rows.ROWS if row.id in document.NOTED], list(document.NOTED))


class Auto(unittest.TestCase):
    def test_figures_are_of_hitches_that_were_marked_and_of_marks_without_one(self):
        told = {"hitches": [{"marked_after_s": after} for after in (3.0, None, 5.0, 9.0)], "false_marks": [{}], "wall_s": 1200,
                "cpu": {"own_percent": 0.125, "children_percent": 0.25}}
        self.assertEqual([of(told) for of in (extract.marked_share, extract.marked_after, extract.false_marks, extract.recorder_cpu)], [75, 5.0, 3, 0.375])
        none = told | {"hitches": [{"marked_after_s": None}]}
        self.assertEqual([of(none) for of in (extract.marked_share, extract.marked_after)], [0, None])


class Preload(unittest.TestCase):
    def test_an_arm_has_the_medians_of_its_starts_and_all_first_windows(self):
        figures = script("measure-preload").figures
        starts = [{"first_ms": first, "latency_ms": 2 * first, "label": "start"} for first in (900.0, 300.0, 500.0)]
        self.assertEqual(figures(starts), {"first_ms": 500.0, "latency_ms": 1000.0, "firsts_ms": [900.0, 300.0, 500.0]})

    def test_what_was_read_is_told_in_medians_and_mebibytes(self):
        told = [{"programs": 2, "files": 300, "bytes": mib << 20, "fetched_bytes": mib << 19, "seconds": 5.0, "paused_seconds": 2.0} for mib in (100, 300, 200)]
        reading = script("measure-preload").of_reading(told)
        self.assertEqual((reading["mib"], reading["fetched_mib"], reading["files"]), (200.0, 100.0, 300))


class RecordCost(unittest.TestCase):
    def test_a_table_is_read_by_the_first_cell_of_its_rows(self):
        above = "# Costs\n\n## A compile\n\n2026-01-01, commit 1111111, a, 1 CPUs.\n\n## Records and gestures\n\n2026-01-02, commit 2222222, b, 2 CPUs.\n\nLoad average 5.5 at the begin, 0.1 at the end; a fixed piece of work took 64 ms.\n\n7 rounds:\n\n"
        told = records(above + "| record | programs | ns |\n|---|---|---|\n| switch | `sched_switch` | 151 (140 to 160) |\n| fork | | did not run |\n")
        self.assertEqual({key: told[key] for key in told if key != "rows"}, {"when": "2026-01-02", "commit": "2222222", "machine": "b, 2 CPUs", "host_load": 5.5, "work_ms": 64})
        self.assertEqual([extract.numbered(kind, 1)(told) for kind in ("switch", "fork", "exec")], [151, None, None])

    def test_what_programs_do_while_nobody_does_anything_is_not_the_gesture_s(self):
        counters = record_cost.Counters({})
        # A run of 1 ns each millisecond; a key makes 100 runs besides, a start 1000, a menu 400.
        extra = [(100, 1000), (2_000, 100), (2_300, 100), (5_000, 400)]
        ms = 1_000_000
        counters.looks = [(at * ms, sum_, sum_) for at in range(0, 6_000, 20)
                          for sum_ in [at + sum(more for when, more in extra if at > when)]]
        event = lambda label, at, latency: {"label": label, "t_ns": at * ms, "latency_ms": latency}  # noqa: E731
        events = [event("start (first)", 90, 500), event("typing", 2_000, 1), event("typing", 2_300, 1), event("menu", 5_000, 20), event("close", 5_400, 1)]
        runs = {label: round(runs) for label, (_, runs) in record_cost.counts(events, counters, record_cost.TASKS[0]).items()}
        self.assertEqual(runs, {"start": 1000, "typing": 100, "menu": 400})
        moves = [event("start (first)", 90, 500), event("pointing", 2_000, 1), event("pointing", 2_300, 1), event("rest", 5_400, 1)]
        runs = {label: round(runs) for label, (_, runs) in record_cost.counts(moves, counters, record_cost.TASKS[1]).items()}
        self.assertEqual(runs, {"pointing": 100})

    def test_the_gestures_are_those_of_the_table_and_each_move_goes_to_another_place(self):
        shown = {figure.name.partition(":")[0] for row in rows.ROWS if row.id == "T7" for figure in row.figures if figure.measurement == "records"}
        self.assertEqual(set(record_cost.GESTURES.values()) - shown, set())
        places = re.findall(r"move = (\[.*\])", record_cost.TERMINAL)
        self.assertEqual((len(places), [one for one, other in zip(places, places[1:]) if one == other]), (record_cost.MOVES + 1, []))

    def test_a_kind_of_which_one_program_did_not_run_has_no_figure(self):
        took = {"begin": [300, 2], "end": [100, 2], "never": [0, 0]}
        self.assertEqual([record_cost.each(took, names) for names in (("begin", "end"), ("begin", "never"), ("lacking",))], [200, None, None])


if __name__ == "__main__":
    unittest.main()
