// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choice of the interval to explain: the one that exceeds its baseline by most.

use crate::error::DiagnoseError;
use crate::explain::blame::Waiter;
use crate::join::answer::{Interaction, Join, Milestone, NOTICED, Task};
use crate::join::commands;
use crate::join::focus::FocusHistory;
use crate::join::interactions::JoinedInputs;
use crate::join::unresponsive::UnresponsiveSpan;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::verdict::baseline::Usual;
use crate::verdict::episodes::{self, Episode};
use crate::verdict::latency_groups::{Groups, group, groups, latency_to};
use crate::verdict::options::{DiagnoseOptions, pids};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tipme_measure::{InputClass, Share, Summary, ThresholdProfile};
use tipme_record::{Nanos, Pid, Tid};

/// Maximum age of a hitch at the mark.
pub(crate) const LOOK_BACK: Nanos = Nanos::from_secs(40);

/// Distance from a given time within which delays are considered.
const AROUND: Nanos = Nanos::from_secs(1);

/// Distance between scores of different rank: more nanoseconds than any window has, weighted.
const RANK: f64 = 1e15;

const WEIGHT_FOCUS: f64 = 1.5;
const WEIGHT_WORDS: f64 = 3.0;

/// Maximum time from the end of a delay to the mark for it to weigh more: users press the key
/// because of something recent.
const RECENT: Nanos = Nanos::from_secs(15);
const WEIGHT_RECENT: f64 = 8.0;
/// Maximum time from the end of a delay to the mark for it to weigh even more. Of several delays in
/// a row the user means the last one, unless it is much shorter: the earlier ones did not make them
/// press the key.
pub(crate) const JUST_OVER: Nanos = Nanos::from_secs(4);
const WEIGHT_JUST_OVER: f64 = 2.0;

/// Minimum number of other commands for a baseline: among few, several may have been held up by the
/// same cause.
const COMMANDS_MIN: usize = 5;

/// Minimum length of a user's word to be matched with an application.
const WORD_MIN: usize = 3;

/// The delay to explain, with its baseline.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub start: Nanos,
    pub end: Nanos,
    pub class: Option<InputClass>,
    pub milestone: Milestone,
    pub client: Pid,
    /// Client with the keyboard focus at the end; `Some(None)` if no client had it, `None` if no
    /// compositor reported it.
    pub focus: Option<Option<Pid>>,
    pub join: Option<Join>,
    pub censored: bool,
    /// Interaction, or its substitute if there is none.
    pub subject: ProblemSubject,
    /// Latencies of the same class and application at other times.
    pub usual: Usual,
    /// Latency beyond the baseline.
    pub excess: Nanos,
    pub threshold: Nanos,
    /// Start and end of a late input that lasted much longer, but weighed less because it ended
    /// long ago.
    pub longer: Option<(Nanos, Nanos)>,
}

#[derive(Clone, Debug)]
pub(crate) enum ProblemSubject {
    Interaction(Box<Interaction>),
    Thread(Tid),
    Unresponsive(Box<UnresponsiveSpan>),
}

impl Problem {
    /// Returns `true` if the program waited for an answer over the network while its event loop
    /// went on.
    pub(crate) fn goes_on(&self) -> bool {
        let hops =
            |interaction: &Interaction| interaction.hops.iter().any(|hop| hop.awaits.is_some());
        matches!(&self.subject, ProblemSubject::Interaction(interaction) if hops(interaction))
    }

    pub(crate) fn latency(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Lowers the threshold to that of an input that is not handled: where nothing lasted longer,
    /// the user marked because of a shorter wait.
    pub(crate) fn lower_threshold(&mut self) {
        self.threshold = self.threshold.min(NOTICED);
    }

    /// Returns `true` if the excess is noticeable.
    pub(crate) fn exceeded(&self) -> bool {
        self.excess > self.threshold
    }

    /// Returns the process that was started for that work.
    pub(crate) fn started<'a>(&self, recording: &'a Recording) -> Option<&'a Life> {
        self.task().and_then(|interaction| commands::started(recording, interaction))
    }

    /// Returns the processes that the user waited for.
    pub(crate) fn waiter(&self, recording: &Recording) -> Waiter {
        let command = self.started(recording).filter(|_| self.is_command()).map(|life| life.pid);
        Waiter { client: self.client, command }
    }

    /// Returns the interaction that triggered work behind a terminal, if it is one.
    pub(crate) fn task(&self) -> Option<&Interaction> {
        match &self.subject {
            ProblemSubject::Interaction(interaction) if interaction.task != Task::Input => {
                Some(interaction)
            }
            ProblemSubject::Interaction(_)
            | ProblemSubject::Thread(_)
            | ProblemSubject::Unresponsive(_) => None,
        }
    }

    /// Returns `true` for a command in a terminal, which may take its time.
    pub(crate) fn is_command(&self) -> bool {
        matches!(&self.subject, ProblemSubject::Interaction(interaction) if interaction.task.is_command())
    }

    /// Returns `true` if the program that reads the keys of a terminal does the work of the command
    /// itself.
    pub(crate) fn is_done_itself(&self) -> bool {
        matches!(&self.subject, ProblemSubject::Interaction(interaction) if interaction.task == Task::Typed)
    }

    /// Returns `true` for the start of a program in which nothing else was waited for.
    pub(crate) fn is_start(&self) -> bool {
        self.task().is_some_and(|interaction| interaction.task == Task::Start)
    }

    /// Returns `true` if a shell ran programs on its own account.
    pub(crate) fn is_prompt(&self) -> bool {
        self.task().is_some_and(|interaction| interaction.task == Task::Prompt)
    }

    /// Returns the name of the milestone in JSON.
    pub(crate) fn milestone_name(&self) -> &'static str {
        if self.censored { "hanging" } else { self.milestone.name() }
    }

    pub(crate) fn class_name(&self) -> &'static str {
        if self.is_start() { "start" } else { self.class.map_or("activity", InputClass::name) }
    }
}

/// Side of the last answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnswerSide {
    /// Delays that were over.
    Before,
    /// Delays that began after it, or lasted noticeably beyond it.
    After,
}

/// Options of the caller, resolved against the recording.
struct WantedProblem<'a> {
    recording: &'a Recording,
    pids: Option<Vec<Pid>>,
    lo: Nanos,
    hi: Nanos,
    /// Time given by the caller: a delay that includes it is meant rather than one nearby.
    at: Option<Nanos>,
    /// Last answer, and the side to search; `None` for both sides.
    answer: Option<(Nanos, AnswerSide)>,
    words: Vec<String>,
}

/// A late input that covers at least 3/4 of an unresponsive span already reports it.
const TOLD_QUARTERS: u64 = 3;

/// Maximum numbers of commands and of other delays that are tried.
const COMMANDS_MAX: usize = 4;
const OTHERS_MAX: usize = 4;

/// Returns the delays that the verdict may report, in the order in which they are tried, limited to
/// one side of the last answer if given. First comes the worst interaction that the options allow.
/// Commands may take their time, so the next worst ones follow them. The worst unresponsive span
/// that no late input reports is added. Without an interaction it is the worst activity of the
/// process.
pub(crate) fn problems(
    recording: &Recording,
    joined: &JoinedInputs,
    options: &DiagnoseOptions,
    answer: Option<(Nanos, AnswerSide)>,
) -> Result<Vec<Problem>, DiagnoseError> {
    let wanted = WantedProblem { answer, ..WantedProblem::new(recording, options)? };
    let mut from_input = worst(recording, joined, &wanted);
    if !recording.is_marked_automatically() && !from_input.iter().any(Problem::exceeded) {
        from_input.iter_mut().for_each(Problem::lower_threshold);
    }
    let named = wanted.pids.is_some();
    match from_input.first() {
        Some(problem) if problem.exceeded() || !named => Ok(from_input),
        other if named || recording.messages.streams().is_empty() => {
            let active = worst_activity(recording, &wanted)
                .filter(|one| wanted.is_meant(one.start, one.end));
            let active = active.filter(|activity| activity.exceeded() || other.is_none());
            let meanwhile = options.pid.and_then(|pid| meanwhile(recording, joined, &wanted, pid));
            let active: Vec<Problem> = meanwhile.into_iter().chain(active).collect();
            Ok(if active.is_empty() { from_input } else { active })
        }
        _ => Ok(from_input),
    }
}

impl<'a> WantedProblem<'a> {
    fn new(
        recording: &'a Recording,
        options: &DiagnoseOptions,
    ) -> Result<WantedProblem<'a>, DiagnoseError> {
        let mark = recording.mark;
        let at = options
            .at_s
            .filter(|at| at.is_finite() && *at >= 0.0)
            .map(|at| mark.before(Nanos((at * 1e9) as u64)));
        let (lo, hi) =
            at.map_or((mark.before(LOOK_BACK), mark), |at| (at.before(AROUND), at.after(AROUND)));
        let words = recording.user_text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.len() >= WORD_MIN).map(str::to_lowercase).collect();
        Ok(WantedProblem {
            recording,
            pids: pids(recording, options)?,
            lo,
            hi,
            at,
            answer: None,
            words,
        })
    }

    /// Returns `true` if a delay is on the requested side of the last answer.
    fn is_meant(&self, start: Nanos, end: Nanos) -> bool {
        self.answer.is_none_or(|(at, side)| {
            let is_after = start >= at || end.since(at) > NOTICED;
            is_after == (side == AnswerSide::After)
        })
    }

    fn allows(&self, pid: Pid) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.contains(&pid))
    }

    /// Returns the weight of a delay of a program; `over` is its end if it was noticeable.
    fn weight(&self, client: Pid, focused: Option<Pid>, over: Option<Nanos>) -> f64 {
        let focus = if focused == Some(client) { WEIGHT_FOCUS } else { 1.0 };
        let words = if self.named(client) { WEIGHT_WORDS } else { 1.0 };
        let since = |time: Nanos| over.is_some_and(|over| over >= self.recording.mark.before(time));
        let recent = if since(RECENT) { WEIGHT_RECENT } else { 1.0 };
        focus * words * recent * if since(JUST_OVER) { WEIGHT_JUST_OVER } else { 1.0 }
    }

    /// Returns `true` if the user's words name an application.
    fn named(&self, pid: Pid) -> bool {
        let comm = self.recording.tasks.comm(pid, self.recording.mark).to_lowercase();
        let parts: Vec<&str> = comm
            .split(|c: char| !c.is_alphanumeric())
            .filter(|part| part.len() >= WORD_MIN)
            .collect();
        self.words.iter().any(|word| *word == comm || parts.contains(&word.as_str()))
    }
}

/// Returns each interaction up to its response, and up to each later milestone that came late.
fn candidates<'a>(
    recording: &'a Recording,
    found: &'a [Interaction],
) -> impl Iterator<Item = Cow<'a, Interaction>> {
    found.iter().flat_map(|interaction| {
        let later = interaction
            .later
            .iter()
            .map(|reached| Cow::Owned(interaction.until(reached, recording.mark)));
        std::iter::once(Cow::Borrowed(interaction)).chain(later)
    })
}

fn worst(recording: &Recording, joined: &JoinedInputs, wanted: &WantedProblem<'_>) -> Vec<Problem> {
    let found = joined.interactions.as_slice();
    let groups = groups(recording, found);
    let focus = FocusHistory::new(recording, found);
    let focused = focus.last();
    let complete = recording.complete_from();
    let answered = answered(found);
    let known =
        candidates(recording, found).filter(|interaction| interaction.delivery.input >= complete);
    let known = known.filter(|interaction| !went_on(interaction, &answered));
    let allowed =
        known.filter(|i| wanted.allows(i.delivery.client) && i.overlaps(wanted.lo, wanted.hi));
    let allowed = allowed.filter(|i| wanted.is_meant(i.delivery.input, i.end));
    let scored = allowed.map(|interaction| {
        let before =
            interaction.task == Task::Typed && recording.mark.since(interaction.end) > JUST_OVER;
        let aside = interaction.task.is_command() && (before || !is_attended(&interaction, found));
        (score(recording, &interaction, &groups, wanted, focused, aside), interaction)
    });
    let mut scored: Vec<_> = scored.collect();
    scored.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let worst = distinct(&scored, if recording.is_marked_automatically() { 1 } else { OTHERS_MAX });
    let worst = worst.into_iter().map(|(score, one)| (*score, problem(recording, one, found)));
    let mut worst: Vec<(f64, Problem)> = worst.collect();
    let late: Vec<&Interaction> =
        scored.iter().map(|(_, one)| one.as_ref()).filter(|one| tells_of_delay(one)).collect();
    let spans =
        joined.unresponsive.iter().filter(|span| span.start >= complete && !is_told(span, &late));
    worst.extend(worst_span(recording, spans, wanted, focused));
    worst.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let longest = late.iter().max_by_key(|one| one.latency());
    let longer = |problem: &Problem| {
        longest.filter(|one| is_longer(one, problem)).map(|one| (one.delivery.input, one.end))
    };
    worst
        .into_iter()
        .map(|(_, one)| Problem { focus: focus.at(one.end), longer: longer(&one), ..one })
        .collect()
}

/// Returns the worst separate delays, the worst first. One interaction, with each of its
/// milestones, represents all that overlap in the same program.
fn distinct<'a, 'b>(
    scored: &'b [(f64, Cow<'a, Interaction>)],
    others_max: usize,
) -> Vec<&'b (f64, Cow<'a, Interaction>)> {
    let mut chosen: Vec<&(f64, Cow<'_, Interaction>)> = Vec::new();
    let mut left = [others_max, COMMANDS_MAX];
    for scored in scored.iter().rev() {
        let one = &scored.1;
        let left = &mut left[usize::from(one.task.is_command())];
        if *left > 0
            && (one.task.is_command()
                || !chosen.iter().any(|(_, other): &&(f64, Cow<'_, Interaction>)| {
                    let elsewhere = other.delivery.client != one.delivery.client
                        || other.delivery.input == one.delivery.input;
                    !elsewhere && other.overlaps(one.delivery.input, one.end)
                }))
        {
            *left -= 1;
            chosen.push(scored);
        }
    }
    chosen
}

/// Returns `true` if a late input lasted at least twice as long as the reported problem, at another
/// time.
fn is_longer(interaction: &Interaction, told: &Problem) -> bool {
    interaction.latency().0 / 2 >= told.latency().0 && !interaction.overlaps(told.start, told.end)
}

/// Returns `true` if an input is late and its drawing was traced back to it.
fn tells_of_delay(interaction: &Interaction) -> bool {
    interaction.join != Join::Speculative
        && !interaction.task.is_command()
        && interaction.latency() > interaction.noticed
}

/// Returns `true` if a late input covers most of an unresponsive span, from the time at which the
/// program was missed.
fn is_told(span: &UnresponsiveSpan, late: &[&Interaction]) -> bool {
    let from = |one: &Interaction| one.delivery.input.max(span.missed);
    let shared =
        |one: &Interaction| span.shared(from(one), one.end.max(one.handled.unwrap_or_default()));
    let of_same =
        |one: &&&Interaction| one.delivery.client == span.client || one.delivery.server == span.tid;
    let own = late.iter().filter(of_same);
    own.into_iter().any(|one| shared(one).0 >= TOLD_QUARTERS * span.end.since(span.missed).0 / 4)
}

/// Returns the unresponsive span with the largest excess, if any has one.
fn worst_span<'a>(
    recording: &Recording,
    spans: impl Iterator<Item = &'a UnresponsiveSpan>,
    wanted: &WantedProblem<'_>,
    focused: Option<Pid>,
) -> Option<(f64, Problem)> {
    let allowed = spans
        .filter(|span| wanted.allows(span.client) && span.shared(wanted.lo, wanted.hi) > Nanos(0));
    let allowed = allowed.filter(|span| wanted.is_meant(span.start, span.end));
    let exceeded = allowed.map(|span| unresponsive(recording, span)).filter(Problem::exceeded);
    let score = |one: &Problem| {
        3.0 * RANK + one.excess.0 as f64 * wanted.weight(one.client, focused, Some(one.end))
    };
    exceeded.map(|one| (score(&one), one)).max_by(|(a, _), (b, _)| a.total_cmp(b))
}

fn unresponsive(recording: &Recording, span: &UnresponsiveSpan) -> Problem {
    let usual = Usual::Window(span.usual.clone());
    let normal = usual.median().min(NOTICED);
    Problem {
        start: span.start,
        end: span.end,
        class: None,
        milestone: Milestone::Handled,
        client: span.client,
        focus: None,
        join: None,
        censored: span.end >= recording.mark,
        subject: ProblemSubject::Unresponsive(Box::new(span.clone())),
        excess: span.length().before(normal),
        usual,
        threshold: NOTICED,
        longer: None,
    }
}

/// Returns the keys and clicks with a certain answer, by client, from the input to the answer.
fn answered(found: &[Interaction]) -> BTreeMap<Pid, Vec<(Nanos, Nanos)>> {
    let mut answered: BTreeMap<Pid, Vec<(Nanos, Nanos)>> = BTreeMap::new();
    for one in found.iter().filter(|one| {
        one.join == Join::Exact && one.delivery.class != InputClass::Motion && !one.censored
    }) {
        answered.entry(one.delivery.client).or_default().push((one.delivery.input, one.end));
    }
    answered.values_mut().for_each(|list| list.sort_unstable());
    answered
}

/// Minimum number of later inputs answered by the same program for its unfinished work to be in the
/// background.
const WENT_ON_MIN: usize = 3;

/// Returns `true` if the user went on with the same program before the work of an input was
/// completed: it was background work, such as a compilation started by the program.
fn went_on(interaction: &Interaction, answered: &BTreeMap<Pid, Vec<(Nanos, Nanos)>>) -> bool {
    if interaction.milestone != Milestone::Completed || interaction.task.is_command() {
        return false;
    }
    let all = answered.get(&interaction.delivery.client).map_or(&[][..], Vec::as_slice);
    let later = &all[all.partition_point(|(input, _)| *input <= interaction.delivery.input)..];
    let within = later.iter().take_while(|(input, _)| *input < interaction.end);
    within.filter(|(_, end)| *end < interaction.end).nth(WENT_ON_MIN - 1).is_some()
}

/// Returns `true` if the user waited for a command: no other program received a key or a click
/// meanwhile.
fn is_attended(command: &Interaction, found: &[Interaction]) -> bool {
    let (lo, hi) = (command.delivery.input, command.end);
    let given = |other: &Interaction| {
        other.delivery.class != InputClass::Motion
            && lo < other.delivery.input
            && other.delivery.input < hi
    };
    !found.iter().any(|other| other.delivery.client != command.delivery.client && given(other))
}

/// Scores an interaction: first by its excess beyond the threshold, then by the latency itself, so
/// that there is a worst one even if all is well. Exact joins rank before coincidences in time, and
/// those before commands that are left aside.
fn score(
    recording: &Recording,
    interaction: &Interaction,
    groups: &Groups,
    wanted: &WantedProblem<'_>,
    focused: Option<Pid>,
    aside: bool,
) -> f64 {
    let summary = groups.get(&group(recording, interaction));
    let latency = interaction.latency();
    let others =
        summary.filter(|summary| !interaction.task.is_command() || summary.n() > COMMANDS_MIN);
    let usual =
        others.and_then(|summary| summary.value_without(latency.0, Share::P50)).unwrap_or(0);
    let threshold = interaction.noticed.0;
    let excess = latency.0.saturating_sub(usual.min(threshold));
    let client = interaction.delivery.client;
    let exceeded = excess > threshold;
    let rank = match (exceeded, interaction.join) {
        (false, _) => 0.0,
        (true, _) if aside => RANK,
        (true, Join::Speculative) => 2.0 * RANK,
        (true, _) => 3.0 * RANK,
    };
    let included = wanted.at.is_some_and(|at| interaction.overlaps(at, at.after(Nanos(1))));
    let rank = if exceeded && included { rank + 3.0 * RANK } else { rank };
    rank + excess as f64 * wanted.weight(client, focused, exceeded.then_some(interaction.end))
}

fn problem(recording: &Recording, worst: &Interaction, found: &[Interaction]) -> Problem {
    let (start, end) = (worst.delivery.input, worst.end);
    let (milestone, task, class, application) = group(recording, worst);
    let same = |other: &Interaction| {
        let of = recording.tasks.comm(other.delivery.client, other.delivery.sent);
        !other.overlaps(start, end) && other.delivery.class == class && of == application
    };
    let others = found
        .iter()
        .filter(|other| same(other))
        .filter_map(|other| latency_to(other, milestone, task));
    let others = Summary::new(others.map(|latency| latency.0).collect());
    let usual = Usual::of(others, &recording.baselines, (milestone, class.name(), &application));
    let threshold = worst.noticed;
    let known = task == Task::Input || usual.n() >= COMMANDS_MIN;
    let normal = if known { usual.median().min(threshold) } else { Nanos(0) };
    Problem {
        start,
        end,
        class: Some(worst.delivery.class),
        milestone,
        client: worst.delivery.client,
        focus: None,
        join: Some(worst.join),
        censored: worst.censored,
        subject: ProblemSubject::Interaction(Box::new(worst.clone())),
        excess: worst.latency().before(normal),
        usual,
        threshold,
        longer: None,
    }
}

/// Returns the longest episode of the requested processes, or of those that read terminals.
fn worst_activity(recording: &Recording, wanted: &WantedProblem<'_>) -> Option<Problem> {
    let (worst, all) =
        episodes::longest(recording, wanted.pids.as_deref(), (wanted.lo, wanted.hi))?;
    Some(activity(recording, &worst, &all))
}

/// Returns the activity of a process during the worst delay of all: the verdict on that delay may
/// name it.
fn meanwhile(
    recording: &Recording,
    joined: &JoinedInputs,
    wanted: &WantedProblem<'_>,
    pid: Pid,
) -> Option<Problem> {
    let anybody = WantedProblem { pids: None, words: wanted.words.clone(), ..*wanted };
    let delay = worst(recording, joined, &anybody).into_iter().find(Problem::exceeded)?;
    let episode = episodes::meanwhile(recording, pid, (delay.start, delay.end))?;
    Some(activity(recording, &episode, &[]))
}

fn activity(recording: &Recording, worst: &Episode, episodes: &[Episode]) -> Problem {
    let others =
        episodes.iter().filter(|other| other.end <= worst.start || other.start >= worst.end);
    let usual =
        Usual::Window(Summary::new(others.map(|other| other.end.since(other.start).0).collect()));
    let threshold = Nanos(InputClass::Click.limits(ThresholdProfile::Default).threshold);
    let normal = usual.median().min(threshold);
    Problem {
        start: worst.start,
        end: worst.end,
        class: None,
        milestone: Milestone::Handled,
        client: recording.tasks.pid(worst.tid, worst.start),
        focus: None,
        join: None,
        censored: worst.end >= recording.mark,
        subject: ProblemSubject::Thread(worst.tid),
        excess: worst.end.since(worst.start).before(normal),
        usual,
        threshold,
        longer: None,
    }
}
