// SPDX-License-Identifier: MIT OR Apache-2.0
//! Symptom and cause in sentences for users without knowledge of schedulers.

use crate::figures::{percent, span};
use crate::kinds::about;
use tipme_analysis::SURE;
use tipme_analysis::model::{Baseline, CauseKind, Culprit, Finding, Interval, Verdict};
use tipme_measure::ms;

/// Remark if nothing held up the apparent delay.
pub(crate) const PERHAPS_NOTHING: &str = "Perhaps nothing was slow: some keys and clicks draw nothing by themselves, \
    such as the first key of a two-key command.";
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
    let less = |ms: &f64| *ms < interval.latency_ms;
    let usual = baseline.map(|known| (known.p98_ms.or(known.p50_ms).filter(less), known.max_ms));
    match usual {
        Some((Some(ms), _)) => format!("; usually it takes {}", span(ms)),
        Some((None, max)) if less(&max) => format!("; before it took {} at most", span(max)),
        _ => String::new(),
    }
}

/// Minimum share of the time for a further cause to be mentioned, in percent.
const BESIDES_MIN: f64 = 20.0;

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
                besides(&alike[1..], interval),
                ago(verdict, interval)
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
        match all.iter_mut().find(|one| of(one.finding, interval) == of(finding, interval)) {
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
fn ago(verdict: &Verdict, interval: &Interval) -> String {
    match verdict.incident.mark_ns.saturating_sub(interval.end_ns) {
        ns if ns < LONG_AGO => String::new(),
        ns => format!(" It ended {} before the mark.", span(ms(ns))),
    }
}

fn besides(further: &[Alike<'_>], interval: &Interval) -> String {
    let further = further.iter().filter(|one| percent(one.ms, interval) >= BESIDES_MIN);
    let also = |one: &Alike<'_>| {
        format!(
            " Also, {} ({}).",
            doubted("perhaps ", one.finding, interval),
            one.share("", interval)
        )
    };
    further.map(also).collect()
}

/// Formats a finding as a clause, with the doubt in front if the confidence is low.
fn doubted(doubt: &str, finding: &Finding, interval: &Interval) -> String {
    let doubt = if finding.confidence < SURE { doubt } else { "" };
    format!("{doubt}{}", of(finding, interval))
}

/// Formats a finding as a clause. For stops it uses the words of the evidence without process ids.
fn of(finding: &Finding, interval: &Interval) -> String {
    let app = program(interval).unwrap_or(&interval.client.comm);
    let about = about(finding.kind);
    let (clause, who) = match &finding.culprit {
        // The evidence describes these best.
        _ if finding.signalled || finding.unowed && finding.kind != CauseKind::PeerWait => {
            (None, String::new())
        }
        _ if !finding.unusual && is_of_command(finding.kind) && program(interval).is_some() => {
            (None, String::new())
        }
        _ if finding.unowed => {
            (Some("{app} was waiting for an answer from an unknown sender"), String::new())
        }
        Culprit::Process { .. }
            if finding.held_by_own_thread && finding.kind == CauseKind::KernelLock =>
        {
            (
                Some("{app} was waiting for a kernel lock held by another of its threads"),
                String::new(),
            )
        }
        Culprit::Process { .. } if finding.held_by_own_thread => {
            (Some("{app} was waiting for a lock held by another of its threads"), String::new())
        }
        Culprit::Process { comm, job, .. } if finding.kept_at_work => {
            (Some("{who} kept {waiter} busy"), process(comm, job.as_deref(), finding.kind))
        }
        Culprit::Process { comm, job, .. } => {
            (about.of_process, process(comm, job.as_deref(), finding.kind))
        }
        Culprit::Device { device } => (about.of_device, device.clone()),
        Culprit::Address { address } => (about.of_device, address.clone()),
    };
    let who = if finding.others > 0 { format!("{who} and others") } else { who };
    let waiter = waiter(finding, app);
    let placed = placed(waiter, app, finding, interval);
    let (clause, subject) = match clause {
        Some(clause) if clause.contains("{waiter}") => {
            (Some(clause.replace("{waiter}", "{app}")), waiter)
        }
        clause => (clause.map(str::to_owned), placed.as_str()),
    };
    match clause {
        Some(clause) if who == waiter => {
            of_namesake(&clause, waiter, subject, is_another(waiter, finding, interval))
        }
        Some(clause) => fill(&clause, subject, &who),
        None => without_pids(finding.evidence.first().map_or(finding.kind.name(), String::as_str)),
    }
}

/// Returns the program that waited. If it is not the awaited one, the program it belongs to is
/// added: `curl, in xterm,` or `nslcd, for ls,`.
fn placed(waiter: &str, app: &str, finding: &Finding, interval: &Interval) -> String {
    match interval.client.comm.as_str() {
        _ if waiter == app || finding.unowed || is_application(finding, interval) => {
            waiter.to_owned()
        }
        client if finding.within => format!("{waiter}, in {client},"),
        _ => format!("{waiter}, for {app},"),
    }
}

/// Returns `true` for kinds that are normal activity of a command.
fn is_of_command(kind: CauseKind) -> bool {
    matches!(kind, CauseKind::OwnComputation | CauseKind::TimerSleep | CauseKind::ChildWait)
}

/// Returns the program of the awaited command, without its directory and arguments.
fn program(interval: &Interval) -> Option<&str> {
    let path =
        interval.command.split(' ').next().filter(|path| !interval.prompt && !path.is_empty())?;
    path.rsplit('/').next()
}

/// Returns `true` if the application itself is the culprit.
fn is_application(finding: &Finding, interval: &Interval) -> bool {
    matches!(finding.culprit, Culprit::Process { pid, .. } if pid == interval.client.pid)
}

/// Returns `true` if the application waited for another process of its name. For commands and
/// helpers only the name of the waiter is known.
fn is_another(waiter: &str, finding: &Finding, interval: &Interval) -> bool {
    program(interval).is_none()
        && waiter == interval.client.comm
        && !is_application(finding, interval)
}

/// Maximum length of a process name; the kernel cuts longer ones.
const NAME_MAX: usize = 15;

/// Returns the program that was held up directly, by its full name if it is the awaited one.
fn waiter<'a>(finding: &'a Finding, app: &'a str) -> &'a str {
    match finding.waiter.as_str() {
        "" => app,
        cut if cut.len() == NAME_MAX && app.starts_with(cut) => app,
        name => name,
    }
}

/// Formats a clause in which the culprit has the same name as the waiter, which is the subject or
/// its first word; `another` if it is known to be another process.
fn of_namesake(clause: &str, waiter: &str, subject: &str, another: bool) -> String {
    match clause.split_once(", ") {
        _ if !another && !clause.starts_with("{app}") && subject == waiter => {
            clause.replace("{app}'s", "its").replace("{app}", "it").replace("{who}", waiter)
        }
        _ if !clause.contains("{app}") => fill(clause, subject, waiter),
        _ if !clause.starts_with("{app}") => fill(clause, subject, &format!("another {waiter}")),
        Some((own, _)) => own.replace("{app}", subject),
        None => fill(clause, subject, &format!("another {waiter}")),
    }
}

/// Fills in the names; a placeholder inside a name is left alone.
fn fill(clause: &str, app: &str, who: &str) -> String {
    clause.split("{who}").map(|part| part.replace("{app}", app)).collect::<Vec<_>>().join(who)
}

/// Formats `cc1 (of make)`, or the name alone if the process is its own job.
fn process(comm: &str, job: Option<&str>, kind: CauseKind) -> String {
    let name = job.map(|job| job.split(" (").next().unwrap_or(job).trim_matches('"'));
    match name.filter(|name| *name != comm && kind != CauseKind::CpuThrottled) {
        Some(name) if comm.is_empty() => name.to_owned(),
        Some(name) => format!("{comm} (of {name})"),
        None => comm.to_owned(),
    }
}

/// Removes every ` (pid 12)` from a text; ` (pid 12, job "make")` becomes ` (of make)`.
fn without_pids(text: &str) -> String {
    let mut parts = text.split(" (pid ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        match (
            rest.strip_prefix(')'),
            rest.strip_prefix(", job \"").and_then(|job| job.split_once("\")")),
        ) {
            (Some(rest), _) => told + rest,
            (None, Some((job, rest))) if told.ends_with(job) => told + rest,
            (None, Some((job, rest))) => told + " (of " + job + ")" + rest,
            (None, None) => told + " (" + rest.trim_start_matches(", "),
        }
    })
}

/// Capitalises the start of a sentence unless it is a program's name.
fn capital(sentence: &str, finding: &Finding) -> String {
    let name = match &finding.culprit {
        Culprit::Process { comm, .. } => comm.as_str(),
        Culprit::Device { device } if device.starts_with("the ") => "",
        Culprit::Device { device } => device.as_str(),
        Culprit::Address { address } => address.as_str(),
    };
    let words = ["not sure", "the ", "memory ", "interrupts ", "a ", "another "];
    if !words.iter().any(|word| sentence.starts_with(word))
        || !name.is_empty() && sentence.starts_with(&format!("{name} "))
    {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::Client;

    fn sentence(kind: CauseKind, culprit: Culprit, confidence: f64) -> String {
        let client = Client { comm: "xterm".to_owned(), pid: 12, ..Client::default() };
        let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
        let evidence = vec!["kill (pid 12) stopped xfwm4 (pid 7)".to_owned()];
        let finding =
            Finding { kind, culprit, confidence, ms: 980.0, evidence, ..Finding::default() };
        cause(&Verdict { findings: vec![finding], ..Verdict::default() }, &interval)
    }

    #[test]
    fn jobs_of_one_name_share_a_sentence_and_others_follow() {
        let took = |name: &str, ms| Finding {
            kind: CauseKind::CpuCompetition,
            culprit: process(name, None),
            ms,
            confidence: 0.9,
            ..Finding::default()
        };
        let findings = vec![
            took("backup", 300.0),
            took("index", 250.0),
            took("index", 240.0),
            took("cron", 100.0),
        ];
        let client = Client { comm: "xterm".to_owned(), ..Client::default() };
        let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
        let text = cause(&Verdict { findings, ..Verdict::default() }, &interval);
        let wanted = "backup took the CPU time that xterm needed (30% of the time). Also, index took the CPU time that \
                      xterm needed (49%, 2 of that name).";
        assert_eq!(text, wanted);
    }

    fn process(comm: &str, job: Option<&str>) -> Culprit {
        Culprit::Process {
            pid: 12,
            comm: comm.to_owned(),
            cmdline: String::new(),
            job: job.map(str::to_owned),
        }
    }

    /// Maximum length of a cause that is read at a glance.
    const LETTERS_MAX: usize = 140;
    /// Words that make processes persons, or the sentence hard to read.
    const UNWANTED: [&str; 6] = ["who", "whose", "tell", "told", "somebody", "nobody"];

    #[test]
    fn every_kind_is_a_sentence_without_a_number_of_a_process() {
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
        assert_eq!(
            sentence(CauseKind::CpuCompetition, process("cc1", Some("make (pid 3)")), 0.9),
            took
        );
        let unsure = sentence(CauseKind::LockWait, process("indexer", None), 0.6);
        assert_eq!(
            unsure,
            "Not sure, but perhaps indexer held a lock that xterm was waiting for (98% of the time)."
        );
        assert_eq!(
            sentence(CauseKind::Stopped, process("kill", None), 0.9),
            "kill stopped xfwm4 (98% of the time)."
        );
        let stopped = "saver (pid 12, job \"timeout\") stopped xfwm4 (pid 7, of user 3)";
        assert_eq!(without_pids(stopped), "saver (of timeout) stopped xfwm4 (of user 3)");
        assert_eq!(
            without_pids("bash (pid 12, job \"bash\") stopped xterm (pid 7)"),
            "bash stopped xterm"
        );
    }

    #[test]
    fn a_window_that_goes_on_drawing_is_not_unresponsive() {
        let symptom = |drew| {
            let client = Client { comm: "xterm".to_owned(), ..Client::default() };
            let (class, milestone) = ("key".to_owned(), "handled".to_owned());
            stalled(&Interval {
                client,
                class,
                milestone,
                latency_ms: 971.0,
                drew,
                ..Interval::default()
            })
        };
        assert_eq!(symptom(false), "Typing in xterm left it unresponsive for 971 ms");
        assert_eq!(symptom(true), "Typing in xterm was handled only after 971 ms");
    }

    #[test]
    fn the_process_that_needed_the_resource_is_named() {
        let text = |kind, comm| {
            let client = Client { comm: "xterm".to_owned(), ..Client::default() };
            let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
            let waiter = "sway".to_owned();
            let culprit = process(comm, None);
            let finding =
                Finding { kind, culprit, waiter, confidence: 0.9, ms: 980.0, ..Finding::default() };
            cause(&Verdict { findings: vec![finding], ..Verdict::default() }, &interval)
        };
        let hog = |kind| text(kind, "hog");
        assert_eq!(
            hog(CauseKind::CpuCompetition),
            "hog took the CPU time that sway needed (98% of the time)."
        );
        assert_eq!(
            hog(CauseKind::Reclaim),
            "Memory ran short: hog took what sway needed (98% of the time)."
        );
        let quota = "hog used up the CPU quota of sway's control group (98% of the time).";
        assert_eq!(hog(CauseKind::CpuThrottled), quota);
        let own = quota.replace("hog", "sway").replace("sway's", "its");
        assert_eq!(text(CauseKind::CpuThrottled, "sway"), own);
        let answer = "sway, for xterm, was waiting for an answer from hog (98% of the time).";
        assert_eq!(hog(CauseKind::PeerWait), answer);
    }

    #[test]
    fn the_program_that_waited_is_the_subject() {
        let text = |waiter: &str, within, command: &str| {
            let client = Client { comm: "xterm".to_owned(), ..Client::default() };
            let interval = Interval {
                client,
                latency_ms: 1_000.0,
                command: command.to_owned(),
                ..Interval::default()
            };
            let (kind, waiter) = (CauseKind::NetworkWait, waiter.to_owned());
            let culprit = Culprit::Address { address: "10.0.0.1:80".to_owned() };
            let finding = Finding {
                kind,
                culprit,
                waiter,
                within,
                confidence: 0.9,
                ms: 980.0,
                ..Finding::default()
            };
            cause(&Verdict { findings: vec![finding], ..Verdict::default() }, &interval)
        };
        let waited = |subject: &str| {
            format!("{subject} was waiting for 10.0.0.1:80 on the network (98% of the time).")
        };
        assert_eq!(text("", false, ""), waited("xterm"));
        assert_eq!(text("curl", true, ""), waited("curl, in xterm,"));
        assert_eq!(text("nslcd", false, "/bin/ls -l"), waited("nslcd, for ls,"));
        assert_eq!(text("curl", false, "/bin/curl http://a"), waited("curl"));
        assert_eq!(
            text("a-very-long-nam", false, "a-very-long-name x"),
            waited("a-very-long-name")
        );
    }

    #[test]
    fn nobody_owes_itself_an_answer() {
        let text = |pid, waiter: &str, unowed| {
            let client = Client { comm: "xterm".to_owned(), pid, ..Client::default() };
            let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
            let (kind, culprit, waiter) =
                (CauseKind::PeerWait, process("xterm", None), waiter.to_owned());
            let finding = Finding {
                kind,
                culprit,
                waiter,
                unowed,
                confidence: 0.9,
                ms: 1_000.0,
                ..Finding::default()
            };
            cause(&Verdict { findings: vec![finding], ..Verdict::default() }, &interval)
        };
        assert_eq!(
            text(12, "", true),
            "xterm was waiting for an answer from an unknown sender (100% of the time)."
        );
        assert_eq!(
            text(12, "seq", true),
            "seq was waiting for an answer from an unknown sender (100% of the time)."
        );
        assert_eq!(
            text(8, "", false),
            "xterm was waiting for an answer from another xterm (100% of the time)."
        );
        assert_eq!(
            text(12, "seq", false),
            "seq was waiting for an answer from xterm (100% of the time)."
        );
    }

    #[test]
    fn a_lock_of_an_own_thread_names_no_other_program() {
        let client = Client { comm: "xterm".to_owned(), pid: 8, ..Client::default() };
        let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
        let sentence = |kind, waiter: &str, comm| {
            let (waiter, within) = (waiter.to_owned(), !waiter.is_empty());
            let (culprit, confidence, ms) = (process(comm, None), 0.9, 980.0);
            let finding =
                Finding { kind, culprit, waiter, within, confidence, ms, ..Finding::default() };
            let findings = vec![Finding { held_by_own_thread: true, ..finding }];
            cause(&Verdict { findings, ..Verdict::default() }, &interval)
        };
        let held = "held by another of its threads (98% of the time).";
        let lock = format!("gdb, in xterm, was waiting for a lock {held}");
        assert_eq!(sentence(CauseKind::LockWait, "gdb", "gdb"), lock);
        let kernel_lock = format!("xterm was waiting for a kernel lock {held}");
        assert_eq!(sentence(CauseKind::KernelLock, "", "xterm"), kernel_lock);
    }

    #[test]
    fn one_of_many_is_not_blamed_alone() {
        let client = Client { comm: "xterm".to_owned(), ..Client::default() };
        let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
        let culprit = process("rustc", None);
        let kind = CauseKind::CpuCompetition;
        let finding =
            Finding { kind, culprit, confidence: 0.9, ms: 500.0, others: 22, ..Finding::default() };
        let text = cause(&Verdict { findings: vec![finding], ..Verdict::default() }, &interval);
        assert_eq!(text, "rustc and others took the CPU time that xterm needed (50% of the time).");
    }

    #[test]
    fn a_large_second_cause_is_added() {
        let client = Client { comm: "xterm".to_owned(), ..Client::default() };
        let interval = Interval { client, latency_ms: 1_000.0, ..Interval::default() };
        let finding = |kind, comm, ms| Finding {
            kind,
            culprit: process(comm, None),
            ms,
            ..Finding::default()
        };
        let text = |confidence| {
            let findings = vec![
                Finding { confidence: 0.9, ..finding(CauseKind::PeerWait, "speller", 500.0) },
                Finding { confidence, ..finding(CauseKind::LockWait, "mail", 300.0) },
                Finding { confidence, ..finding(CauseKind::ServerBusy, "clock", 100.0) },
            ];
            cause(&Verdict { findings, ..Verdict::default() }, &interval)
        };
        let first = "xterm was waiting for an answer from speller (50% of the time).";
        assert_eq!(
            text(0.9),
            format!("{first} Also, mail held a lock that xterm was waiting for (30%).")
        );
        assert_eq!(
            text(0.6),
            format!("{first} Also, perhaps mail held a lock that xterm was waiting for (30%).")
        );
    }

    #[test]
    fn a_name_is_never_a_place_for_another() {
        assert_eq!(fill("{who} held {app} up", "{who}", "{app}"), "{app} held {who} up");
    }

    #[test]
    fn a_delay_that_ended_long_before_the_mark_has_its_age() {
        let interval =
            Interval { end_ns: 5_000_000_000, latency_ms: 1_000.0, ..Interval::default() };
        let findings = vec![Finding {
            kind: CauseKind::Stall,
            ms: 980.0,
            confidence: 0.9,
            ..Finding::default()
        }];
        let mut verdict = Verdict { findings, ..Verdict::default() };
        verdict.incident.mark_ns = 34_000_000_000;
        assert!(
            cause(&verdict, &interval)
                .ends_with(" (98% of the time). It ended 29.00 s before the mark.")
        );
        verdict.incident.mark_ns = 8_000_000_000;
        assert!(cause(&verdict, &interval).ends_with(" (98% of the time)."));
    }

    #[test]
    fn an_application_that_held_itself_up_is_it() {
        let own = |kind| sentence(kind, process("xterm", None), 0.9);
        assert_eq!(
            own(CauseKind::Fsync),
            "xterm was waiting for data to be flushed to the disk (98% of the time)."
        );
        assert_eq!(
            own(CauseKind::LockWait),
            "xterm held a lock that it was waiting for (98% of the time)."
        );
        let quota = "xterm used up the CPU quota of its control group (98% of the time).";
        assert_eq!(own(CauseKind::CpuThrottled), quota);
        let other = Culprit::Process {
            pid: 13,
            comm: "xterm".to_owned(),
            cmdline: String::new(),
            job: None,
        };
        let another = "Another xterm held a lock that xterm was waiting for (98% of the time).";
        assert_eq!(sentence(CauseKind::LockWait, other, 0.9), another);
        assert_eq!(
            own(CauseKind::ChildWait),
            "xterm was waiting for another xterm to finish (98% of the time)."
        );
    }
}
