// SPDX-License-Identifier: MIT OR Apache-2.0
//! Marks that the recorder makes by itself: which latency is worth a look, and which look is worth a file.
//!
//! The kernel's coarse figures only raise a suspicion. A suspicion is looked at by the diagnosis, in a
//! process of its own; only what it finds a cause for is kept, and the same cause once an hour. All of
//! it is bounded, since a machine in trouble has suspicions all the time. What is unusually long is decided by what is
//! usual and by what the person has said of it, for the pointer and the wheel apart from keys and clicks.

use crate::judge::{JudgedCause, Judgement};
use crate::learning::{Learning, class, is_of_pointer};
use crate::processes;
use crate::tolerances::{Subject, Tolerances};
use std::collections::VecDeque;
use std::path::PathBuf;
use tipme_control::{AutoCounts, journal};
use tipme_kernel::{AnswersRead, Kernel, OpenPresses, ToldAnswer};
use tipme_measure::{ClassLimits, InputClass, PersonSaid, ThresholdProfile};
use tipme_record::{Nanos, Pid};

/// Looks within an hour, at most: each takes a second or two of a CPU that nobody else wants.
const LOOKS_MAX: usize = 20;

/// Of these, looks at what is doubtful.
const DOUBTS_MAX: usize = 5;

/// From one look to the next.
const APART: Nanos = Nanos::from_secs(20);

const HOUR: Nanos = Nanos::from_secs(3600);

/// A client without open presses for so long is quiet: what it had to answer is over.
const QUIET: Nanos = Nanos::from_millis(300);

/// A client that does not become quiet is looked at after this time.
const QUIET_MAX: Nanos = Nanos::from_secs(3);

/// A suspicion that could not be looked at for so long is given up: its records are being overwritten.
const STALE: Nanos = Nanos::from_secs(30);

/// So soon after the last of several presses a drawing may answer that one alone, where nothing better is known.
const PROMPT: Nanos = Nanos::from_millis(20);

/// So many presses without an answer are hardly all of the kind that needs none.
const PRESSES_MANY: u32 = 4;

/// No shorter answer is unusually long.
const NOTABLE: Nanos = Nanos::from_millis(50);

/// A mark is of what was answered within this time.
const MARKED_WITHIN: Nanos = Nanos::from_secs(40);

/// Long answers that are remembered for a mark, at most.
const RECENT_MAX: usize = 64;

/// With so many answers an application is known to answer.
const KNOWN_N: u64 = 50;

/// A program that was started so short ago is not waited for by who moves the pointer over it.
const STARTS: Nanos = Nanos::from_secs(10);

/// What is done with what was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoMode {
    /// The incident is kept.
    Mark,
    /// Only a line tells of it.
    DryRun,
}

impl AutoMode {
    /// All of them.
    pub const ALL: [AutoMode; 2] = [AutoMode::Mark, AutoMode::DryRun];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            AutoMode::Mark => "mark",
            AutoMode::DryRun => "dry-run",
        }
    }

    /// What it does.
    pub fn about(self) -> &'static str {
        match self {
            AutoMode::Mark => "Keep an incident",
            AutoMode::DryRun => "Say what would be marked, and keep no file",
        }
    }
}

/// How the recorder marks by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AutoOptions {
    pub mode: AutoMode,
    /// Marks within an hour, at most.
    pub per_hour: usize,
    /// The program that judges: called with `judge … --json --at SECONDS`, the incident at its standard input.
    pub judge: PathBuf,
}

/// A latency that may be worth a mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suspicion {
    pub(crate) class: InputClass,
    pub(crate) application: String,
    /// Whose program it is.
    pub(crate) uid: u32,
    pub(crate) client: Pid,
    pub(crate) slot: usize,
    pub(crate) latency: Nanos,
    /// When it ended, or became suspicious where it has not.
    pub(crate) at: Nanos,
    /// When the first of its presses was made, where it has not ended.
    open_since: Option<Nanos>,
    /// Only the times of the presses speak for it.
    doubtful: bool,
}

/// A long answer that was within the limits.
struct Endured {
    at: Nanos,
    latency: Nanos,
    class: InputClass,
    subject: Subject,
}

/// What became of a look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Worth a file, or a line: what it was, and its cause.
    Marked(String, JudgedCause),
    /// Not worth one.
    Dropped,
}

/// The suspicion that is waited with, and what was done within the last hour.
pub(crate) struct AutoMarker {
    pub(crate) options: AutoOptions,
    pub(crate) tolerances: Tolerances,
    read: AnswersRead,
    endured: VecDeque<Endured>,
    suspicion: Option<Suspicion>,
    /// When the suspected client had no open presses first.
    quiet_since: Option<Nanos>,
    looks: VecDeque<(Nanos, bool)>,
    kept: VecDeque<(Nanos, JudgedCause)>,
    /// The unfinished one that was looked at last: slot and first press.
    looked_open: Option<(usize, Nanos)>,
    pub(crate) counts: AutoCounts,
}

impl AutoMarker {
    pub(crate) fn new(options: AutoOptions, tolerances: Tolerances) -> AutoMarker {
        AutoMarker {
            options,
            tolerances,
            endured: VecDeque::new(),
            read: AnswersRead::default(),
            suspicion: None,
            quiet_since: None,
            looks: VecDeque::new(),
            kept: VecDeque::new(),
            looked_open: None,
            counts: AutoCounts::default(),
        }
    }

    /// What to look at now, if anything. To be called at every tick.
    pub(crate) fn tick(&mut self, kernel: &Kernel<'_>, learning: &mut Learning, now: Nanos) -> Option<Suspicion> {
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

    /// Weighs what was answered since the last call.
    fn read(&mut self, kernel: &Kernel<'_>, learning: &mut Learning, now: Nanos) {
        let mut answers = kernel.answers(&mut self.read);
        answers.retain(|answer| answer.first >= NOTABLE);
        if !answers.is_empty() {
            learning.merge(kernel, now);
        }
        for answer in answers {
            let Some((suspicion, exceeds)) = weigh(&answer, learning, &self.tolerances) else { continue };
            if exceeds {
                self.suspect(Some(suspicion));
            } else {
                self.endure(suspicion);
            }
        }
    }

    fn endure(&mut self, within: Suspicion) {
        let subject = within.subject();
        self.endured.push_back(Endured { at: within.at, latency: within.latency, class: within.class, subject });
        if self.endured.len() > RECENT_MAX {
            self.endured.pop_front();
        }
    }

    /// Whether something waits to be looked at.
    pub(crate) fn suspects(&self) -> bool {
        self.suspicion.is_some()
    }

    /// A user marked: what is suspected is in that file. Where nothing was, the limits were too wide for what this user
    /// had to wait for longest, by its threshold, in the time before.
    pub(crate) fn marked_by_hand(&mut self, kernel: &Kernel<'_>, learning: &mut Learning, uid: u32, now: Nanos) {
        self.read(kernel, learning, now);
        if self.suspicion.take().is_none() {
            self.tighten(uid, now);
        }
    }

    fn tighten(&mut self, uid: u32, now: Nanos) {
        let from = now.before(MARKED_WITHIN);
        let recent = self.endured.iter().filter(|one| one.at >= from && one.subject.uid == uid);
        let share = |one: &&Endured| u128::from(one.latency.0) * 1_000 / u128::from(limits(one.class).threshold.max(1));
        let Some(subject) = recent.max_by_key(share).map(|one| one.subject.clone()) else { return };
        // A second press is of the same.
        self.endured.clear();
        self.tolerances.hear(&subject, PersonSaid::Bad);
    }

    /// The worst is waited with.
    fn suspect(&mut self, new: Option<Suspicion>) {
        let Some(new) = new else { return };
        let better =
            self.suspicion.as_ref().is_none_or(|old| (!new.doubtful, new.latency) > (!old.doubtful, old.latency));
        if better {
            self.quiet_since = None;
            self.suspicion = Some(new);
        }
    }

    /// The suspicion, once its client is quiet and the bounds allow a look.
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
        self.kept.len() < self.options.per_hour && self.looks.len() < LOOKS_MAX && (!doubtful || doubts < DOUBTS_MAX)
    }

    /// Decides on a look, whose file was judged.
    pub(crate) fn decide(&mut self, suspicion: &Suspicion, judgement: Judgement, now: Nanos) -> Outcome {
        let (cause, ms, milestone) = match judgement {
            Judgement::Found { cause, latency_ms, milestone } if !is_other(suspicion, latency_ms) => {
                (cause, latency_ms, milestone)
            }
            Judgement::Found { .. } | Judgement::Nothing => {
                self.counts.without_finding += 1;
                return Outcome::Dropped;
            }
            Judgement::Failed(why) => {
                journal::warning(format!("a look at {} failed: {why}", suspicion.application)).tell();
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
        let line = format!("{latency} {class}{} in {}, {cause}", reached(&milestone), cause.application);
        self.kept.push_back((now, cause.clone()));
        Outcome::Marked(line, cause)
    }
}

/// ` until handled`: where the latency is that of a later milestone than the response.
fn reached(milestone: &str) -> &'static str {
    match milestone {
        "handled" => " until handled",
        "completed" => " until completed",
        "hanging" => " and still hanging",
        _ => "",
    }
}

/// `1.2 s`, `340 ms`.
fn seconds(ms: f64) -> String {
    if ms >= 1_000.0 { format!("{:.1} s", ms / 1_000.0) } else { format!("{ms:.0} ms") }
}

/// Of the pointer only what frustrates is looked at: it moves all the time, and seldom does somebody watch what follows it.
fn limits(class: InputClass) -> ClassLimits {
    let limits = class.limits(ThresholdProfile::Default);
    if is_of_pointer(class) { ClassLimits { threshold: limits.frustrated, ..limits } } else { limits }
}

/// Whether what was found is not what was suspected: while one program does not follow the pointer, another may be late by
/// little.
fn is_other(suspicion: &Suspicion, found_ms: f64) -> bool {
    is_of_pointer(suspicion.class) && found_ms * 2e6 < suspicion.latency.0 as f64
}

/// Whether somebody may wait for a program to follow the pointer: it is there, and has been for a while.
fn is_awaited(class: InputClass, client: Pid) -> bool {
    !is_of_pointer(class) || processes::age(client.0).is_some_and(|age| age >= STARTS)
}

/// Whether presses are open that may be a suspicion.
fn is_late(open: &OpenPresses, now: Nanos) -> bool {
    now.since(open.since).0 > limits(class(open.class)).frustrated
}

impl Suspicion {
    /// What the person puts up with is asked for by.
    pub(crate) fn subject(&self) -> Subject {
        Subject::new(self.uid, self.class, &self.application)
    }
}

/// A finished latency, and whether it exceeds the limits.
fn weigh(answer: &ToldAnswer, learning: &mut Learning, tolerances: &Tolerances) -> Option<(Suspicion, bool)> {
    let class = class(answer.class);
    let application = learning.name(answer.client).filter(|_| is_awaited(class, answer.client))?;
    let (n, p98) = learning.habit(class, &application);
    let (latency, doubtful) = latency(answer, p98.filter(|_| n >= KNOWN_N));
    let (client, uid) = (answer.client, processes::user(answer.client.0).unwrap_or(0));
    let (slot, at, open_since) = (answer.slot, answer.at, None);
    let suspicion = Suspicion { class, application, uid, client, slot, latency, at, open_since, doubtful };
    let exceeds = tolerances.of(&suspicion.subject()).is_exceeded(latency.0, limits(class), n, p98);
    Some((suspicion, exceeds))
}

/// How long an answer took, and whether that is doubtful.
///
/// One press and its drawing, or a stay in the queue, are certain. Of several presses that were taken,
/// and a drawing right after the last, the earlier ones may need no answer: a key that does nothing, or
/// a word that is not shown. Many of them are worth a look.
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

/// Input that is open for long: not even taken, or many presses by now in an application that answers as a rule.
fn weigh_open(open: &OpenPresses, learning: &mut Learning, tolerances: &Tolerances, now: Nanos) -> Option<Suspicion> {
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
    let (slot, at, open_since) = (open.slot, now.before(latency).after(Nanos(frustrated)), Some(open.since));
    let (client, doubtful) = (open.client, lies.is_none());
    let uid = processes::user(client.0).unwrap_or(0);
    let suspicion = Suspicion { class, application, uid, client, slot, latency, at, open_since, doubtful };
    let exceeds = tolerances.of(&suspicion.subject()).is_exceeded(latency.0, limits(class), n, p98);
    exceeds.then_some(suspicion)
}

#[cfg(test)]
mod tests;
