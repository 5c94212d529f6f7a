// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme load` as a user runs it. Root is needed for only one test, which becomes another user.

use rustix::process::Signal;
use serde_json::Value;
use support::family::{Program, expect_gone};
use support::{Ran, as_nobody, expect_ended, kill_one, lab_with, number, run};
use tempfile::TempDir;
use tipme_bench::until;

fn document(words: &str) -> Value {
    serde_json::from_str(&run(&format!("load {words} --json")).expect(&[0]).text).unwrap()
}

/// Returns the session of each working process of the load.
fn workers(program: &Program, name: &str) -> Vec<String> {
    let stats = program.descendants().into_iter();
    let stats =
        stats.filter_map(|(pid, _)| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    let named = stats.filter(|stat| stat.contains(&format!("({name})")));
    named
        .map(|stat| stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned())
        .collect()
}

#[test]
fn each_type_does_what_it_is_named_for() {
    let folder = TempDir::new().unwrap();
    let written = format!("stream --folder {}", folder.path().display());
    for words in ["cpu", "forks", "big", "stream", &written] {
        let kind = words.split(' ').next().unwrap();
        let done = document(&format!("{words} --level 3 -d 3s --memory 24M"));
        support::schema::assert_fits("load", &done);
        assert_eq!(done["casualties"], 0, "{done:#}");
        assert_eq!((&done["load"], &done["level"]), (&kind.into(), &3.into()));
        let runnable = number(&done, "runnable_mean");
        assert!(runnable > 0.3 && runnable < 4.5, "{done:#}");
        assert!(number(&done, "rounds") > 0.0 && number(&done, "cpu_s") > 0.0, "{done:#}");
        assert!(number(&done, "seconds") >= 3.0, "{done:#}");
        assert!(number(&done, "memory_bytes") <= f64::from(24 << 20), "{done:#}");
        let (pages, demand) = (number(&done, "pages_per_ms"), number(&done, "demand_pages_per_ms"));
        assert!(pages > 0.0 && pages < 2.0 * demand, "{done:#}");
        assert_eq!(number(&done, "births") > 0.0, kind == "forks", "{done:#}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "files of a stream have no names");
}

#[test]
fn demand_and_reuse_can_be_chosen() {
    let done = document("cpu --level 1 -d 1s --demand 30 --reuse 0.5");
    assert_eq!((&done["demand_pages_per_ms"], &done["reuse"]), (&30.into(), &0.5.into()));
    let rest = done["pages"].as_u64().unwrap() % 30;
    assert_eq!(rest, 0, "every round touches as many pages as were asked for");
}

#[test]
fn processes_are_in_the_sessions_that_were_asked_for() {
    for sessions in [0, 1, 2] {
        let words = format!("load cpu --level 4 -d 100s --sessions {sessions}");
        let mut program = Program::start(lab_with(&words));
        program.wait_for("running");
        until("four processes", || workers(&program, "load-cpu").len() == 4);
        let mut found = workers(&program, "load-cpu");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), sessions.max(1), "{found:?}");
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        let own = own.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned();
        assert_eq!(found.contains(&own), sessions == 0, "{found:?} and {own}");
        let members = program.descendants();
        program.signal(Signal::TERM);
        assert_eq!(program.wait().code(), Some(0), "{:?}", program.said());
        expect_gone(&members);
    }
}

#[test]
fn processes_that_end_early_are_counted() {
    let folder = TempDir::new().unwrap();
    let result = folder.path().join("result.json");
    for (sessions, kind) in [(0, "cpu"), (2, "big")] {
        let words =
            format!("load {kind} --level 3 -d 300s --memory 12M --json --sessions {sessions}");
        let output = std::fs::File::create(&result).unwrap();
        let mut program = Program::start_into(lab_with(&words), output);
        program.wait_for("running");
        kill_one(&program, &format!("load-{kind}"), 3);
        program.wait_for("1 processes ended early");
        program.signal(Signal::TERM);
        assert_eq!(program.wait().code(), Some(0), "{:?}", program.said());
        let done: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
        assert_eq!((&done["casualties"], &done["level"]), (&1.into(), &3.into()), "{done:#}");
    }
}

#[test]
fn where_all_have_ended_the_load_has() {
    let mut program = Program::start(lab_with("load cpu --level 2 -d 300s"));
    program.wait_for("running");
    [2, 1].into_iter().for_each(|left| kill_one(&program, "load-cpu", left));
    assert_eq!(program.wait().code(), Some(2), "{:?}", program.said());
    let said = program.said().join("\n");
    assert!(said.contains("2 processes of the load ended early (2 run at a time)"), "{said}");
}

#[test]
fn no_process_outlives_ctrl_c_or_a_kill() {
    for (signal, code, kind) in [(Signal::INT, Some(0), "forks"), (Signal::KILL, None, "big")] {
        let words = format!("load {kind} --level 4 -d 100s --memory 16M");
        // The first one, the session's, and those that work.
        expect_ended(&words, "running", 6, (signal, code));
    }
}

#[test]
fn another_user_may_as_well() {
    let (_folder, mut command) = as_nobody("load cpu --level 2 -d 1s");
    Ran::of(&mut command).expect(&[0]).expect_text(&["runnable", "2 aimed at"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (wrong, why) in [
        ("cpu --demand 500", "choose less with --demand"),
        ("cpu --folder /tmp", "only the load \"stream\""),
        ("cpu --level 0", "--level"),
        ("cpu --level 65", "--level"),
        ("cpu --reuse 2", "--reuse"),
        ("cpu --demand 0", "--demand"),
        ("cpu -d 10", "--duration"),
        ("tape", "tape"),
    ] {
        run(&format!("load {wrong}")).expect_refused(&[why]);
    }
}
