// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the verdict together.

use crate::error::Error;
use crate::explain::chain::Chain;
use crate::explain::describe::time_text;
use crate::explain::partition::Budget;
use crate::join::answer::Join;
use crate::join::interactions::interactions;
use crate::model::{About, Client, Interval, SCHEMA, Verdict};
use crate::timeline::recording::Recording;
use crate::verdict::detail;
use crate::verdict::findings::findings;
use crate::verdict::overhead::overhead;
use crate::verdict::problem::{Options, Problem, Subject, choose};
use crate::verdict::stall;
use crate::verdict::steps::steps;
use crate::verdict::trust::{TRUST, TRUST_LOSSES, explained, lost, unattributed_ms};
use tipme_record::Nanos;
use tipme_record::incident::Incident;

/// With fewer earlier observations, what is usual is hardly known.
const USUAL_MIN: usize = 10;

const TRUST_SPECULATIVE: f64 = 0.7;
const TRUST_INCOMPLETE: f64 = 0.6;
const TRUST_FEW: f64 = 0.9;

/// Finds the cause of the worst delay in an incident.
pub fn diagnose(incident: &Incident, options: &Options) -> Result<Verdict, Error> {
    let recording = Recording::read(incident)?;
    let found = interactions(&recording);
    let problem = choose(&recording, &found, options)?;
    let mut verdict = Verdict { schema: SCHEMA, incident: about(&recording), ..Verdict::default() };
    verdict.notes.clone_from(&recording.notes);
    match problem {
        Some(problem) => explain(incident, &recording, &problem, &mut verdict),
        None => verdict.notes.push(why_nothing(&recording)),
    }
    Ok(verdict)
}

fn explain(incident: &Incident, recording: &Recording, problem: &Problem, verdict: &mut Verdict) {
    let chain = match &problem.subject {
        Subject::Interaction(interaction) => Chain::of(recording, interaction),
        Subject::Thread(tid) => Chain::of_thread(recording, *tid, problem.start, problem.end),
    };
    let budget = Budget::new(recording, &chain, problem.client, problem.end);
    verdict.interval = Some(interval(recording, problem));
    verdict.baseline = problem.usual.baseline();
    verdict.partition = budget.shares();
    verdict.unattributed_ms = unattributed_ms(&verdict.partition);
    let (trust, notes) = trust(recording, problem, verdict.unattributed_ms);
    verdict.notes.extend(notes);
    verdict.notes.extend(stall::note(recording, problem.start, problem.end));
    let rest = detail::hint_for_rest(recording, verdict.unattributed_ms, problem.latency().millis());
    verdict.notes.extend(rest.filter(|_| problem.exceeded()).map(|hint| format!("Much is unattributed; {hint}.")));
    verdict.findings = findings(&budget, problem, trust);
    if let Some(interval) = verdict.interval.as_mut().filter(|_| problem.is_command() && verdict.findings.is_empty()) {
        interval.exceeded = false;
    }
    verdict.chain = steps(recording, &chain);
    let cpus = recording.meta.machine.cpus;
    verdict.overhead_ms = overhead(incident, &recording.cost, cpus, problem.start, problem.end).millis();
}

fn about(recording: &Recording) -> About {
    let meta = &recording.meta;
    let from = recording.complete_from();
    About {
        id: meta.id.clone(),
        time: time_text(meta.mark_realtime_ns),
        machine: meta.machine.clone(),
        user_text: recording.user_text.clone(),
        window_s: recording.mark.since(from).0 as f64 / 1e9,
        losses: recording.losses.per_second.clone(),
    }
}

fn interval(recording: &Recording, problem: &Problem) -> Interval {
    let (settled, taken) = match &problem.subject {
        Subject::Interaction(interaction) => (interaction.settled, interaction.told.taken.map(|(at, _)| at)),
        Subject::Thread(_) => (None, None),
    };
    let since_start = |at: Nanos| at.since(problem.start).millis();
    Interval {
        start_ns: problem.start.0,
        end_ns: problem.end.0,
        latency_ms: problem.latency().millis(),
        class: problem.class_name().to_owned(),
        milestone: problem.milestone_name().to_owned(),
        join: problem.join.map_or("none", Join::name).to_owned(),
        client: client(recording, problem),
        censored: problem.censored,
        settled_ms: settled.map(since_start),
        queue_ms: taken.map(since_start),
        threshold_ms: problem.threshold.millis(),
        exceeded: problem.exceeded(),
    }
}

fn client(recording: &Recording, problem: &Problem) -> Client {
    let (pid, at) = (problem.client, problem.end);
    let cmdline = recording.tasks.cmdline(pid, at).to_owned();
    Client { pid: pid.0, comm: recording.tasks.comm(pid, at), cmdline }
}

/// How far the interval as a whole can be trusted, and why not further.
fn trust(recording: &Recording, problem: &Problem, unattributed_ms: f64) -> (f64, Vec<String>) {
    let lost = lost(recording, problem.start, problem.end);
    let lost = (lost > 0).then(|| match lost {
        1 => "1 record was lost during the interval.".to_owned(),
        _ => format!("{lost} records were lost during the interval."),
    });
    let doubts = [
        (problem.join == Some(Join::Speculative), TRUST_SPECULATIVE, "Input and drawing were joined by time only."),
        (lost.is_some(), TRUST_LOSSES, lost.as_deref().unwrap_or_default()),
        (
            problem.start < recording.complete_from(),
            TRUST_INCOMPLETE,
            "The interval begins before the records are complete.",
        ),
        (
            problem.usual.n() < USUAL_MIN,
            TRUST_FEW,
            "Few other interactions of this kind were seen, so what is usual is hardly known.",
        ),
    ];
    let applied: Vec<_> = doubts.into_iter().filter(|(applies, ..)| *applies).collect();
    let explained = explained(unattributed_ms, problem.latency());
    let trust = applied.iter().fold(TRUST * explained, |trust, (_, factor, _)| trust * factor);
    (trust, applied.into_iter().map(|(_, _, note)| note.to_owned()).collect())
}

fn why_nothing(recording: &Recording) -> String {
    let window = crate::explain::describe::span_text(recording.mark.since(recording.complete_from()));
    if recording.messages.streams().is_empty() {
        "No display was recorded; name a process with --pid or --app.".to_owned()
    } else {
        format!("No input was seen in the {window} before the mark that are recorded completely.")
    }
}
