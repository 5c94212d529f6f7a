// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme load` as a user runs it. Root is needed for only one test, which becomes another user.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use support::family::{Program, expect_gone, for_everybody};
use support::{lab, number};
use tempfile::TempDir;
use tipme_bench::until;

fn load(arguments: &[&str]) -> Output {
    lab().arg("load").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(arguments: &[&str]) -> Value {
    let output = load(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
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
    let path = folder.path().to_str().unwrap();
    for kind in [&["cpu"][..], &["forks"], &["big"], &["stream"], &["stream", "--folder", path]] {
        let more = ["--level", "3", "-d", "3s", "--memory", "24M", "--json"];
        let done = document(&[kind, &more].concat());
        support::schema::assert_fits("load", &done);
        assert_eq!(done["casualties"], 0, "{done:#}");
        assert_eq!((&done["load"], &done["level"]), (&kind[0].into(), &3.into()));
        let runnable = number(&done, "runnable_mean");
        assert!(runnable > 0.3 && runnable < 4.5, "{done:#}");
        assert!(number(&done, "rounds") > 0.0 && number(&done, "cpu_s") > 0.0, "{done:#}");
        assert!(number(&done, "seconds") >= 3.0, "{done:#}");
        assert!(number(&done, "memory_bytes") <= f64::from(24 << 20), "{done:#}");
        let (pages, demand) = (number(&done, "pages_per_ms"), number(&done, "demand_pages_per_ms"));
        assert!(pages > 0.0 && pages < 2.0 * demand, "{done:#}");
        assert_eq!(number(&done, "births") > 0.0, kind[0] == "forks", "{done:#}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "files of a stream have no names"
    );
}

#[test]
fn demand_and_reuse_can_be_chosen() {
    let done = document(&[
        "cpu", "--level", "1", "-d", "1s", "--demand", "30", "--reuse", "0.5", "--json",
    ]);
    assert_eq!((&done["demand_pages_per_ms"], &done["reuse"]), (&30.into(), &0.5.into()));
    assert_eq!(
        done["pages"].as_u64().unwrap() % 30,
        0,
        "every round touches as many pages as were asked for"
    );
}

#[test]
fn processes_are_in_the_sessions_that_were_asked_for() {
    for sessions in [0, 1, 2] {
        let mut command = lab();
        command.args([
            "load",
            "cpu",
            "--level",
            "4",
            "-d",
            "100s",
            "--sessions",
            &sessions.to_string(),
        ]);
        let mut program = Program::start(command);
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
    for (sessions, kind) in [("0", "cpu"), ("2", "big")] {
        let mut command = lab();
        command.args([
            "load",
            kind,
            "--level",
            "3",
            "-d",
            "300s",
            "--memory",
            "12M",
            "--json",
            "--sessions",
            sessions,
        ]);
        let mut program = Program::start_into(command, std::fs::File::create(&result).unwrap());
        program.wait_for("running");
        let victim = support::family::until_named(&program, &format!("load-{kind}"), 3);
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(victim as i32).unwrap(),
            Signal::KILL,
        )
        .unwrap();
        program.wait_for("1 processes ended early");
        program.signal(Signal::TERM);
        assert_eq!(program.wait().code(), Some(0), "{:?}", program.said());
        let done: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
        assert_eq!((&done["casualties"], &done["level"]), (&1.into(), &3.into()), "{done:#}");
    }
}

#[test]
fn where_all_have_ended_the_load_has() {
    let mut command = lab();
    command.args(["load", "cpu", "--level", "2", "-d", "300s"]);
    let mut program = Program::start(command);
    program.wait_for("running");
    for left in [2, 1] {
        let victim = support::family::until_named(&program, "load-cpu", left);
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(victim as i32).unwrap(),
            Signal::KILL,
        )
        .unwrap();
    }
    assert_eq!(program.wait().code(), Some(2), "{:?}", program.said());
    assert!(
        program.said().join("\n").contains("2 processes of the load ended early (2 run at a time)"),
        "{:?}",
        program.said()
    );
}

#[test]
fn no_process_outlives_ctrl_c_or_a_kill() {
    for (signal, code, kind) in [(Signal::INT, Some(0), "forks"), (Signal::KILL, None, "big")] {
        let mut command = lab();
        command.args(["load", kind, "--level", "4", "-d", "100s", "--memory", "16M"]);
        let mut program = Program::start(command);
        program.wait_for("running");
        let members = program.descendants();
        assert!(
            members.len() >= 6,
            "the first one, the session's, and those that work: {members:?}"
        );
        program.signal(signal);
        assert_eq!(program.wait().code(), code, "{:?}", program.said());
        expect_gone(&members);
    }
}

#[test]
fn another_user_may_as_well() {
    let (_folder, path) = for_everybody(&["tipme-lab", "tipme"]);
    let output = Command::new(path)
        .args(["load", "cpu", "--level", "2", "-d", "1s"])
        .uid(65_534)
        .gid(65_534)
        .output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("runnable") && text.contains("2 aimed at"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let cut = load(&["cpu", "--demand", "500"]);
    assert_eq!(
        (cut.status.code(), said(&cut).contains("choose less with --demand")),
        (Some(2), true)
    );
    let folder = load(&["cpu", "--folder", "/tmp"]);
    assert_eq!(
        (folder.status.code(), said(&folder).contains("only the load \"stream\"")),
        (Some(2), true)
    );
    for wrong in [
        &["--level", "0"][..],
        &["--level", "65"],
        &["--reuse", "2"],
        &["--demand", "0"],
        &["-d", "10"],
    ] {
        assert_eq!(load(&[&["cpu"], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
    assert_eq!(load(&["tape"]).status.code(), Some(2));
}
