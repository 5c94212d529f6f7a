// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the recorder, one line per subject.

use super::resuming::{INPUT_KEY, resume, without_input};
use crate::incidents::times;
use crate::{record, suggestion};
use rustix::process::geteuid;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tipme_analysis::clean;
use tipme_control::{CallError, Focused, RecordedDetail, RecorderStatus};
use tipme_desktop::clock;
use tipme_record::Nanos;
use tipme_store::id_at;

/// Reasons for a short history.
const BEGAN_THEN: &str = " (recording began then)";
const MEMORY_FULL: &str = " (all that fits; enlarge the memory with tipme record --memory)";

/// Returns label and text of each line.
pub fn lines(status: &RecorderStatus) -> Vec<(&'static str, String)> {
    let may: Vec<String> = status.allowed.iter().map(|uid| record::user_name(*uid)).collect();
    let displays =
        if status.displays.is_empty() { "none".to_owned() } else { status.displays.join(" ") };
    let input = match status.keys {
        true => "recorded: that a key was pressed, never which".to_owned(),
        false => without_input(status, INPUT_KEY),
    };
    let mut lines = vec![
        ("recording", recording(status)),
        ("held", held(status, age(status))),
        ("ended programs", ended(status)),
        ("lost", lost(status.lost)),
        ("displays", displays),
        ("input", input),
        ("may mark", [vec!["root".to_owned()], may].concat().join(", ")),
        ("you may mark", format!("because {}", status.because)),
    ];
    lines.extend(status.details.iter().map(|detail| ("more detail", more_detail(detail))));
    let day = if status.day {
        "counted by application and hour: tipme day"
    } else {
        "not counted; to enable it: tipme setup --day"
    };
    lines.push(("your day", day.to_owned()));
    lines.extend(suggestion::words(status).map(|words| ("auto marks", words)));
    lines.extend(status.tolerances.iter().map(|one| ("tolerance", suggestion::tolerance(one))));
    lines.extend(status.focus.iter().map(|focused| ("focus", focus(focused))));
    lines.extend(status.missing.iter().map(|missing| ("not recorded", missing.clone())));
    lines
}

/// Describes a recorder that does not answer this user; the headline has the reason.
pub fn unavailable(error: &CallError) -> &'static str {
    match error {
        CallError::Nobody { .. } => "nothing",
        CallError::Refused(_) => "by a recorder that you may not use yet",
        _ => "unknown",
    }
}

fn recording(status: &RecorderStatus) -> String {
    match status.paused_since_ns {
        Some(_) => paused(status),
        None => format!("since {} (process {})", wall(status.armed_ns), status.pid),
    }
}

/// Describes a paused recording: time, user, and the remedy.
pub fn paused(status: &RecorderStatus) -> String {
    let since = wall(status.paused_since_ns.unwrap_or_default());
    let by = status.paused_by_uid.unwrap_or_default();
    let remedy = resume(by, geteuid().as_raw(), "Ctrl+Alt+Plus");
    format!("paused since {since} by {}; {remedy}", record::user_name(by))
}

/// Describes additional detail in the recording: start, end, and the requesting user.
fn more_detail(detail: &RecordedDetail) -> String {
    let name = clean(&detail.name);
    let until = match (detail.until_ns, detail.by_uid) {
        (Some(until), Some(uid)) => {
            format!(" until {}, requested by {}", wall(until), record::user_name(uid))
        }
        _ => ", by the recorder's option --detail".to_owned(),
    };
    format!("{name} since {}{until}", wall(detail.since_ns))
}

/// Describes the client with the keyboard focus on a compositor.
fn focus(focused: &Focused) -> String {
    let client = focused.client.map_or("none of yours".to_owned(), process);
    clean(&format!("{client}, under {}", process(focused.server)))
}

fn process(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} (process {pid})", name.trim_end())
}

fn lost(records: u64) -> String {
    match records {
        0 => "nothing".to_owned(),
        1 => "1 record since recording began".to_owned(),
        _ => format!("{records} records since recording began"),
    }
}

/// Describes the contents of a mark, and the reason if it holds less than requested; `age` is the
/// run time of the recorder.
fn held(status: &RecorderStatus, age: Duration) -> String {
    if status.paused_since_ns.is_some() {
        return "nothing can be marked until recording resumes; earlier records are gone"
            .to_owned();
    }
    let why = if status.held_s >= status.window_s {
        ""
    } else if status.held_s + 1.0 >= age.as_secs_f64() {
        BEGAN_THEN
    } else {
        MEMORY_FULL
    };
    let held = status.held_s.min(status.window_s);
    format!("the last {held:.0} s{why}; a mark keeps at most {:.0} s", status.window_s)
}

/// Describes the period for which ended programs are known.
fn ended(status: &RecorderStatus) -> String {
    let why = match status.ended_bound.as_str() {
        "memory" => MEMORY_FULL,
        "start" => BEGAN_THEN,
        _ => " (as long as they are kept)",
    };
    let (minutes, seconds) = (status.ended_s / 60.0, status.ended_s);
    let span =
        if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{minutes:.0} min") };
    format!("known for the last {span}{why}")
}

/// Returns the time since recording began.
fn age(status: &RecorderStatus) -> Duration {
    Duration::from_nanos(clock::now().since(Nanos(status.armed_ns)).0)
}

/// Formats a CLOCK_MONOTONIC time in local time.
fn wall(at_ns: u64) -> String {
    let (now, at) = (clock::now(), Nanos(at_ns));
    let wall = Duration::from_nanos(at.since(now).0)
        + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    times::local(&id_at(
        wall.saturating_sub(Duration::from_nanos(now.since(at).0)).as_nanos() as u64
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_window_says_why() {
        let paused =
            RecorderStatus { held_s: 40.0, paused_since_ns: Some(1), ..RecorderStatus::default() };
        assert!(held(&paused, Duration::from_secs(90)).starts_with("nothing can be marked"));
        for (held_s, age_s, kept) in [
            (70.0, 90, "the last 40 s".to_owned()),
            (9.5, 10, "the last 10 s (recording began then)".to_owned()),
            (12.0, 90, format!("the last 12 s{MEMORY_FULL}")),
        ] {
            let status = RecorderStatus { held_s, window_s: 40.0, ..RecorderStatus::default() };
            let words = held(&status, Duration::from_secs(age_s));
            assert_eq!(words, kept + "; a mark keeps at most 40 s");
        }
    }

    #[test]
    fn the_bound_of_ended_programs_is_shown() {
        for (ended_s, bound, words) in [
            (600.0, "time", "10 min (as long as they are kept)".to_owned()),
            (7.2, "start", "7 s (recording began then)".to_owned()),
            (181.0, "memory", format!("3 min{MEMORY_FULL}")),
        ] {
            let status = RecorderStatus {
                ended_s,
                ended_bound: bound.to_owned(),
                ..RecorderStatus::default()
            };
            assert_eq!(ended(&status), format!("known for the last {words}"));
        }
    }

    #[test]
    fn more_detail_names_its_span_and_its_user() {
        let (name, now) = ("locks".to_owned(), clock::now().0);
        let until = now + 60_000_000_000;
        let (began, ends) = (wall(now), wall(until));
        assert!(began < ends, "{began} {ends}");
        let mut detail =
            RecordedDetail { name, since_ns: now, until_ns: Some(until), by_uid: Some(4242) };
        let words = format!("locks since {began} until {ends}, requested by 4242");
        assert_eq!(more_detail(&detail), words);
        (detail.until_ns, detail.by_uid) = (None, None);
        let words = format!("locks since {began}, by the recorder's option --detail");
        assert_eq!(more_detail(&detail), words);
    }
}
