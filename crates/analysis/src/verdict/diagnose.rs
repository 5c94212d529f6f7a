// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assembly of the verdict.

use crate::error::DiagnoseError;
use crate::explain::chain::Chain;
use crate::explain::describe::{count_text, span_text, time_text};
use crate::explain::partition::Budget;
use crate::join::answer::{Interaction, Join, Milestone, NOTICED};
use crate::join::inputs::deliveries;
use crate::join::interactions::interactions;
use crate::join::unresponsive::UnresponsiveSpan;
use crate::model::{About, Candidate, CauseKind, Client, Interval, SCHEMA, Verdict};
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::verdict::detail;
use crate::verdict::findings::findings;
use crate::verdict::options::DiagnoseOptions;
use crate::verdict::overhead::overhead;
use crate::verdict::problem::{
    AnswerSide, JUST_OVER, LOOK_BACK, Problem, ProblemSubject, problems,
};
use crate::verdict::stall;
use crate::verdict::steps::steps;
use crate::verdict::summary;
use crate::verdict::trust::{hardly_usual, trust, unattributed_ms};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::Nanos;
use tipme_record::incident::Incident;

/// Maximum time after a key or click that is not worth a figure.
const AT_ONCE: Nanos = Nanos(1_000_000);

/// Note for input on a keyboard or pointer object that was created before the recorded time.
const INFERRED: &str = "The application connected to its compositor before the recorded time, so that this was input is \
    inferred from the shape of the message.";

/// Note for a start by a compositor, of which no message and no other request is known.
const ASSUMED: &str = "The compositor started this program without a request from another one. That you pressed a key \
    or clicked for it is assumed: a compositor reports to no client the input that it keeps to itself.";

/// Parsed incident with the results of its diagnosis.
pub(crate) struct Case {
    pub recording: Recording,
    pub interactions: Vec<Interaction>,
    /// Explained problem with its chain; `None` if there is nothing to explain.
    pub explained: Option<(Problem, Chain)>,
    pub verdict: Verdict,
}

/// Finds the cause of the worst delay in an incident.
pub fn diagnose(incident: &Incident, options: &DiagnoseOptions) -> Result<Verdict, DiagnoseError> {
    examine(incident, options).map(|case| case.verdict)
}

/// Like [`diagnose`], but also returns the data behind the verdict.
pub(crate) fn examine(
    incident: &Incident,
    options: &DiagnoseOptions,
) -> Result<Case, DiagnoseError> {
    let recording = Recording::read(incident)?;
    let joined = interactions(&recording);
    let answer = last_answer(&recording, options);
    let begun = begun(&recording, answer);
    let explain = |problem| explained(incident, &recording, problem, begun.clone());
    let side = |side| problems(&recording, &joined, options, answer.map(|at| (at, side)));
    let ranked = ranked(&recording, side(AnswerSide::After)?, explain);
    let candidates = candidates(&ranked);
    let is_new = answer.is_none() || !candidates.is_empty();
    let before = if is_new { Vec::new() } else { side(AnswerSide::Before)? };
    let earlier = rank(enough(before.into_iter().map(explain)), recording.mark);
    let (explained, mut verdict) = match ranked.into_iter().next() {
        Some((explained, verdict)) => (Some(explained), verdict),
        None => (None, nothing(&recording, begun)),
    };
    if let Some(pid) = options.pid.filter(|_| verdict.findings.is_empty()) {
        verdict.notes.extend(summary::text(&recording, pid));
    }
    (verdict.candidates, verdict.earlier) = (candidates, self::candidates(&earlier));
    Ok(Case { recording, interactions: joined.interactions, explained, verdict })
}

/// Returns the time of the last answered mark if it is within the window. Options given by the user
/// override it.
fn last_answer(recording: &Recording, options: &DiagnoseOptions) -> Option<Nanos> {
    let at = Nanos(recording.meta.answered_ns);
    let is_within = at > recording.complete_from()
        && at < recording.mark
        && recording.mark.since(at) < LOOK_BACK;
    (is_within && *options == DiagnoseOptions::default()).then_some(at)
}

/// Minimum ratio of two delays for the longer one to be preferred.
const MUCH_LONGER: u64 = 4;

/// Maximum number of programs that a verdict names as looked at.
const PROGRAMS_MAX: usize = 5;

/// Maximum number of delays that a verdict lists, including the explained one.
const CANDIDATES_MAX: usize = 3;

type Explained = ((Problem, Chain), Verdict);

/// Number of pieces in all chains after which no more problems are explained once an unusual one is
/// found.
const PIECES_ENOUGH: usize = 20_000;

/// Explains problems until one is unusual and the list of candidates is full, or explaining more
/// would take long.
fn enough(problems: impl Iterator<Item = Explained>) -> Vec<Explained> {
    let (mut explained, mut pieces, mut unusual) = (Vec::new(), 0, false);
    for problem in problems {
        pieces += problem.0.1.pieces.len();
        unusual |= is_unusual(&problem);
        explained.push(problem);
        if unusual && (explained.len() >= CANDIDATES_MAX || pieces > PIECES_ENOUGH) {
            break;
        }
    }
    explained
}

/// Explains problems, and puts the one to report first. Where none has a cause, but a user marked,
/// shorter waits count as well.
fn ranked(
    recording: &Recording,
    mut problems: Vec<Problem>,
    explain: impl Fn(Problem) -> Explained,
) -> Vec<Explained> {
    let found = rank(enough(problems.iter().cloned().map(&explain)), recording.mark);
    let silent = found.iter().all(|(_, verdict)| verdict.findings.is_empty());
    let lowest = problems.iter().all(|one| one.threshold <= NOTICED);
    if !silent || lowest || recording.is_marked_automatically() {
        return found;
    }
    problems.iter_mut().for_each(Problem::lower_threshold);
    rank(enough(problems.into_iter().map(explain)), recording.mark)
}

fn is_unusual((_, verdict): &Explained) -> bool {
    verdict.findings.first().is_some_and(|first| first.unusual)
}

/// Puts the problem to report first: the first one with an unusual cause, else the first with any
/// cause, else the first. An earlier problem with any cause precedes the unusual one if it lasted
/// much longer and ended later, just before the mark.
fn rank(mut problems: Vec<Explained>, mark: Nanos) -> Vec<Explained> {
    let has_cause = |(_, verdict): &Explained| !verdict.findings.is_empty();
    let chosen =
        problems.iter().position(is_unusual).or_else(|| problems.iter().position(has_cause));
    let outweighs = |chosen: usize| {
        let reported = &problems[chosen].0.0;
        problems[..chosen]
            .iter()
            .position(|one| has_cause(one) && outweighs(&one.0.0, reported, mark))
    };
    if let Some(chosen) = chosen.map(|chosen| outweighs(chosen).unwrap_or(chosen)) {
        problems[..=chosen].rotate_right(1);
    }
    problems
}

/// Returns `true` if the user more likely means the first delay than the other one.
fn outweighs(one: &Problem, other: &Problem, mark: Nanos) -> bool {
    let later = one.end > other.end && mark.since(one.end) <= JUST_OVER;
    later && one.latency().0 >= other.latency().0.saturating_mul(MUCH_LONGER)
}

/// Lists the first problems, each input once.
fn candidates(ranked: &[Explained]) -> Vec<Candidate> {
    let mut seen = BTreeSet::new();
    let all = ranked.iter().filter_map(|(_, verdict)| candidate(verdict));
    all.filter(|one| seen.insert(one.start_ns)).take(CANDIDATES_MAX).collect()
}

/// Summarises an explained problem; returns `None` if it did not exceed its threshold.
fn candidate(verdict: &Verdict) -> Option<Candidate> {
    let interval = verdict.interval.as_ref().filter(|interval| interval.exceeded)?;
    let first = verdict.findings.first();
    Some(Candidate {
        subject: interval.subject(),
        start_ns: interval.start_ns,
        end_ns: interval.end_ns,
        latency_ms: interval.latency_ms,
        kind: first.map_or(CauseKind::Unattributed, |first| first.kind),
        culprit: first.map(|first| first.culprit.clone()),
        confidence: first.map_or(0.0, |first| first.confidence),
        unusual: first.is_some_and(|first| first.unusual),
    })
}

fn explained(
    incident: &Incident,
    recording: &Recording,
    problem: Problem,
    mut verdict: Verdict,
) -> Explained {
    let chain = explain(incident, recording, &problem, &mut verdict);
    ((problem, chain), verdict)
}

/// Creates a verdict that describes the incident only.
fn begun(recording: &Recording, answer: Option<Nanos>) -> Verdict {
    Verdict {
        schema: SCHEMA,
        incident: about(recording, answer),
        notes: recording.notes.clone(),
        ..Verdict::default()
    }
}

fn nothing(recording: &Recording, mut verdict: Verdict) -> Verdict {
    verdict.notes.push(why_nothing(recording, &verdict.incident));
    verdict
}

fn explain(
    incident: &Incident,
    recording: &Recording,
    problem: &Problem,
    verdict: &mut Verdict,
) -> Chain {
    let chain = match &problem.subject {
        ProblemSubject::Interaction(interaction) => Chain::of(recording, interaction),
        ProblemSubject::Thread(tid) => {
            Chain::of_thread(recording, *tid, problem.start, problem.end)
        }
        ProblemSubject::Unresponsive(span) => {
            Chain::of_thread(recording, span.tid, span.start, span.end)
        }
    };
    let budget = Budget::new(recording, &chain, problem.waiter(recording), problem.end);
    verdict.interval = Some(interval(recording, problem));
    verdict.baseline = problem.usual.baseline();
    verdict.partition = budget.shares();
    verdict.unattributed_ms = unattributed_ms(&verdict.partition);
    let trust = trust(recording, problem, verdict.unattributed_ms);
    verdict.findings = findings(&budget, problem, trust.confidence);
    match trust.unsure(&verdict.findings) {
        Some(note) => verdict.notes.push(note),
        None => verdict.notes.extend(trust.doubts),
    }
    verdict.notes.extend(hardly_usual(problem));
    verdict.notes.extend(
        verdict.interval.as_ref().filter(|interval| interval.inferred).map(|_| INFERRED.to_owned()),
    );
    let assumed = problem.is_start() && recording.messages.is_server(problem.client);
    verdict.notes.extend(assumed.then(|| ASSUMED.to_owned()));
    verdict.notes.extend(away(problem).map(|span| away_text(recording, span)));
    verdict.notes.extend(other_focus(recording, problem));
    verdict.notes.extend(longer(recording, problem));
    verdict.notes.extend(stall::note(recording, problem.start, problem.end));
    verdict.notes.extend(left(&chain));
    let rest = detail::hint_for_rest(recording, &verdict.partition, problem.start, problem.end);
    verdict.notes.extend(
        rest.filter(|_| problem.exceeded()).map(|hint| format!("Much is unattributed; {hint}.")),
    );
    if let Some(interval) = verdict.interval.as_mut().filter(|_| problem.is_command()) {
        interval.exceeded &= !verdict.findings.is_empty();
    }
    verdict.chain = steps(recording, &chain);
    let cpus = recording.meta.machine.cpus;
    verdict.overhead_ms =
        overhead(incident, &recording.cost, cpus, problem.start, problem.end).millis();
    chain
}

/// Notes the part of the chain that was too long to follow.
fn left(chain: &Chain) -> Option<String> {
    let steps = count_text(chain.pieces.len() as u64);
    (chain.left > Nanos(0)).then(|| {
        format!(
            "The chain was followed for {steps} steps; {} before them are unattributed.",
            span_text(chain.left)
        )
    })
}

fn about(recording: &Recording, answer: Option<Nanos>) -> About {
    let before = |at: Nanos| recording.mark.since(at).0 as f64 / 1e9;
    let meta = &recording.meta;
    let from = recording.complete_from();
    let (inputs, programs) = looked_at(recording, from);
    About {
        id: meta.id.clone(),
        time: time_text(meta.mark_realtime_ns),
        machine: meta.machine.clone(),
        user_text: recording.user_text.clone(),
        user_right: recording.user_right,
        window_s: before(from),
        inputs,
        programs,
        input_stopped_s: recording.meta.input_stopped_ns as f64 / 1e9,
        answered_s: answer.map(before),
        recorded_s: if meta.armed_ns > 0 { before(Nanos(meta.armed_ns)) } else { 0.0 },
        mark_ns: recording.mark.0,
        losses: recording.losses.per_second.clone(),
    }
}

fn interval(recording: &Recording, problem: &Problem) -> Interval {
    let (settled, dequeued) = match &problem.subject {
        ProblemSubject::Interaction(interaction) => {
            (interaction.settled, interaction.delivery.dequeued.map(|(at, _)| at))
        }
        ProblemSubject::Thread(_) | ProblemSubject::Unresponsive(_) => (None, None),
    };
    let inferred = matches!(&problem.subject, ProblemSubject::Interaction(interaction) if interaction.delivery.inferred);
    let since_start = |at: Nanos| at.since(problem.start).millis();
    Interval {
        start_ns: problem.start.0,
        end_ns: problem.end.0,
        latency_ms: problem.latency().millis(),
        class: problem.class_name().to_owned(),
        milestone: problem.milestone_name().to_owned(),
        join: problem.join.map_or("none", Join::name).to_owned(),
        client: client(recording, problem),
        focused: problem.focus.map(|holder| holder == Some(problem.client)),
        censored: problem.censored,
        inferred,
        settled_ms: settled.map(since_start),
        queue_ms: dequeued.map(since_start),
        threshold_ms: problem.threshold.millis(),
        exceeded: problem.exceeded(),
        drew: problem.milestone == Milestone::Handled && drew(recording, problem),
        command: problem
            .started(recording)
            .map_or_else(String::new, |life| pipeline(recording, life, problem)),
        prompt: problem.is_prompt(),
        since_input_ms: away(problem)
            .and_then(|span| Some(span.start.since(span.pressed?).millis())),
        untaken: away(problem).map_or(0, |span| span.untaken),
    }
}

fn drew(recording: &Recording, problem: &Problem) -> bool {
    recording.drawings().went_on(
        |tid| recording.tasks.pid(tid, problem.end) == problem.client,
        problem.start,
        problem.end,
    )
}

/// Returns the unresponsive span of a problem, if it is one.
fn away(problem: &Problem) -> Option<&UnresponsiveSpan> {
    match &problem.subject {
        ProblemSubject::Unresponsive(span) => Some(span),
        ProblemSubject::Interaction(_) | ProblemSubject::Thread(_) => None,
    }
}

/// Describes the evidence for an unresponsive span that no late input shows.
fn away_text(recording: &Recording, span: &UnresponsiveSpan) -> String {
    let comm = recording.tasks.comm(span.client, span.end);
    let since = match span.pressed.map(|at| span.start.since(at)) {
        None => String::new(),
        Some(since) if since < AT_ONCE => ", since it received a key or click".to_owned(),
        Some(since) => format!(", from {} after it received a key or click", span_text(since)),
    };
    let lay = match span.untaken {
        0 => String::new(),
        1 if recording.messages.is_server(span.client) => {
            "; one client request was pending".to_owned()
        }
        many if recording.messages.is_server(span.client) => {
            format!("; {} client requests were pending", count_text(many as u64))
        }
        1 => "; one message from its display server was pending".to_owned(),
        many => {
            format!("; {} messages from its display server were pending", count_text(many as u64))
        }
    };
    format!(
        "No single input shows this delay: {comm} did not return to its event loop for that time{since}{lay}."
    )
}

/// Notes another, longer delay that the user may mean.
fn longer(recording: &Recording, problem: &Problem) -> Option<String> {
    let (start, end) = problem.longer?;
    let (length, ago) = (span_text(end.since(start)), recording.mark.since(end));
    let at = recording.mark.since(start).before(Nanos(end.since(start).0 / 2)).0 as f64 / 1e9;
    Some(format!(
        "Another delay of {length} ended {} before the mark: tipme diagnose --at {at:.1}",
        span_text(ago)
    ))
}

/// Notes the program that had the keyboard focus at the end of the interval, if it is another one.
fn other_focus(recording: &Recording, problem: &Problem) -> Option<String> {
    let other = problem.focus.flatten().filter(|holder| *holder != problem.client)?;
    let name = recording.tasks.comm(other, problem.end);
    Some(format!("{name} (pid {other}) had the keyboard focus at the end of the delay."))
}

/// Maximum number of processes named for one pipeline.
const PIPELINE_MAX: usize = 8;

/// Returns the command line of a process started for an input. Other processes that the same shell
/// started for one pipeline are included, as the user types it.
fn pipeline(recording: &Recording, life: &Life, problem: &Problem) -> String {
    let mut parts: Vec<&Life> = recording
        .tasks
        .lives()
        .iter()
        .filter(|other| {
            let same = other.parent == life.parent
                && other.group == life.group
                && other.tid.0 == other.pid.0;
            let begun = other.from > problem.start && other.from < problem.end;
            same && begun && other.from < life.until && other.until > life.from
        })
        .take(PIPELINE_MAX)
        .collect();
    if parts.is_empty() || !problem.is_command() || problem.is_start() || problem.is_prompt() {
        return command_line(recording, life, problem.end);
    }
    parts.sort_by_key(|part| part.from);
    let lines: Vec<String> =
        parts.into_iter().map(|part| command_line(recording, part, problem.end)).collect();
    lines.join(" | ")
}

/// Returns the command line of a process, or its name if that is not known.
fn command_line(recording: &Recording, life: &Life, at: Nanos) -> String {
    let line = recording.tasks.cmdline(life.pid, at.min(life.until));
    if line.is_empty() { life.comm.clone() } else { line.to_owned() }
}

fn client(recording: &Recording, problem: &Problem) -> Client {
    let (pid, at) = (problem.client, problem.end);
    let cmdline = recording.tasks.cmdline(pid, at).to_owned();
    Client { pid: pid.0, comm: recording.tasks.comm(pid, at), cmdline }
}

/// Returns the number of inputs from a time on, and the programs that took them, the one with the
/// most first.
fn looked_at(recording: &Recording, from: Nanos) -> (usize, Vec<String>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for delivery in deliveries(recording).iter().filter(|delivery| delivery.sent >= from) {
        *counts.entry(recording.tasks.comm(delivery.client, delivery.sent)).or_default() += 1;
    }
    let mut programs: Vec<(String, usize)> = counts.into_iter().collect();
    programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let inputs = programs.iter().map(|(_, count)| count).sum();
    (inputs, programs.into_iter().map(|(name, _)| name).take(PROGRAMS_MAX).collect())
}

fn why_nothing(recording: &Recording, about: &About) -> String {
    let window = span_text(recording.mark.since(recording.complete_from()));
    if recording.messages.streams().is_empty() {
        return "No display was recorded; name a process with --pid or --app.".to_owned();
    }
    if let Some(seconds) = about.answered_s {
        return format!(
            "No input was answered in the {} since the last answer.",
            span_text(Nanos((seconds * 1e9) as u64))
        );
    }
    match about.inputs {
        0 => format!("No input was seen in the {window} of complete records before the mark."),
        count => format!(
            "No response to the {} inputs to {} was seen in the {window} of complete records before the mark.",
            count_text(count as u64),
            about.programs.join(", ")
        ),
    }
}
