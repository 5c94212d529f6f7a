// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hitch before the last answered mark does not explain the next one.

mod support;

use support::{APP, BEGIN, Machinery};
use tipme_analysis::model::Verdict;
use tipme_analysis::{DiagnoseOptions, diagnose};

const NEIGHBOUR: u32 = 500;

/// An editor that types well, with a key at 3 s that a neighbour's work delays until 4 s, and the
/// events of `fill`. The mark is at 9 s; the last answer was requested at `answered` microseconds,
/// 0 for never.
fn verdict(answered: u64, options: &DiagnoseOptions, fill: impl FnOnce(&mut Machinery)) -> Verdict {
    let mut machine = Machinery::new();
    machine.task(APP, APP, 1, "editor", 1).task(NEIGHBOUR, NEIGHBOUR, 1, "neighbour", 1);
    machine.typing(100_000, 12);
    slow_key(&mut machine, 3_000_000);
    fill(&mut machine);
    machine.meta.answered_ns = if answered == 0 { 0 } else { BEGIN + answered * 1_000 };
    diagnose(&machine.incident(9_000_000), options).expect("the scene is well formed")
}

/// A key that is answered after a second in which a neighbour runs on the editor's CPU.
fn slow_key(machine: &mut Machinery, at: u64) {
    machine.press(at).switch(at + 5_000, 1, NEIGHBOUR, 0).switch(at + 995_000, 1, APP, 0);
    machine.draw(at + 1_000_000);
}

fn started_s(verdict: &Verdict) -> Option<u64> {
    verdict
        .interval
        .as_ref()
        .filter(|interval| interval.exceeded)
        .map(|interval| (interval.start_ns - BEGIN) / 1_000_000_000)
}

fn default() -> DiagnoseOptions {
    DiagnoseOptions::default()
}

#[test]
fn the_same_hitch_is_not_answered_again() {
    let before = verdict(0, &default(), |_| ());
    assert_eq!((started_s(&before), before.incident.answered_s), (Some(3), None));
    assert!(before.earlier.is_empty());
    let after = verdict(5_000_000, &default(), |machine| {
        machine.typing(6_000_000, 5);
    });
    assert_eq!((started_s(&after), after.findings.len(), after.candidates.len()), (None, 0, 0));
    assert_eq!(after.incident.answered_s, Some(4.0));
    let [earlier] = &after.earlier[..] else { panic!("{:?}", after.earlier) };
    assert_eq!((earlier.start_ns - BEGIN) / 1_000_000_000, 3);
    let longest = after.interval.expect("the longest one since then is known");
    assert!(longest.start_ns >= BEGIN + 6_000_000_000 && longest.latency_ms < 100.0, "{longest:?}");
}

#[test]
fn without_any_input_since_then_there_is_nothing_new() {
    let after = verdict(5_000_000, &default(), |_| ());
    assert!(after.interval.is_none() && after.earlier.len() == 1);
    assert_eq!(
        after.notes.last().map(String::as_str),
        Some("No input was answered in the 4.00 s since the last answer.")
    );
}

#[test]
fn a_new_hitch_is_answered_though_the_earlier_one_was_as_long() {
    let after = verdict(5_000_000, &default(), |machine| slow_key(machine, 6_000_000));
    assert_eq!(started_s(&after), Some(6));
    assert!(after.earlier.is_empty() && after.candidates.len() == 1, "{:?}", after.candidates);
}

#[test]
fn a_hitch_that_went_on_after_the_answer_is_answered_again() {
    assert_eq!(started_s(&verdict(3_500_000, &default(), |_| ())), Some(3));
    assert_eq!(
        started_s(&verdict(3_950_000, &default(), |_| ())),
        None,
        "the rest was too short to be noticed"
    );
}

#[test]
fn an_explicit_time_is_explained_despite_the_answer() {
    let at = DiagnoseOptions { at_s: Some(5.5), ..default() };
    let verdict = verdict(5_000_000, &at, |_| ());
    assert_eq!((started_s(&verdict), verdict.incident.answered_s), (Some(3), None));
}
