# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rows of the four papers: what each had, what it measured, and what stands for it here."""

from . import published
from .extract import (arm_histograms, at, attributed_share, beside, cell, cumulative, echo, false_marks, held_by, histograms, least, levels, load, late_wake_ups, longest_of,
                      marked_after, marked_share, mechanism, named, numbered, ratio, recorder_cpu, row_cell, scaled, short_share, tick_ms, timer_bins, trial,
                      turn, utilisation, within_limits)
from .measurements import KERNELS
from .model import Chart, Figure, Row

TIPME, RECORD, ANALYSIS, LAB = "crates/tipme/tests/", "crates/kernel/src/", "crates/analysis/tests/", "crates/lab/tests/"

TIPME_ROWS = [
    Row("T1", "state of every task, and on what it is blocked", "§3.2, table 1",
        tests=("crates/analysis/src/explain/properties.rs::every_nanosecond_of_a_thread_is_in_one_state",
               TIPME + "recorder.rs::the_task_walk_names_living_and_blocked", "crates/report/tests/page.rs::all_programs_are_shown_with_their_states_and_what_was_started"),
        words="The page of an incident, and the picture of it, show the threads that the verdict is about, 24 more by how long they ran or were ready to, each with its states and a priority "
              "that is not the usual one, and what was started meanwhile; what is left out is said. The paper's figures 2 to 5 are such pictures; one of ours, of an incident that comes "
              "along: [tasks.svg](results/papers/tasks.svg) (`tipme report tests/golden/cpu-hogs.tipme -o tasks.svg`)."),
    Row("T2", "who holds the contested resource", "§3.7, §4.1",
        tests=(ANALYSIS + "devices.rs::a_page_in_names_its_file_and_who_evicted_it", TIPME + "recorder.rs::writers_are_counted_on_demand_only",
               RECORD + "detail.rs::a_detail_lowers_its_own_limit_only", TIPME + "switching.rs::who_may_mark_has_a_running_recorder_record_more_for_a_time"),
        words="A running recorder records more for a time: `tipme record --detail locks --for=600`."),
    Row("T3", "exec information past the exit", "§3.4",
        tests=(TIPME + "privacy.rs::command_lines_of_processes_that_ended_are_told_to_whose_they_are",
               TIPME + "switching.rs::what_bounds_the_memory_of_ended_processes_is_told")),
    Row("T4", "display-server tap, client to process", "§3.3, §3.5.2",
        tests=(TIPME + "display.rs::typed_keys_are_seen_as_events_and_never_as_text", TIPME + "truth.rs::latencies_agree_with_the_clients_own_under_load")),
    Row("T5", "hot keys, also on the console; description", "§3.5.1",
        tests=(TIPME + "agent.rs::each_key_reaches_the_recorder", TIPME + "display.rs::stopped_keys_leave_no_input_records",
               TIPME + "switching.rs::nothing_is_recorded_while_it_is_paused"),
        words="On a real keyboard and console: [vm.md](vm.md), rows *hot key*."),
    Row("T6", "30 to 40 s in bounded memory", "§3.2",
        tests=(RECORD + "memory.rs::forty_seconds_are_held_of_25000_events_in_32_mib_and_of_200000_in_128",)),
    Row("T7", "cost of recording", "§3.6, table 2",
        figures=(
            Figure("added to a round through a pipe (four scheduler events)", "recorder", at("added_us"), "µs", digits=2),
            Figure("of what ftrace adds for the same", "recorder", scaled(at("of_ftrace"), 100), "%", "-"),
            Figure("slowdown of a compile of tipme-command", "compile", at("percent"), "%", least=2, digits=2),
            *(Figure(f"a record: {kind}", "records", numbered(kind, 1), "ns", digits=0) for kind in (
                "switch", "waking", "waking after a long wait, with the wait's stack", "migrate", "message sent (X11, one rectangle)",
                "fork", "exec", "exit")),
            *(Figure(f"{gesture}: {what}", "records", numbered(gesture, column), unit, paper if unit == "%" else "-", share=0.5, least=1, digits=2)
              for gesture, paper in (("a window opens", "-"), ("a key is typed", "17 % of 2.0 ms (xterm)"), ("a menu opens", "1.1 % of 470 ms (Netscape)"),
                                    ("the pointer moves", "27 % of 0.3 ms (the X server)"))
              for what, column, unit in (("recording, of the latency", 5, "%"), ("latency with the recorder less without", 2, "ms"))),
        ),
        words="The paper has the cost of an event of the user, 80 to 5100 µs: beside it stand the gestures, and nothing beside a round, a record and a compile. Its "
              "third event, a move of the mouse, is the server's own, which draws the pointer at another place; here it is one over a terminal whose program shows "
              "where it is, from the move to that: a server without a screen draws no pointer. Each verdict tells the recorder's own share of the very delay (`overhead_ms`). All kinds of records, the intervals and what the machine "
              "had to do meanwhile: [overhead.md](overhead.md), *Records and gestures*."),
    Row("T8", "problem interval, state split, cause named", "§3.3, §3.4",
        tests=(TIPME + "truth.rs::latencies_agree_with_the_clients_own_on_an_idle_machine", "tests/golden.rs::every_incident_gives_its_verdict",
               ANALYSIS + "competition.rs::newborn_processes_are_told_with_their_age")),
    Row("T9", "page-in starved by page-out", "§4.1.1, §4.1.2, figure 4",
        figures=(
            Figure("longest interval, no children", "memory", load("no children", "max_ms"), "ms", "100 ms, ideally (§4.1.1)", share=0.5, least=50),
            Figure("longest interval, 4 children", "memory", load("4 children", "max_ms"), "ms", "over 8 s (figure 4)", share=0.5),
            Figure("over 150 ms, 4 children", "memory", scaled(load("4 children", "long_share"), 100), "%", "begins with 4 children", least=20),
            Figure("wait for a page, p95, unmanaged", "vm-pagein", cell(2, 2), "ms", "over 8 s at most, before", share=0.5),
            Figure("the same, managed", "vm-pagein", cell(3, 2), "ms", "0.37 s at most, after", share=0.5, least=5),
            *(Figure(f"longest wait for pages, {name}", "vm-slowdisk", cell(row, 3), "ms", paper, share=0.5, least=50, digits=0) for row, name, paper in (
                (2, "before any remedy", "over 8 s"), (3, "managed", "0.37 s"), (4, "the load in the idle I/O class", "0.37 s"),
                (5, "the load with a limit of memory", "0.37 s"))),
            *(Figure(f"throughput of the hog lost, {words}", name, cell(row, 6), "%", paper, least=2) for name, row, words, paper in (
                ("vm-pagein", 3, "managed", "-2.5 %: a kernel built in 839.3 for 861.2 s"),
                ("vm-slowdisk", 3, "slow disk, managed", "-2.5 %"),
                ("vm-slowdisk", 4, "slow disk, idle I/O class", "-"), ("vm-slowdisk", 5, "slow disk, limit of memory", "-"))),
        ),
        charts=(Chart("memory.svg", "Page-ins beside writers", "memory", published.memory, histograms(["no children", "1 child", "4 children", "8 children"])),
                Chart("remedies.svg", "Page-ins beside page-outs on a slow disk, with each remedy", "vm-slowdisk", published.remedies, arm_histograms)),
        words="How long it lasts here is set by the limit of the disk (100 reads a second). The remedies need control groups of version 2, which this "
              "machine lacks: they were measured in a guest, whose swap is a disk that is slow by itself (QEMU takes 2000 requests and 40 MiB a "
              "second, reads and writes together). *Remedies*: the manager, the idle I/O class (ionice -c 3) for the load, and a limit of memory "
              "for it, in turns ([vm.md](vm.md), *Memory hog beside each remedy*). The I/O class of the load alone is no cure there: what the kernel writes to swap by itself is not in the class of whoever "
              "made it necessary. What they cost: the hog's throughput against that without a remedy. Another slow disk cannot be had here: this kernel has neither device mapper nor network block "
              "devices, and its limits of control groups of version 1 do not hold back what the kernel's own threads write. The paper's "
              "remedy made a build of the kernel quicker (§4.1.2); what ours costs says the table."),
    Row("T10", "starved by newborn processes", "§4.2.1",
        figures=(
            Figure("p50 beside one old hog", "fork", load("hog", "p50_ms"), "ms", "60 ms", least=10),
            Figure("p50 beside a hog that is forked again every 2 s", "fork", load("fork", "p50_ms"), "ms", "60 to 600 ms", least=10),
            Figure("longest of these", "fork", load("fork", "max_ms"), "ms", "561 ms", share=0.4, least=30),
            Figure("p50, sixteen old processes", "fork", load("crowd", "p50_ms"), "ms", least=20),
            Figure("p50, sixteen newborn ones at a time", "fork", load("wide", "p50_ms"), "ms", least=20),
            Figure("p50, the same in a session each", "fork", load("sessions", "p50_ms"), "ms", least=20),
            Figure("longest, the same in a container that weighs 8 times as much", "fork", load("container", "max_ms"), "ms", share=0.4),
            Figure("longest, the same at nice -10", "fork", load("nice", "max_ms"), "ms", share=0.4),
            Figure("longest, four newborn real-time ones at a time", "fork", load("realtime", "max_ms"), "ms", share=0.5),
            Figure("p50, sixteen newborn ones, managed", "fork", load("wide, managed", "p50_ms"), "ms", "\"perceptibly better\" (X server fixed at 49)", least=15),
            Figure("longest, container, managed", "fork", load("container, managed", "max_ms"), "ms", share=0.35),
            Figure("longest, nice -10, managed", "fork", load("nice, managed", "max_ms"), "ms", share=0.35),
            Figure("longest, real-time, managed", "fork", load("realtime, managed", "max_ms"), "ms", share=0.5),
            *(Figure(f"guest with {kernel}: {what}", f"vm-fork-{kernel}", row_cell(name, column), unit, paper, share=0.5, least=least)
              for kernel in KERNELS
              for what, name, column, unit, paper, least in (
                  ("p50 beside one old hog", "hog", 1, "ms", "60 ms", 10),
                  ("p50 beside one forked again every 2 s", "fork", 1, "ms", "60 to 600 ms", 10),
                  ("longest of these", "fork", 2, "ms", "561 ms", 30),
                  ("of these over 150 ms", "fork", 3, "%", "nearly 10 %", 3),
                  ("p50, sixteen old processes", "crowd", 1, "ms", "-", 20),
                  ("p50, sixteen newborn ones at a time", "wide", 1, "ms", "-", 20),
                  ("longest, the same in a container that weighs 8 times as much", "container", 2, "ms", "-", 0),
                  ("longest, the same at nice -10", "nice", 2, "ms", "-", 0),
                  ("longest, four newborn real-time ones at a time", "realtime", 2, "ms", "-", 0))),
            *(Figure(f"guest with {kernel}, managed: longest, {what}", f"vm-fork-managed-{kernel}", row_cell(f"{name}, managed", 2), "ms", share=0.5, least=20)
              for kernel in KERNELS
              for what, name in (("sixteen newborn ones at a time", "wide"), ("container", "container"), ("nice -10", "nice"), ("real-time", "realtime"))),
        ),
        tests=(ANALYSIS + "competition.rs::newborn_processes_are_told_with_their_age",),
        charts=(Chart("fork.svg", "Beside newborn processes", "fork", published.fork,
                      histograms(["hog", "fork", "wide", "nice"])),),
        words="Neither on 6.18 (EEVDF) nor, in a guest, on 6.1 (CFS) is the effect there as the paper has it: a hog that is forked again every two seconds costs what an old one costs, and "
              "sixteen newborn processes what sixteen old ones cost; why is not shown. All are in one session, and in the guests the kernel's sharing by session (autogroup) is off besides, but "
              "where the manager is tried, whose back end it is there. In the guests no interval beside one hog was over 150 ms; a better nice value and real-time processes did less there than on this "
              "machine, which is not explained. What starves here is number and weight: the intervals beside a container of more weight, a better nice value and real-time processes are as long as the "
              "paper's 561 ms beside one hog that is forked again, or longer. The paper has no figures with its remedy. Here the manager cures what is due to number and to a container's weight, leaves "
              "some 300 ms at most of what a better nice value does, and half of what real-time processes do: no weight is above these, whose stalls the kernel's own throttle ends. In "
              "the guests the manager has the back end autogroup by name: with what it chooses by itself there (6.1) nothing changed."),
    Row("T11", "unacceptable latency detected by itself", "§6",
        figures=(
            Figure("hitches that are marked and named, of twelve", "auto", marked_share, "%", share=0, least=9, digits=0, floor=91),
            Figure("marks that name nobody who made a hitch, an hour", "auto", false_marks, "", share=0, least=2, bar=3),
            Figure("from the begin of a hitch to its mark, p50", "auto", marked_after, "s", share=0.5),
            Figure("CPU time of the recorder and its children", "auto", recorder_cpu, "% of a CPU", share=0.3, digits=3, bar=0.2),
        ),
        tests=(TIPME + "auto.rs::a_hitch_is_marked_once_and_what_is_usual_is_kept",
                                                                             TIPME + "auto.rs::what_a_person_says_moves_the_limits_and_survives",
                                                                             TIPME + "auto.rs::a_program_that_does_not_follow_the_pointer_is_marked",
                                                                             TIPME + "auto.rs::a_program_of_wayland_that_does_not_follow_the_pointer_is_marked"),
        words="Keys, clicks, the wheel and the pointer count, each with a tolerance of its own for each application; it follows the person's marks "
              "and answers. Measured where the row is named (`make papers ROWS=T11`): 20 minutes of typing at four programs and of pointing at a fifth, with "
              "a hitch of 0.65 to 1.55 s in each of twelve parts, by another program each; `make check-auto` plays half an hour. A mark that names anything but "
              "who made the hitch is a false one, whatever else the machine had to do. The paper leaves it open."),
    Row("T12", "client and server recorded together", "§3.7", tests=("tests/golden.rs::every_kind_has_an_incident",),
        words="A wait for the network is named with the address of who did not answer (`network-wait`). What the other machine did meanwhile is "
              "not joined: as in the paper, it stays open."),
]

JONES_ROWS = [
    Row("J1", "periodic callback test", "§3.2, tables 1 to 3",
        figures=(
            Figure("least interval", "timer", mechanism("absolute", "interval_us", "min"), "µs", "20 to 33 µs", share=0.5, least=20, digits=0),
            Figure("average", "timer", mechanism("absolute", "interval_us", "mean"), "µs", "999 µs", share=0.02, digits=0),
            Figure("p50", "timer", mechanism("absolute", "interval_us", "p50"), "µs", share=0.02, digits=0),
            Figure("largest", "timer", mechanism("absolute", "interval_us", "max"), "µs", "2144 to 18114 µs", share=0.6, digits=0),
            Figure("standard deviation", "timer", mechanism("absolute", "interval_us", "sd"), "µs", "70 to 955 µs", share=0.5, least=10, digits=0),
            *(Figure(f"{words}, at the highest real-time priority", "timer-realtime", mechanism("absolute", "interval_us", key), "µs", paper, share=share, least=least,
                     digits=0)
              for words, key, paper, share, least in (("least interval", "min", "20 to 33 µs", 0.5, 20), ("average", "mean", "999 µs", 0.02, 0),
                                                      ("largest", "max", "2144 to 18114 µs", 0.6, 0), ("standard deviation", "sd", "70 to 955 µs", 0.5, 10))),
            Figure("average of a timer that sleeps a period after each wake-up", "timer", mechanism("relative", "interval_us", "mean"), "µs",
                   "half at 0, half at 2 ms (§3.2, table 2)", share=0.05, digits=0),
        ),
        charts=(Chart("timer.svg", "Times between wake-ups", "timer", published.timer, timer_bins(["absolute", "relative", "poll"])),),
        words="The paper's program runs at the highest real-time priority. Ours has the priority of any program, unless a figure says that it has the highest one "
              "of the policy fifo, 99."),
    Row("J2", "clock rates, offered and delivered", "§3.1",
        figures=(
            Figure("resolution offered", "timer", at("clocks", "resolutions_ns", 0, 1), "ns", "1000 to 1003 µs", share=0, digits=0),
            Figure("period delivered when 1000 µs are asked for", "timer", mechanism("absolute", "interval_us", "p50"), "µs", "976 and 1003 µs", share=0.02),
            Figure("the same by poll, in whole milliseconds", "timer", mechanism("poll", "interval_us", "p50"), "µs", share=0.1),
            Figure("tick of the kernel's coarse clock", "timer", scaled(at("clocks", "resolutions_ns", 3, 1), 1e-6), "ms", "10 to 15 ms", share=0),
        ),
        tests=("crates/bench/src/timer/clocks.rs::this_kernel_tells", "crates/bench/src/timer/clocks.rs::devices_are_read_where_there_are_any"),
        words="The paper's program runs at the highest real-time priority, ours at that of any program. The table has the clock that programs wait by, and the coarsest; "
              "`tipme bench timer` tells the resolution of every clock id, the clock source in use and those there are, and the clock event device of each CPU."),
    Row("J3", "each long delay attributed", "§4.2 to §4.5",
        figures=(Figure("very late wake-ups whose largest part has a culprit", "timer", attributed_share, "%", "by hand", least=10, floor=95),
                 Figure("so many of these were looked at", "timer", late_wake_ups, "", share=0.5, digits=0)),
        tests=(LAB + "timer.rs::a_planted_culprit_is_named_with_its_period", "crates/measure/src/timer/outliers.rs::a_regular_culprit_has_its_period"),
        words="A culprit is another thread, one that holds interrupts off, an interrupt, deferred work, the hypervisor, the firmware, a device, or one of these "
              "where it is not decided which. None is a timer that came late, a CPU that left its idle loop slowly, the thread's own way, and what no record tells. "
              "Looked at are the latest of each way to wait, a hundred at most. Earlier runs are not shown: they counted all of these but the late timer."),
    Row("J4", "stalls that no software explains", "§4.5",
        figures=(
            Figure("stolen time of the idle loop that lies outside the kernel", "idle", scaled(at("named", "outside"), 100), "%", least=30),
            *(Figure(f"stolen time that {who}", "idle", held_by(kind), "%", paper, least=30) for who, kind, paper in (
                ("the hypervisor had", "hypervisor", "-"), ("the firmware had", "firmware", "-"), ("a device had", "device", "video card: 25 to 30 ms"),
                ("one of them had, it is not decided which", "outside", "-"))),
            Figure("stolen time that has a name", "idle", scaled(at("named", "named"), 100), "%", least=5),
        ),
        tests=(ANALYSIS + "competition.rs::a_stall_tells_what_the_hypervisor_reported", ANALYSIS + "competition.rs::a_virtual_machine_without_steal_was_held_by_its_hypervisor",
               ANALYSIS + "competition.rs::firmware_stops_all_cpus_of_a_machine_without_a_hypervisor",
               ANALYSIS + "competition.rs::a_device_is_named_where_one_cpu_waited_for_it_and_others_went_on"),
        words="The first figure has what follows by exclusion, the others also what the kernel's own count and late timers tell. In a virtual machine only the hypervisor is seen: "
              "the firmware and a device are tested with recordings made for that. A processor of a guest that is stopped from outside: [vm.md](vm.md)."),
]

ENDO_ROWS = [
    Row("E1", "idle-loop instrument, validated", "§2.3, figure 1",
        figures=(
            Figure("what a program's own time stamps miss of an echo of 5 ms", "validate", echo("missed_us"), "µs", "2340 µs of 9760", share=0.6, least=30),
            Figure("error of a gap against known work, p50", "validate", trial("gaps", "errors", "p50_us"), "µs", share=0.5, least=10),
            Figure("the same, p90", "validate", trial("gaps", "errors", "p90_us"), "µs", share=0.6, least=50),
            Figure("with names, p50", "validate", trial("gaps with names", "errors", "p50_us"), "µs", share=0.5, least=5),
            Figure("the paper's loop of fixed length, p50", "validate", trial("classic", "errors", "p50_us"), "µs", share=0.7, least=40),
            Figure("limits kept", "validate", within_limits, "%", share=0, digits=0),
            Figure("others had of the CPU", "validate", scaled(trial("gaps", "taken", "others_share"), 100), "%", least=5, share=0, digits=2),
            Figure("the hypervisor reports to have taken", "validate", scaled(trial("gaps", "taken", "steal_share"), 100), "%", least=2, share=0, digits=2),
            *(Figure(f"guest with {kernel}: {words}, p50", f"vm-validate-{kernel}", row_cell(method, 1), "µs", share=0.5, least=least)
              for kernel in KERNELS
              for words, method, least in (("error of a gap", "gaps", 10), ("with names", "gaps with names", 5), ("the paper's loop", "classic", 40))),
        ),
        words="The limits allow for what others and the hypervisor had, and say so; with more than 5 % nothing is judged. In a guest whose processors are emulated, which is told of no stolen "
              "time: [vm.md](vm.md), *Idle loop, validated*."),
    Row("E2", "when the application is ready for an event", "§2.4", tests=(LAB + "measure.rs::every_input_is_accounted_for_by_the_display_tap",)),
    Row("E3", "think and wait", "§2.3, figure 2",
        figures=(
            Figure("of the time in the editor somebody waits", "task-editor", scaled(ratio(at("wait_ms"), lambda of: of["wait_ms"] + of["think_ms"]), 100), "%", least=1),
            *(Figure(f"{program}: {words}, `tipme day` of `tipme measure`", "day", scaled(ratio(at("programs", program, "day", key), at("programs", program, "measure", key)), 100),
                     "%", share=0.2)
              for program in ("mousepad", "Writer") for words, key in (("answers", "n"), ("latency to the first drawing", "first_ms"), ("waiting", "wait_ms")))),
        tests=("crates/measure/src/think.rs::the_truth_table", "crates/measure/src/think.rs::phases_tile_the_time",
               TIPME + "day.rs::a_session_is_counted_as_it_is_measured_and_survives"),
        words="Of a whole day without a script: `tipme day`, here beside a script that it does not know of. While two answers are waited for at a time, waiting counts once and "
              "latency twice. The day goes by the order of messages alone ([measuring.md](measuring.md)). It has no script: an answer ends with its first drawing, where `tipme measure` waits for the "
              "last one of a key that turns a page. So the latency up to the first drawing is compared, and the waiting of `tipme measure` has those pages in it."),
    Row("E4", "idle-system profile", "§2.5, §2.6, figures 3 and 4",
        figures=(
            Figure("stolen from an idle system", "idle", scaled(at("stolen_share"), 100), "%", "bursts every 10 ms", share=0.5, least=3),
            Figure("between two timer ticks", "idle", tick_ms, "ms", "10 ms", share=0.6),
            Figure("gap of the idle loop, p50", "idle", at("cpus", 0, "gaps", "p50_us"), "µs", "4 µs, the smallest clock interrupt", share=0.5, least=10),
        ),
        charts=(Chart("idle.svg", "An idle system", "idle", published.gaps, utilisation),)),
    Row("E5", "hardware counters per event", "§2.2, figures 9 and 10",
        figures=(Figure("CPU time of the editor for a key", "task-editor", ratio(named("counters", "label", "type", "cpu_ms"), named("counters", "label", "type", "n")), "ms", share=0.3),),
        tests=(LAB + "measure.rs::what_each_operation_uses_is_counted_as_it_is",
               "crates/lab/src/measure/result.rs::what_was_used_is_of_each_operation_what_the_hardware_counts_too",
               "crates/bench/src/measure/counters.rs::counters_of_hardware_that_took_turns_stand_for_the_whole_time_of_each_operation"),
        words="`counters` of a result has CPU time, context switches, page faults, and cycles, instructions, cache and TLB misses for each "
              "operation of a script, as its steps are labelled. The first three were held against a program of which it is known what it uses "
              "(1,000 pages, 200 waits, 50 ms for a key; counted: 992 page faults, 197 switches, 50.7 ms). This machine has no counters of hardware (a virtual machine), nor has an emulated guest: "
              "theirs are `null` here. What is done with them is held against what perf counted on real hardware, a CPU with two kinds of cores whose counters took turns: two published "
              "runs with their cycles, instructions, cache and TLB misses, and the share of the time in which each was counted, as two operations."),
    Row("E6", "tasks at real applications, five times", "§5",
        figures=tuple(
            Figure(f"{name}: {what}", f"task-{script}", of, unit, paper, share=share, least=least, digits=digits, bar=bar)
            for name, script in (("mousepad", "editor"), ("Writer", "writer"), ("Impress", "impress"))
            for what, of, unit, paper, share, least, digits, bar in (
                ("cumulative latency", at("cumulative", "mean_ms"), "ms", "-", 0.15, 0, 0, None),
                ("deviation over the repeats", at("cumulative", "deviation_percent"), "%", "1 to 2 %", 0, 5, 1, 3),
            )),
        tests=(LAB + "measure.rs::every_input_is_accounted_for_by_the_display_tap",),
        words="The task is cut to what fits: the editor's script to its first 290 inputs, Writer's to its first 150; Impress has all of its own. The paper's "
              "deviation is that of elapsed and CPU-busy times."),
    Row("E7", "latency profile, cumulative latency, long events, inter-arrival", "§5, figures 5 to 12, tables 1 and 2",
        figures=(
            Figure("editor: of the cumulative latency by events below 10 ms", "task-editor", short_share(10), "%", "over 80 % (Notepad)", least=15),
            Figure("Impress: save", "task-impress", longest_of("save"), "s", "8.1 and 9.6 s", share=0.4, digits=2),
            Figure("Impress: start", "task-impress", longest_of("start"), "s", "7.2 and 5.8 s", share=0.4, digits=2),
            Figure("Impress: a chart for the first time", "task-impress", longest_of("edit a chart, first"), "s", "7.1 and 5.8 s", share=0.4, digits=2),
            Figure("Impress: the second chart", "task-impress", longest_of("edit a chart, second"), "s", "2.9 and 2.0 s", share=0.4, digits=2),
            Figure("Writer: events over 100 ms in a repeat", "task-writer", named("inter_arrival", "threshold_ms", 100.0, "n"), "", "101 (Word)", share=0.4, least=3, digits=0),
            Figure("Writer: between these", "task-writer", named("inter_arrival", "threshold_ms", 100.0, "mean_s"), "s", "3.1 s", share=0.4, least=2,
                   needs=("Writer: events over 100 ms in a repeat", 2)),
        ),
        charts=(
            Chart("editor.svg", "Plain-text editing", "task-editor", published.notepad, cumulative),
            Chart("writer.svg", "Word processing: events above a threshold", "task-writer", published.interarrival,
                  lambda document: [[row["threshold_ms"], row["n"]] for row in document["inter_arrival"] if row["n"]]),
            Chart("impress.svg", "A presentation", "task-impress", published.powerpoint, cumulative),
        ),
        words="The paper starts PowerPoint right after the machine has booted, so that all caches are cold. Impress is started five times one after the other, and the "
              "longest of each operation counts: only what the first start has to read may be cold."),
    Row("E8", "systems compared over five runs", "§5",
        figures=tuple(
            Figure(f"mousepad, {words}: {what}", "systems", at("pairs", pair, "sides", side, key), "ms", share=share, least=least, digits=digits)
            for pair, side, words in (("display", "X11", "X11"), ("display", "Wayland", "Wayland"),
                                      ("manager", "unmanaged", "six CPU hogs"), ("manager", "managed", "six CPU hogs, managed"))
            for what, key, share, least, digits in (
                ("a key, p50", "p50_ms", 0.35, 1, 2), ("p95", "p95_ms", 0.5, 3, 2), ("cumulative latency of a repeat", "cumulative_ms", 0.35, 20, 0))) + tuple(
            Figure(f"xterm, guest with {kernel}, {words}: {what}", f"vm-systems-{kernel}", row_cell(name, column), "ms", share=0.5, least=5)
            for kernel in KERNELS
            for words, name in (("unloaded", "unloaded"), ("six CPU hogs", "load 6, unmanaged"), ("six CPU hogs, managed", "load 6, managed"))
            for what, column in (("a key, p50", 1), ("p95", 2))),
        tests=(LAB + "compare.rs::a_slower_result_is_shown_to_be_so", "crates/measure/src/comparison.rs::few_repeats_or_events_allow_no_statement"),
        words="Two pairs of systems here, each at the first 50 keys of the script `editor`, five times, in turns: X11 (Xvfb, openbox) beside Wayland (sway without "
              "a screen); and X11 beside six processes in the same session that want the CPU, without the manager and with it (the load average has these six in it). A third pair: "
              "guests of the test bed with kernel 6.1 (CFS) and 6.18 (EEVDF), 40 keys at xterm in each of five blocks, beside six such processes as well; what the "
              "emulation makes of it counts for both alike. The paper compares releases of Windows NT and Windows 95 so (figures 6 to 8). What `tipme compare` says of them stands below."),
    Row("E9", "a figure of merit", "§3.1, left open there",
        figures=tuple(
            Figure(f"{name}: excess latency at {words}", f"task-{script}", at("elr", key), "ms/min", "-", share=0.35, least=5)
            for name, script in (("mousepad", "editor"), ("Writer", "writer"), ("Impress", "impress"))
            for key, words in (("below_ms_per_minute", "0.9 T"), ("at_ms_per_minute", "T"), ("above_ms_per_minute", "1.1 T"))),
        words="Excess latency: what all answers took beyond the threshold T of their class (`crates/measure/src/threshold.rs`), for each minute of interaction. Where it is 0, no answer took "
              "as long as T, so that nobody waited for longer than most people accept: so it is in all runs of mousepad, and in all but one of Writer. Its sensitivity is how much it "
              "changes with T, a tenth each way."),
]

# Of the rows with figures of typing.
TYPING_WORDS = ("The paper's typing is read off figure 2, a plot of letters. Its load takes more memory as it takes more CPU time, ours the CPU alone "
                "(`--type cpu`).")

EVANS_ROWS = [
    Row("S1", "keyboard and pointer focus followed", "§4.1",
        figures=(
            Figure("typing in foot on sway, unloaded, p50", "typing-wayland", turn("unloaded", "figures", "p50_ms"), "ms", "about 0.1 s", share=0.5, least=1),
            Figure("the same, load 20, p95, unmanaged", "typing-wayland", turn("load 20, unmanaged", "figures", "p95_ms"), "ms", "1 to 10 s", share=0.6),
            Figure("the same, load 20, p95, managed", "typing-wayland", turn("load 20, managed", "figures", "p95_ms"), "ms", "below 0.1 s", share=0.6, least=5),
        ),
        tests=("crates/desktop/tests/attention.rs::under_a_manager_the_focus_is_followed_by_click_to_type",
               "crates/desktop/tests/attention.rs::the_focus_may_follow_the_mouse"),
        words=TYPING_WORDS),
    Row("S2", "window to process set", "§4.2",
        tests=("crates/manager/src/desktop_state/tests.rs::a_window_makes_a_set_and_the_focus_follows_its_window",
               "crates/manager/src/session.rs::the_core_has_this_process_and_names_no_process_twice")),
    Row("S3", "the terminal's foreground process group", "§4.2", tests=(TIPME + "manage.rs::the_favour_goes_with_the_foreground_of_the_terminal",)),
    Row("S4", "hints: visible, iconic, process ids at a window", "§3.3, §6",
        tests=("crates/desktop/tests/attention.rs::an_icon_is_no_visible_window", "crates/desktop/tests/attention.rs::helpers_are_read_as_xprop_sets_them")),
    Row("S5", "manager: central, secure, cheap", "§3.4",
        figures=(
            Figure("from the focus to the last knob, p99", "manager", at("to_knobs_p99_ms"), "ms", share=0.5, least=2, bar=10),
            Figure("the same, by a helper with the rights", "manager", at("by_helper_p99_ms"), "ms", share=0.5, least=2, bar=10),
            Figure("CPU time of the manager while somebody types and switches", "manager", at("cpu_percent"), "% of a CPU", share=0.5, least=0.05, digits=3, bar=0.2),
            Figure("memory of the manager", "manager", at("memory_mib"), "MiB", share=0.3, bar=20),
        ),
        tests=(TIPME + "manager_cost.rs::knobs_follow_the_focus_soon_and_cheaply", TIPME + "manage/other_users.rs::another_user_learns_and_changes_nothing")),
    Row("S6", "CPU and memory favoured together", "§4.4",
        figures=(
            Figure("typing beside 20 processes in the same session, p50, unmanaged", "typing", turn("load 20, unmanaged", "figures", "p50_ms"), "ms", "1 to 10 s", share=0.6),
            Figure("the same, managed", "typing", turn("load 20, managed", "figures", "p50_ms"), "ms", "below 0.1 s", share=0.6, least=0.5),
            Figure("in one control group, p95, unmanaged, times unloaded", "vm-typing", cell(2, 5), "x", share=0.5, digits=2),
            Figure("the same, managed", "vm-typing", cell(3, 5), "x", share=0.5, least=0.5, digits=2),
            Figure("throughput of the load lost, managed", "vm-typing", cell(3, 6), "%", least=2),
            Figure("each process in a unit of systemd, p95, unmanaged, times unloaded", "vm-typing-units", cell(2, 5), "x", share=0.5, digits=2),
            Figure("the same, managed", "vm-typing-units", cell(3, 5), "x", share=0.5, least=0.5, digits=2),
        ),
        tests=("crates/policy/tests/policy/memory.rs::a_hog_is_limited_step_by_step_and_released_when_there_is_plenty",),
        words=TYPING_WORDS),
    Row("S7", "nothing starves", "§4.4.3",
        figures=(Figure("least of 20 background jobs in each 10 s", "vm-starvation", least(1), "% of a CPU", "none seen", share=0.5, least=1, digits=2),),
        tests=("crates/sched/tests/starvation.rs::the_rest_keeps_its_share_under_autogroup",)),
    Row("S8", "history: what is used next is ready; one knob", "§3.2",
        figures=(
            *(Figure(f"{program}: first window after login, {words}", "preload", at("programs", program, arm, "first_ms"), "ms", share=0.35, least=50, digits=0)
              for program in ("mousepad", "Writer") for arm, words in (("cold", "cold"), ("read ahead", "its files read ahead"))),
            Figure("memory spent on reading both ahead at login", "preload", at("reading", "fetched_mib"), "MiB", share=0.2, least=5, digits=0),
            Figure("time that this took", "preload", at("reading", "seconds"), "s", share=0.5),
        ),
        tests=("crates/manager/src/prefetch.rs::the_two_used_last_are_asked_back_once_a_minute",
               TIPME + "manage.rs::the_knob_is_turned_while_it_runs",
               TIPME + "manage/preload.rs::a_program_that_was_used_is_in_memory_after_the_next_login"),
        words="The paper proposes it and measures nothing. While the focus rests, the manager asks back the memory of the two sets used last. A model of what follows what, "
              "which is gone, was hardly better: on made-up weeks of twelve programs the next one was among the two made ready in 58.0 % of the changes by the model, in 56.2 % by this rule, "
              "and in 44.3 % by taking the two used most; in rounds of programs the model was better (73 % against 42 %), back and forth between them it was worse (57 % against 79 %). A first key at mousepad, whose "
              "memory had been taken, was answered after 50.5 ms, and after 21.4 ms where it had been asked back (all of it 2026-11-26, commit 6eabc39, where the script is). "
              "`tipme manage status` shows how often the rule was right. At login the manager reads ahead the files that the programs used last had mapped: "
              "all caches of the machine are dropped, a manager is started and ended again, with reading ahead and without, and then both programs are started; the "
              "time is that to the first drawing in their windows."),
    Row("S9", "background-load generator", "§5.1", tests=(LAB + "load.rs::each_type_does_what_it_is_named_for",)),
    Row("S10", "typing, scrolling, system and warm-start tests", "§5.2 to §5.4, figure 2, table 1",
        figures=(
            Figure("typing, unloaded, p50", "typing", turn("unloaded", "figures", "p50_ms"), "ms", "about 0.1 s", share=0.5, least=0.5),
            Figure("typing, load 20, p95, unmanaged", "typing", turn("load 20, unmanaged", "figures", "p95_ms"), "ms", "1 to 10 s", share=0.6),
            Figure("typing, load 20, p95, managed", "typing", turn("load 20, managed", "figures", "p95_ms"), "ms", "below 0.1 s", share=0.6, least=5),
            Figure("scrolling, load 20, p50, unmanaged", "scroll", scaled(turn("load 20, unmanaged", "figures", "p50_ms"), 1e-3), "s", share=0.6, digits=2),
            Figure("scrolling, load 20, p50, managed", "scroll", scaled(turn("load 20, managed", "figures", "p50_ms"), 1e-3), "s", "12 to 15 s", share=0.6, digits=2),
            Figure("system test beside nothing, managed, times unmanaged", "system", ratio(beside("nothing", "managed", "median_s"), beside("nothing", "unmanaged", "median_s")),
                   "x", "0.98 x", share=0.1, digits=2),
            Figure("system test beside a build, unmanaged", "system", beside("build", "unmanaged", "times_unloaded"), "x", "1.78 x", share=0.1, digits=2),
            Figure("beside a build, managed", "system", beside("build", "managed", "times_unloaded"), "x", "1.14 x", share=0.1, digits=2),
            Figure("beside the heavy synthetic load, unmanaged", "system", beside("synthetic", "unmanaged", "times_unloaded"), "x", "15.8 x", share=0.1, digits=2),
            Figure("beside the heavy synthetic load, managed", "system", beside("synthetic", "managed", "times_unloaded"), "x", "1.96 x", share=0.1, digits=2),
            Figure("the same in a guest with little memory, unmanaged", "vm-system", cell(3, 4), "x", "15.8 x", share=0.5, digits=2),
            Figure("the same, managed", "vm-system", cell(6, 4), "x", "1.96 x", share=0.25, digits=2),
            *(Figure(f"throughput lost {words}, managed, in the guest", name, cell(row, 5), "%", least=2) for words, name, row in (
                ("beside a build", "vm-system", 5), ("beside the heavy synthetic load", "vm-system", 6), ("beside the warm start", "vm-warmstart", 3))),
            Figure("warm start, first key, unmanaged", "vm-warmstart", scaled(cell(2, 2), 1e-3), "s", "1 s", share=0.5, digits=2),
            Figure("warm start, first key, managed", "vm-warmstart", scaled(cell(3, 2), 1e-3), "s", "0.1 s", share=0.5, least=0.05, digits=2),
        ),
        charts=(
            Chart("typing.svg", "Typing beside a load", "typing", published.levels(published.TYPING, "delay, s"), levels),
            Chart("scroll.svg", "Scrolling beside a load", "scroll", published.levels(published.SCROLLING, "time, s"), levels),
            Chart("system.svg", "The system test", "system", published.system,
                  lambda document: {arm: [beside(what, arm, "median_s")(document) for what in ("nothing", "build", "synthetic")] for arm in ("unmanaged", "managed")}),
        ),
        words="The paper's typing and scrolling are read off figure 2, a plot of letters, as far as that is legible: scrolling without the prototype is not, and the loads at which its letters stand are lost, so they are drawn at even ones. Its load "
              "takes more memory as it takes more CPU time; beside typing and scrolling ours is that of the CPU alone (`--type cpu`). "
              "The load is in the session of the display's programs, so that the kernel's sharing by session (autogroup) does not help: typing and "
              "scrolling show the effect. The system test, which waits more than it computes, shows little of it where memory is enough, and the warm start "
              "takes memory that runs out: both were measured in a guest."),
    Row("S11", "an interactive scheduling class in the kernel", "§6",
        words="Not on this machine (no sched_ext). In a guest with kernel 6.18 it is there; the manager notices such a scheduler and sets nice values too, "
              "since most of them ignore weights ([vm.md](vm.md), *sched_ext*). A scheduler of its own does not exist."),
    Row("S12", "interactivity asked of the remote host", "§6",
        words="Not done: on the display of another machine the forwarding process is favoured, not the program there ([managing.md](managing.md), *Limits*)."),
]

PAPERS = [
    ("TIPME: Endo and Seltzer, *Improving Interactive Performance Using TIPME* (2000)", TIPME_ROWS),
    ("Jones and Regehr, *The Problems You're Having May Not Be the Problems You Think You're Having* (1999)", JONES_ROWS),
    ("Endo, Wang, Chen and Seltzer, *Using Latency to Evaluate Interactive System Performance* (1996)", ENDO_ROWS),
    ("Evans, Clarke, Singleton and Smaalders, *Optimizing Unix Resource Scheduling for User Interaction* (1993)", EVANS_ROWS),
]
ROWS = [row for _, rows in PAPERS for row in rows]
