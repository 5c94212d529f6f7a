// SPDX-License-Identifier: MIT OR Apache-2.0
//! Symptom and cause in sentences for users without knowledge of schedulers.

mod clause;

use crate::figures::{percent, span};
use clause::{capital, clause};
use tipme_analysis::SURE;
use tipme_analysis::model::{Baseline, Finding, Interval, Verdict};
use tipme_measure::ms;

/// Remark if nothing held up the apparent delay.
pub(crate) const PERHAPS_NOTHING: &str = "Perhaps nothing was slow: some keys and clicks draw \
    nothing by themselves, such as the first key of a two-key command.";
/// Remark if much time is unattributed instead.
const UNEXPLAINED: &str = "The records do not explain most of this time.";

/// Returns `Typing in xterm stalled for 2.31 s`. Without a cause it only states that an answer came
/// late, which the user may not have noticed.
pub(crate) fn symptom(verdict: &Verdict, interval: &Interval) -> String {
    match verdict.findings.first() {
        None => answered(interval),
        Some(_) if is_longest_only(verdict) => longest_wait(interval),
        Some(_) => stalled(interval),
    }
}

/// Returns `true` if the explained delay is not unusual, but the longest one before the mark.
pub(crate) fn is_longest_only(verdict: &Verdict) -> bool {
    verdict.findings.first().is_some_and(|first| !first.unusual)
}

/// Formats ``The longest wait was the command `make` in xterm, at least 3.00 s``.
fn longest_wait(interval: &Interval) -> String {
    let least = if interval.censored { "at least " } else { "" };
    format!("The longest wait was {}, {least}{}", interval.subject(), span(interval.latency_ms))
}

fn stalled(interval: &Interval) -> String {
    let least = if interval.censored { "at least " } else { "" };
    let open = if interval.censored { ", unfinished at the mark" } else { "" };
    let what = match interval.milestone.as_str() {
        _ if interval.class == "activity" => "stalled for",
        "handled" if interval.drew => "was handled only after",
        "handled" => "left it unresponsive for",
        _ if !interval.command.is_empty() => "took",
        "completed" => "was completed after",
        _ => "stalled for",
    };
    format!("{} {what} {least}{}{open}", subject(interval), span(interval.latency_ms))
}

fn answered(interval: &Interval) -> String {
    let (subject, span) = (subject(interval), span(interval.latency_ms));
    match interval.milestone.as_str() {
        _ if interval.class == "activity" => format!("{subject} was busy for {span}"),
        _ if interval.censored => format!("{subject} had shown nothing for {span} at the mark"),
        "handled" => {
            format!("{subject} was followed by {span} before the program waited for input again")
        }
        _ => format!("{subject} showed something new after {span}"),
    }
}

/// Formats `Nothing since the last answer took longer than 62 ms`.
pub(crate) fn since_answer(interval: Option<&Interval>) -> String {
    match interval {
        Some(interval) => {
            format!("Nothing since the last answer took longer than {}", span(interval.latency_ms))
        }
        None => "Nothing new since the last answer".to_owned(),
    }
}

/// Returns the awaited action for the start of a sentence; a program's name keeps its case.
fn subject(interval: &Interval) -> String {
    let subject = interval.subject();
    let mut rest = subject.chars();
    match rest.next() {
        Some(first) if !subject.starts_with(&interval.client.comm) => {
            first.to_uppercase().chain(rest).collect()
        }
        _ => subject,
    }
}

/// Formats `; usually it takes 14 ms`, or nothing if the usual time is not known to be shorter.
pub(crate) fn usually(baseline: Option<&Baseline>, interval: &Interval) -> String {
    let Some(known) = baseline else { return String::new() };
    match known.p98_ms.or(known.p50_ms) {
        Some(ms) if ms < interval.latency_ms => format!("; usually it takes {}", span(ms)),
        _ if known.max_ms < interval.latency_ms => {
            format!("; before, it took at most {}", span(known.max_ms))
        }
        _ => String::new(),
    }
}

/// Minimum share of the time for a further cause to be mentioned, in percent.
const FURTHER_MIN: f64 = 20.0;

/// Formats the first cause, as `backup saturated the disk that xterm was waiting for (98% of the
/// time)`, and other major ones, or explains their absence.
pub(crate) fn cause(verdict: &Verdict, interval: &Interval) -> String {
    let alike = alike(verdict, interval);
    match alike.first() {
        Some(first) => {
            let sentence = doubted("not sure, but perhaps ", first.finding, interval);
            let (sentence, share) =
                (capital(&sentence, first.finding), first.share(" of the time", interval));
            format!(
                "{sentence} ({share}).{}{}",
                further_causes(&alike[1..], interval),
                age(verdict, interval)
            )
        }
        None if percent(verdict.unattributed_ms, interval) >= 50.0 => {
            format!("No cause was found. {UNEXPLAINED}")
        }
        None => format!("No cause was found. {PERHAPS_NOTHING}"),
    }
}

/// Findings with the same clause, such as those of twelve jobs of one name: the first of them,
/// their total time, and their number.
struct Alike<'a> {
    finding: &'a Finding,
    ms: f64,
    count: usize,
}

impl Alike<'_> {
    /// Formats `98% of the time`, `92% of the time, 12 of that name`.
    fn share(&self, of: &str, interval: &Interval) -> String {
        let count =
            if self.count > 1 { format!(", {} of that name", self.count) } else { String::new() };
        format!("{:.0}%{of}{count}", percent(self.ms, interval))
    }
}

fn alike<'a>(verdict: &'a Verdict, interval: &Interval) -> Vec<Alike<'a>> {
    let mut all: Vec<Alike<'a>> = Vec::new();
    for finding in &verdict.findings {
        match all.iter_mut().find(|one| clause(one.finding, interval) == clause(finding, interval))
        {
            Some(one) => (one.ms, one.count) = (one.ms + finding.ms, one.count + 1),
            None => all.push(Alike { finding, ms: finding.ms, count: 1 }),
        }
    }
    all
}

/// Minimum time from the end of a delay to the mark, in nanoseconds, for it to be mentioned: the
/// user may mean something more recent.
const LONG_AGO: u64 = 10_000_000_000;

/// Formats the time from the end of the delay to the mark, unless it is short.
fn age(verdict: &Verdict, interval: &Interval) -> String {
    match verdict.incident.mark_ns.saturating_sub(interval.end_ns) {
        ns if ns < LONG_AGO => String::new(),
        ns => format!(" It ended {} before the mark.", span(ms(ns))),
    }
}

fn further_causes(further: &[Alike<'_>], interval: &Interval) -> String {
    let mut text = String::new();
    for one in further.iter().filter(|one| percent(one.ms, interval) >= FURTHER_MIN) {
        let clause = doubted("perhaps ", one.finding, interval);
        text += &format!(" Also, {clause} ({}).", one.share("", interval));
    }
    text
}

/// Formats a finding as a clause, with the doubt in front if the confidence is low.
fn doubted(doubt: &str, finding: &Finding, interval: &Interval) -> String {
    let doubt = if finding.confidence < SURE { doubt } else { "" };
    format!("{doubt}{}", clause(finding, interval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{CauseKind, Client, Culprit};

    /// Returns an interval of a second in xterm.
    fn interval() -> Interval {
        let client = Client { comm: "xterm".to_owned(), ..Client::default() };
        Interval { client, latency_ms: 1_000.0, ..Interval::default() }
    }

    /// Returns a finding about almost all of the interval.
    fn finding(kind: CauseKind, culprit: Culprit) -> Finding {
        Finding { kind, culprit, confidence: 0.9, ms: 980.0, ..Finding::default() }
    }

    fn process(comm: &str, job: Option<&str>) -> Culprit {
        let (comm, job) = (comm.to_owned(), job.map(str::to_owned));
        Culprit::Process { pid: 12, comm, cmdline: String::new(), job }
    }

    fn cause_of(findings: Vec<Finding>, interval: &Interval) -> String {
        cause(&Verdict { findings, ..Verdict::default() }, interval)
    }

    fn sentence(kind: CauseKind, culprit: Culprit, confidence: f64) -> String {
        let evidence = vec!["kill (pid 12) stopped xfwm4 (pid 7)".to_owned()];
        let finding = Finding { confidence, evidence, ..finding(kind, culprit) };
        let mut interval = interval();
        interval.client.pid = 12;
        cause_of(vec![finding], &interval)
    }

    #[test]
    fn jobs_of_one_name_share_a_sentence_and_others_follow() {
        let findings = [("backup", 300.0), ("index", 250.0), ("index", 240.0), ("cron", 100.0)]
            .map(|(name, ms)| Finding {
                ms,
                ..finding(CauseKind::CpuCompetition, process(name, None))
            });
        assert_eq!(
            cause_of(findings.to_vec(), &interval()),
            "backup took the CPU time that xterm needed (30% of the time). \
             Also, index took the CPU time that xterm needed (49%, 2 of that name)."
        );
    }

    /// Maximum length of a cause that is read at a glance.
    const LETTERS_MAX: usize = 140;
    /// Words that make a process a person, or the sentence hard to read.
    const UNWANTED: [&str; 6] = ["who", "whose", "tell", "told", "somebody", "nobody"];

    #[test]
    fn every_kind_has_a_sentence_without_process_ids() {
        for kind in CauseKind::CAUSES {
            let device = Culprit::Device { device: "sda".to_owned() };
            for culprit in
                [process("backup", Some("nightly (pid 3)")), process("xterm", None), device]
            {
                let text = sentence(*kind, culprit, 0.9);
                assert!(
                    text.ends_with(" (98% of the time).") && !text.contains("pid"),
                    "{kind}: {text}"
                );
                assert!(!text.contains('{') && text.len() > 30, "{kind}: {text}");
                assert!(!text.contains("  ") && text.len() < LETTERS_MAX, "{kind}: {text}");
                println!("{text}");
                let mut words = text.split(|letter: char| !letter.is_alphabetic());
                assert!(
                    !words.any(|word| UNWANTED.contains(&word.to_lowercase().as_str())),
                    "{kind}: {text}"
                );
            }
        }
    }

    #[test]
    fn the_culprit_stands_first_after_any_doubt() {
        let took = "cc1 (of make) took the CPU time that xterm needed (98% of the time).";
        let compiler = process("cc1", Some("make (pid 3)"));
        assert_eq!(sentence(CauseKind::CpuCompetition, compiler, 0.9), took);
        assert_eq!(
            sentence(CauseKind::LockWait, process("indexer", None), 0.6),
            "Not sure, but perhaps indexer held a lock that xterm was waiting for (98% of the \
             time)."
        );
        assert_eq!(
            sentence(CauseKind::Stopped, process("kill", None), 0.9),
            "kill stopped xfwm4 (98% of the time)."
        );
    }

    #[test]
    fn a_window_that_goes_on_drawing_is_not_unresponsive() {
        let [idle, drawing] = [false, true].map(|drew| {
            let (class, milestone) = ("key".to_owned(), "handled".to_owned());
            stalled(&Interval { class, milestone, latency_ms: 971.0, drew, ..interval() })
        });
        assert_eq!(idle, "Typing in xterm left it unresponsive for 971 ms");
        assert_eq!(drawing, "Typing in xterm was handled only after 971 ms");
    }

    #[test]
    fn the_process_that_needed_the_resource_is_named() {
        for (kind, culprit, clause) in [
            (CauseKind::CpuCompetition, "hog", "hog took the CPU time that sway needed"),
            (CauseKind::Reclaim, "hog", "Memory ran short: hog took what sway needed"),
            (CauseKind::CpuThrottled, "hog", "hog used up the CPU quota of sway's control group"),
            (CauseKind::CpuThrottled, "sway", "sway used up the CPU quota of its control group"),
            (CauseKind::PeerWait, "hog", "sway, for xterm, was waiting for an answer from hog"),
        ] {
            let waiter = "sway".to_owned();
            let finding = Finding { waiter, ..finding(kind, process(culprit, None)) };
            let text = cause_of(vec![finding], &interval());
            assert_eq!(text, format!("{clause} (98% of the time)."));
        }
    }

    #[test]
    fn the_program_that_waited_is_the_subject() {
        for (waiter, within, command, subject) in [
            ("", false, "", "xterm"),
            ("curl", true, "", "curl, in xterm,"),
            ("nslcd", false, "/bin/ls -l", "nslcd, for ls,"),
            ("curl", false, "/bin/curl http://a", "curl"),
            ("a-very-long-nam", false, "a-very-long-name x", "a-very-long-name"),
        ] {
            let culprit = Culprit::Address { address: "10.0.0.1:80".to_owned() };
            let finding = Finding {
                waiter: waiter.to_owned(),
                within,
                ..finding(CauseKind::NetworkWait, culprit)
            };
            let interval = Interval { command: command.to_owned(), ..interval() };
            let text = format!("{subject} was waiting for 10.0.0.1:80 on the network");
            assert_eq!(cause_of(vec![finding], &interval), text + " (98% of the time).");
        }
    }

    #[test]
    fn a_process_does_not_wait_for_its_own_answer() {
        for (pid, waiter, unowed, clause) in [
            (12, "", true, "xterm was waiting for an answer from an unknown sender"),
            (12, "seq", true, "seq was waiting for an answer from an unknown sender"),
            (8, "", false, "xterm was waiting for an answer from another xterm"),
            (12, "seq", false, "seq was waiting for an answer from xterm"),
        ] {
            let waiter = waiter.to_owned();
            let culprit = process("xterm", None);
            let finding = Finding { waiter, unowed, ..finding(CauseKind::PeerWait, culprit) };
            let mut interval = interval();
            interval.client.pid = pid;
            let text = cause_of(vec![finding], &interval);
            assert_eq!(text, format!("{clause} (98% of the time)."));
        }
    }

    #[test]
    fn a_lock_of_an_own_thread_names_no_other_program() {
        let mut interval = interval();
        interval.client.pid = 8;
        for (kind, waiter, comm, subject) in [
            (CauseKind::LockWait, "gdb", "gdb", "gdb, in xterm, was waiting for a lock"),
            (CauseKind::KernelLock, "", "xterm", "xterm was waiting for a kernel lock"),
        ] {
            let finding = Finding {
                waiter: waiter.to_owned(),
                within: !waiter.is_empty(),
                held_by_own_thread: true,
                ..finding(kind, process(comm, None))
            };
            let text = format!("{subject} held by another of its threads (98% of the time).");
            assert_eq!(cause_of(vec![finding], &interval), text);
        }
    }

    #[test]
    fn one_of_many_is_not_blamed_alone() {
        let rustc = finding(CauseKind::CpuCompetition, process("rustc", None));
        assert_eq!(
            cause_of(vec![Finding { others: 22, ..rustc }], &interval()),
            "rustc and others took the CPU time that xterm needed (98% of the time)."
        );
    }

    #[test]
    fn a_large_second_cause_is_added() {
        let first = "xterm was waiting for an answer from speller (50% of the time).";
        for (confidence, doubt) in [(0.9, ""), (0.6, "perhaps ")] {
            let findings = [
                (CauseKind::PeerWait, "speller", 500.0, 0.9),
                (CauseKind::LockWait, "mail", 300.0, confidence),
                (CauseKind::ServerBusy, "clock", 100.0, confidence),
            ]
            .map(|(kind, comm, ms, confidence)| Finding {
                ms,
                confidence,
                ..finding(kind, process(comm, None))
            });
            let second = format!("{doubt}mail held a lock that xterm was waiting for (30%).");
            assert_eq!(cause_of(findings.to_vec(), &interval()), format!("{first} Also, {second}"));
        }
    }

    #[test]
    fn a_delay_that_ended_long_before_the_mark_has_its_age() {
        let interval = Interval { end_ns: 5_000_000_000, ..interval() };
        let findings = vec![finding(CauseKind::Stall, Culprit::default())];
        let mut verdict = Verdict { findings, ..Verdict::default() };
        verdict.incident.mark_ns = 34_000_000_000;
        let text = cause(&verdict, &interval);
        assert!(text.ends_with(" (98% of the time). It ended 29.00 s before the mark."), "{text}");
        verdict.incident.mark_ns = 8_000_000_000;
        let text = cause(&verdict, &interval);
        assert!(text.ends_with(" (98% of the time)."), "{text}");
    }

    #[test]
    fn an_application_that_held_itself_up_is_it() {
        for (kind, clause) in [
            (CauseKind::Fsync, "xterm was waiting for data to be flushed to the disk"),
            (CauseKind::LockWait, "xterm held a lock that it was waiting for"),
            (CauseKind::CpuThrottled, "xterm used up the CPU quota of its control group"),
            (CauseKind::ChildWait, "xterm was waiting for another xterm to finish"),
        ] {
            let text = sentence(kind, process("xterm", None), 0.9);
            assert_eq!(text, format!("{clause} (98% of the time)."));
        }
        let comm = "xterm".to_owned();
        let other = Culprit::Process { pid: 13, comm, cmdline: String::new(), job: None };
        let another = "Another xterm held a lock that xterm was waiting for (98% of the time).";
        assert_eq!(sentence(CauseKind::LockWait, other, 0.9), another);
    }
}
