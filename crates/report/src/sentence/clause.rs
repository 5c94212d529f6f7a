// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finding as a clause, for the middle of a sentence.

use crate::kinds::about;
use tipme_analysis::model::{CauseKind, Culprit, Finding, Interval};

/// Formats a finding as a clause. For stops it uses the words of the evidence without process ids.
pub(super) fn clause(finding: &Finding, interval: &Interval) -> String {
    let app = program(interval).unwrap_or(&interval.client.comm);
    let about = about(finding.kind);
    let clause = match &finding.culprit {
        // The evidence describes these best.
        _ if finding.signalled || finding.unowed && finding.kind != CauseKind::PeerWait => None,
        _ if !finding.unusual && is_of_command(finding.kind) && program(interval).is_some() => None,
        _ if finding.unowed => Some("{app} was waiting for an answer from an unknown sender"),
        Culprit::Process { .. } if finding.held_by_own_thread => Some(match finding.kind {
            CauseKind::KernelLock => {
                "{app} was waiting for a kernel lock held by another of its threads"
            }
            _ => "{app} was waiting for a lock held by another of its threads",
        }),
        Culprit::Process { .. } if finding.kept_at_work => Some("{culprit} kept {waiter} busy"),
        Culprit::Process { .. } => about.of_process,
        Culprit::Device { .. } | Culprit::Address { .. } => about.of_device,
    };
    let culprit = culprit(finding);
    let waiter = waiter(finding, app);
    let placed = placed(waiter, app, finding, interval);
    let (clause, subject) = match clause {
        Some(clause) if clause.contains("{waiter}") => {
            (Some(clause.replace("{waiter}", "{app}")), waiter)
        }
        clause => (clause.map(str::to_owned), placed.as_str()),
    };
    match clause {
        Some(clause) if culprit == waiter => {
            clause_of_namesake(&clause, waiter, subject, is_another(waiter, finding, interval))
        }
        Some(clause) => fill(&clause, subject, &culprit),
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
fn clause_of_namesake(clause: &str, waiter: &str, subject: &str, another: bool) -> String {
    match clause.split_once(", ") {
        _ if !another && !clause.starts_with("{app}") && subject == waiter => {
            clause.replace("{app}'s", "its").replace("{app}", "it").replace("{culprit}", waiter)
        }
        _ if !clause.contains("{app}") => fill(clause, subject, waiter),
        _ if !clause.starts_with("{app}") => fill(clause, subject, &format!("another {waiter}")),
        Some((own, _)) => own.replace("{app}", subject),
        None => fill(clause, subject, &format!("another {waiter}")),
    }
}

/// Fills in the names; a placeholder inside a name is left alone.
fn fill(clause: &str, app: &str, culprit: &str) -> String {
    let parts = clause.split("{culprit}").map(|part| part.replace("{app}", app));
    parts.collect::<Vec<_>>().join(culprit)
}

/// Returns the name of the culprit: `cc1 (of make)`, or the name alone if the process is its own
/// job.
fn culprit(finding: &Finding) -> String {
    let name = match &finding.culprit {
        Culprit::Process { comm, job, .. } => {
            let job = job.as_deref().map(|job| job.split(" (").next().unwrap_or(job));
            match job.map(|job| job.trim_matches('"')).filter(|job| job != comm) {
                Some(_) if finding.kind == CauseKind::CpuThrottled => comm.clone(),
                Some(job) if comm.is_empty() => job.to_owned(),
                Some(job) => format!("{comm} (of {job})"),
                None => comm.clone(),
            }
        }
        Culprit::Device { device: name } | Culprit::Address { address: name } => name.clone(),
    };
    if finding.others > 0 { name + " and others" } else { name }
}

/// Removes every ` (pid 12)` from a text; ` (pid 12, job "make")` becomes ` (of make)`.
fn without_pids(text: &str) -> String {
    let mut parts = text.split(" (pid ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let job = rest.strip_prefix(", job \"").and_then(|job| job.split_once("\")"));
        out += &match (rest.strip_prefix(')'), job) {
            (Some(rest), _) => rest.to_owned(),
            (None, Some((job, rest))) if out.ends_with(job) => rest.to_owned(),
            (None, Some((job, rest))) => format!(" (of {job}){rest}"),
            (None, None) => format!(" ({}", rest.trim_start_matches(", ")),
        };
    }
    out
}

/// Capitalises the start of a sentence unless it is a program's name.
pub(super) fn capital(sentence: &str, finding: &Finding) -> String {
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

    #[test]
    fn process_ids_are_removed_and_jobs_kept() {
        let stopped = "saver (pid 12, job \"timeout\") stopped xfwm4 (pid 7, of user 3)";
        assert_eq!(without_pids(stopped), "saver (of timeout) stopped xfwm4 (of user 3)");
        let stopped = "bash (pid 12, job \"bash\") stopped xterm (pid 7)";
        assert_eq!(without_pids(stopped), "bash stopped xterm");
    }

    #[test]
    fn a_name_is_never_a_placeholder() {
        let clause = fill("{culprit} held {app} up", "{culprit}", "{app}");
        assert_eq!(clause, "{app} held {culprit} up");
    }
}
