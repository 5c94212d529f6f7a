// SPDX-License-Identifier: MIT OR Apache-2.0
//! Automatic marks: selection of the latencies to examine, and of the examined ones to keep.
//!
//! The kernel's coarse figures only raise a suspicion. The diagnosis examines it in a process of
//! its own; only a latency with a cause is kept, and each cause at most once an hour. All of it is
//! bounded, since a machine in trouble raises suspicions all the time. The limit for an unusual
//! latency depends on the baseline and on the user's verdicts, separately for pointer and wheel,
//! and for keys and clicks.

use crate::judge::{JudgedCause, Judgement};
use crate::learning::{Learning, class, is_of_pointer};
use crate::processes;
use crate::tolerances::{Subject, Tolerances};
use std::collections::VecDeque;
use std::path::PathBuf;
use tipme_control::{AutoCounts, journal};
use tipme_kernel::{AnswersRead, Kernel, OpenPresses, ToldAnswer};
use tipme_measure::{ClassLimits, InputClass, PersonSaid, ThresholdProfile};
use tipme_record::{Nanos, Pid, named};

/// Maximum number of examinations per hour: each takes a second or two of otherwise idle CPU time.
const LOOKS_MAX: usize = 20;

/// Maximum number of those for doubtful suspicions.
const DOUBTS_MAX: usize = 5;

/// Minimum time between two examinations.
const APART: Nanos = Nanos::from_secs(20);

const HOUR: Nanos = Nanos::from_secs(3600);

/// Time without open presses after which a client is quiet: its work for them is over.
const QUIET: Nanos = Nanos::from_millis(300);

/// Maximum time to wait until a client becomes quiet.
const QUIET_MAX: Nanos = Nanos::from_secs(3);

/// Maximum age of a suspicion: beyond this its records are being overwritten.
const STALE: Nanos = Nanos::from_secs(30);

/// Minimum limit for a prompt drawing after the last of several presses: it may answer that one
/// alone.
const PROMPT: Nanos = Nanos::from_millis(20);

/// Number of presses without an answer from which on they can hardly all be of a kind that needs
/// none.
const PRESSES_MANY: u32 = 4;

/// Shortest answer that can be unusually long.
const NOTABLE: Nanos = Nanos::from_millis(50);

/// Age of the answers that a mark can refer to.
const MARKED_WITHIN: Nanos = Nanos::from_secs(40);

/// Maximum number of long answers remembered for a mark.
const RECENT_MAX: usize = 64;

/// Number of answers from which on an application is known to answer.
const KNOWN_N: u64 = 50;

/// Age below which a program may still be starting: a late reaction to the pointer is not
/// suspicious.
const STARTS: Nanos = Nanos::from_secs(10);

named! {
    /// Action on a finding.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AutoMode {
        /// Keep an incident.
        Mark = "mark",
        /// Log what would be marked, and keep no file.
        DryRun = "dry-run",
    }
}

/// Options of automatic marks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AutoOptions {
    pub mode: AutoMode,
    /// Maximum number of marks per hour.
    pub per_hour: usize,
    /// Program of the diagnosis: called as `judge … --json --at SECONDS` with the incident on
    /// standard input.
    pub judge: PathBuf,
}

/// A latency that may be worth a mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suspicion {
    pub(crate) class: InputClass,
    pub(crate) application: String,
    /// User id of the program's owner.
    pub(crate) uid: u32,
    pub(crate) client: Pid,
    pub(crate) slot: usize,
    pub(crate) latency: Nanos,
    /// Time at which it ended or, if still open, became suspicious.
    pub(crate) at: Nanos,
    /// Time of the first press, if it is still open.
    open_since: Option<Nanos>,
    /// Only the times of the presses support it.
    doubtful: bool,
}

/// A long answer within the limits.
struct RecentAnswer {
    at: Nanos,
    latency: Nanos,
    class: InputClass,
    subject: Subject,
}

/// Result of an examination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Worth a file or a line: description and cause.
    Marked(String, JudgedCause),
    /// Not worth either.
    Dropped,
}

/// The pending suspicion, and the actions of the last hour.
pub(crate) struct AutoMarker {
    pub(crate) options: AutoOptions,
    pub(crate) tolerances: Tolerances,
    read: AnswersRead,
    recent: VecDeque<RecentAnswer>,
    suspicion: Option<Suspicion>,
    /// Start of the time without open presses of the suspected client.
    quiet_since: Option<Nanos>,
    looks: VecDeque<(Nanos, bool)>,
    kept: VecDeque<(Nanos, JudgedCause)>,
    /// Slot and first press of the unfinished suspicion that was examined last.
    looked_open: Option<(usize, Nanos)>,
    pub(crate) counts: AutoCounts,
}

impl AutoMarker {
    pub(crate) fn new(options: AutoOptions, tolerances: Tolerances) -> AutoMarker {
        AutoMarker {
            options,
            tolerances,
            recent: VecDeque::new(),
            read: AnswersRead::default(),
            suspicion: None,
            quiet_since: None,
            looks: VecDeque::new(),
            kept: VecDeque::new(),
            looked_open: None,
            counts: AutoCounts::default(),
        }
    }

    /// Returns the suspicion to examine now, if any. Call at every tick.
    pub(crate) fn tick(
        &mut self,
        kernel: &Kernel<'_>,
        learning: &mut Learning,
        now: Nanos,
    ) -> Option<Suspicion> {
        self.read(kernel, learning, now);
        let open = kernel.open_presses();
        if open.iter().any(|open| is_late(open, now)) {
            learning.merge(kernel, now);
        }
        let looked = self.looked_open;
        for open in open.iter().filter(|open| looked != Some((open.slot, open.since))) {
            let suspicion = weigh_open(open, learning, &self.tolerances, now);
            self.suspect(suspicion);
        }
        self.due(&open, now)
    }

    /// Weighs the answers since the last call.
    fn read(&mut self, kernel: &Kernel<'_>, learning: &mut Learning, now: Nanos) {
        let mut answers = kernel.answers(&mut self.read);
        answers.retain(|answer| answer.first >= NOTABLE);
        if !answers.is_empty() {
            learning.merge(kernel, now);
        }
        for answer in answers {
            let Some((suspicion, exceeds)) = weigh(&answer, learning, &self.tolerances) else {
                continue;
            };
            if exceeds {
                self.suspect(Some(suspicion));
            } else {
                self.remember(suspicion);
            }
        }
    }

    fn remember(&mut self, within: Suspicion) {
        let subject = within.subject();
        self.recent.push_back(RecentAnswer {
            at: within.at,
            latency: within.latency,
            class: within.class,
            subject,
        });
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }

    /// Returns `true` if a suspicion is pending.
    pub(crate) fn suspects(&self) -> bool {
        self.suspicion.is_some()
    }

    /// Handles a mark by a user. Its file covers a pending suspicion. If there was none, the limits
    /// were too wide for this user's recent answer with the longest latency relative to its
    /// threshold.
    pub(crate) fn marked_by_hand(
        &mut self,
        kernel: &Kernel<'_>,
        learning: &mut Learning,
        uid: u32,
        now: Nanos,
    ) {
        self.read(kernel, learning, now);
        if self.suspicion.take().is_none() {
            self.tighten(uid, now);
        }
    }

    fn tighten(&mut self, uid: u32, now: Nanos) {
        let from = now.before(MARKED_WITHIN);
        let recent = self.recent.iter().filter(|one| one.at >= from && one.subject.uid == uid);
        let worst = recent.max_by_key(|one| {
            u128::from(one.latency.0) * 1_000 / u128::from(limits(one.class).threshold.max(1))
        });
        let Some(subject) = worst.map(|one| one.subject.clone()) else { return };
        // A second press refers to the same latency.
        self.recent.clear();
        self.tolerances.adjust(&subject, PersonSaid::Bad);
    }

    /// Keeps the worst suspicion pending.
    fn suspect(&mut self, new: Option<Suspicion>) {
        let Some(new) = new else { return };
        let better = self
            .suspicion
            .as_ref()
            .is_none_or(|old| (!new.doubtful, new.latency) > (!old.doubtful, old.latency));
        if better {
            self.quiet_since = None;
            self.suspicion = Some(new);
        }
    }

    /// Returns the suspicion once its client is quiet and the limits allow an examination.
    fn due(&mut self, open: &[OpenPresses], now: Nanos) -> Option<Suspicion> {
        let suspicion = self.suspicion.as_ref()?;
        let age = now.since(suspicion.at);
        if open.iter().any(|open| open.slot == suspicion.slot) {
            self.quiet_since = None;
        } else {
            self.quiet_since.get_or_insert(now);
        }
        let quiet = self.quiet_since.is_some_and(|since| now.since(since) >= QUIET);
        if !quiet && age < QUIET_MAX {
            return None;
        }
        if !self.may_look(suspicion.doubtful, now) || age > STALE {
            self.counts.passed_over += 1;
            self.suspicion = None;
            return None;
        }
        let recent = self.looks.back().is_some_and(|(last, _)| now.since(*last) < APART);
        let due = if recent { None } else { self.suspicion.take() };
        if let Some(suspicion) = &due {
            self.looks.push_back((now, suspicion.doubtful));
            self.looked_open = suspicion.open_since.map(|since| (suspicion.slot, since));
            self.counts.looked_at += 1;
        }
        due
    }

    fn may_look(&mut self, doubtful: bool, now: Nanos) -> bool {
        let hour_ago = now.before(HOUR);
        self.looks.retain(|(at, _)| *at > hour_ago);
        self.kept.retain(|(at, _)| *at > hour_ago);
        let doubts = self.looks.iter().filter(|(_, doubtful)| *doubtful).count();
        self.kept.len() < self.options.per_hour
            && self.looks.len() < LOOKS_MAX
            && (!doubtful || doubts < DOUBTS_MAX)
    }

    /// Decides on an examined suspicion by its judgement.
    pub(crate) fn decide(
        &mut self,
        suspicion: &Suspicion,
        judgement: Judgement,
        now: Nanos,
    ) -> Outcome {
        let (cause, ms, milestone) = match judgement {
            Judgement::Found { cause, latency_ms, milestone }
                if !is_other(suspicion, latency_ms) =>
            {
                (cause, latency_ms, milestone)
            }
            Judgement::Found { .. } | Judgement::Nothing => {
                self.counts.without_finding += 1;
                return Outcome::Dropped;
            }
            Judgement::Failed(why) => {
                journal::warning(format!(
                    "cannot examine a late answer of {}: {why}",
                    suspicion.application
                ))
                .tell();
                self.counts.failed += 1;
                return Outcome::Dropped;
            }
        };
        if self.kept.iter().any(|(_, known)| *known == cause) {
            self.counts.known_causes += 1;
            return Outcome::Dropped;
        }
        self.counts.marked += 1;
        let (latency, class) = (seconds(ms), suspicion.class.name());
        let line =
            format!("{latency} {class}{} in {}, {cause}", reached(&milestone), cause.application);
        self.kept.push_back((now, cause.clone()));
        Outcome::Marked(line, cause)
    }
}

/// Returns a suffix such as ` until handled` if the latency is that of a later milestone than the
/// response.
fn reached(milestone: &str) -> &'static str {
    match milestone {
        "handled" => " until handled",
        "completed" => " until completed",
        "hanging" => " and still hanging",
        _ => "",
    }
}

/// Formats as `1.2 s` or `340 ms`.
fn seconds(ms: f64) -> String {
    if ms >= 1_000.0 { format!("{:.1} s", ms / 1_000.0) } else { format!("{ms:.0} ms") }
}

/// Returns the limits of a class. For the pointer only frustrating latencies count: it moves all
/// the time, mostly unobserved.
fn limits(class: InputClass) -> ClassLimits {
    let limits = class.limits(ThresholdProfile::Default);
    if is_of_pointer(class) {
        ClassLimits { threshold: limits.frustrated, ..limits }
    } else {
        limits
    }
}

/// Returns `true` if the finding is not the suspected latency: while one program lags behind the
/// pointer, another may be slightly late.
fn is_other(suspicion: &Suspicion, found_ms: f64) -> bool {
    is_of_pointer(suspicion.class) && found_ms * 2e6 < suspicion.latency.0 as f64
}

/// Returns `true` if a user may be waiting for this program: for pointer classes, it must exist and
/// have run for a while.
fn is_awaited(class: InputClass, client: Pid) -> bool {
    !is_of_pointer(class) || processes::age(client.0).is_some_and(|age| age >= STARTS)
}

/// Returns `true` if these open presses may raise a suspicion.
fn is_late(open: &OpenPresses, now: Nanos) -> bool {
    now.since(open.since).0 > limits(class(open.class)).frustrated
}

impl Suspicion {
    /// Returns the key of its tolerance.
    pub(crate) fn subject(&self) -> Subject {
        Subject::new(self.uid, self.class, &self.application)
    }
}

/// Returns the suspicion for a finished latency, and `true` if it exceeds the limits.
fn weigh(
    answer: &ToldAnswer,
    learning: &mut Learning,
    tolerances: &Tolerances,
) -> Option<(Suspicion, bool)> {
    let class = class(answer.class);
    let application = learning.name(answer.client).filter(|_| is_awaited(class, answer.client))?;
    let (n, p98) = learning.habit(class, &application);
    let (latency, doubtful) = latency(answer, p98.filter(|_| n >= KNOWN_N));
    let (client, uid) = (answer.client, processes::user(answer.client.0).unwrap_or(0));
    let (slot, at, open_since) = (answer.slot, answer.at, None);
    let suspicion =
        Suspicion { class, application, uid, client, slot, latency, at, open_since, doubtful };
    let exceeds =
        tolerances.get(&suspicion.subject()).is_exceeded(latency.0, limits(class), n, p98);
    Some((suspicion, exceeds))
}

/// Returns the latency of an answer, and `true` if it is doubtful.
///
/// One press with its drawing, or time in the queue, is certain. If several presses were read and a
/// drawing follows right after the last one, the earlier ones may need no answer: a key without
/// effect, or a password. Many such presses are worth an examination.
fn latency(answer: &ToldAnswer, p98: Option<u64>) -> (Nanos, bool) {
    let prompt = p98.map_or(PROMPT, |p98| PROMPT.max(Nanos(p98)));
    if answer.queued || answer.presses <= 1 || answer.last > prompt {
        (answer.first, false)
    } else if answer.presses >= PRESSES_MANY {
        (answer.first, true)
    } else {
        (answer.last, false)
    }
}

/// Returns the suspicion for input open for long: unread, or many presses in an application that
/// usually answers.
fn weigh_open(
    open: &OpenPresses,
    learning: &mut Learning,
    tolerances: &Tolerances,
    now: Nanos,
) -> Option<Suspicion> {
    if !is_late(open, now) {
        return None;
    }
    let class = class(open.class);
    let application = learning.name(open.client).filter(|_| is_awaited(class, open.client))?;
    let frustrated = limits(class).frustrated;
    let lies = open.untaken.map(|untaken| now.since(untaken)).filter(|lies| lies.0 > frustrated);
    let (n, p98) = learning.habit(class, &application);
    let many = (n >= KNOWN_N && open.presses >= PRESSES_MANY).then_some(now.since(open.since));
    let latency = lies.or(many)?;
    let (slot, at, open_since) =
        (open.slot, now.before(latency).after(Nanos(frustrated)), Some(open.since));
    let (client, doubtful) = (open.client, lies.is_none());
    let uid = processes::user(client.0).unwrap_or(0);
    let suspicion =
        Suspicion { class, application, uid, client, slot, latency, at, open_since, doubtful };
    let exceeds =
        tolerances.get(&suspicion.subject()).is_exceeded(latency.0, limits(class), n, p98);
    exceeds.then_some(suspicion)
}

#[cfg(test)]
mod tests;
