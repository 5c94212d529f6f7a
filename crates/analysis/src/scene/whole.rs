// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assembly of the scene.

use crate::error::DiagnoseError;
use crate::explain::describe::count_text;
use crate::explain::partition::Budget;
use crate::join::answer::Interaction;
use crate::model::Finding;
use crate::scene::actors::Actors;
use crate::scene::picture::{ProgramUse, Scene, Track, UsualLatencies};
use crate::scene::stage::{SceneStage, span};
use crate::scene::texts::Texts;
use crate::scene::{chain, cpus, disks, inputs, jobs, messages, others, pressure, threads};
use crate::timeline::recording::Recording;
use crate::verdict::baseline::Usual;
use crate::verdict::diagnose::{Case, examine};
use crate::verdict::options::DiagnoseOptions;
use crate::verdict::problem::Problem;
use tipme_record::Nanos;
use tipme_record::incident::Incident;

/// Maximum number of baseline latencies shown.
const OBSERVED_MAX: usize = 2_000;

/// Returns the verdict on an incident, as [`crate::diagnose`] does, with the activity around its
/// interval.
pub fn scene(incident: &Incident, options: &DiagnoseOptions) -> Result<Scene, DiagnoseError> {
    let Case { recording, interactions, explained, verdict } = examine(incident, options)?;
    let programs = programs(&recording);
    let Some((problem, chain)) = explained else {
        return Ok(Scene { verdict, programs, ..Scene::default() });
    };
    let budget = Budget::new(&recording, &chain, problem.waiter(&recording), problem.end);
    let mut stage = stage(&recording, &problem, &budget, &verdict.findings);
    let tracks = tracks(&mut stage, &interactions);
    let curves = [disks::curves(&mut stage), pressure::curves(&mut stage, incident)].concat();
    let jobs = jobs::jobs(&mut stage);
    let (from_ns, to_ns) = (stage.from.0, stage.to.0);
    let (texts, left_out) = (stage.texts.into_list(), stage.left_out);
    let usual = observed(&problem);
    Ok(Scene { verdict, from_ns, to_ns, texts, tracks, curves, usual, jobs, programs, left_out })
}

fn stage<'a>(
    recording: &'a Recording,
    problem: &'a Problem,
    budget: &'a Budget<'a>,
    findings: &[Finding],
) -> SceneStage<'a> {
    let (from, to) = span(recording, problem);
    let actors = Actors::new(budget, findings.first());
    SceneStage {
        recording,
        problem,
        budget,
        actors,
        from,
        to,
        texts: Texts::new(),
        left_out: Vec::new(),
    }
}

fn tracks(stage: &mut SceneStage<'_>, interactions: &[Interaction]) -> Vec<Track> {
    let mut tracks = vec![inputs::track(stage, interactions)];
    tracks.extend(messages::tracks(stage));
    tracks.push(chain::track(stage));
    let (on_the_chain, shown) = threads::tracks(stage);
    tracks.extend(on_the_chain);
    tracks.extend(cpus::tracks(stage));
    tracks.push(others::started(stage));
    tracks.extend(others::tracks(stage, &shown));
    tracks.retain(|track| !track.bars.is_empty());
    let summed = tracks.iter().flat_map(|track| &track.bars).filter(|bar| bar.count > 1);
    let count: usize = summed.map(|bar| bar.count).sum();
    if count > 0 {
        let bars = count_text(count as u64);
        stage.left_out.push(format!(
            "{bars} stretches are too short for bars of their own; neighbors share a bar, as high as \
             the share of its time to which its text applies."
        ));
    }
    tracks
}

fn observed(problem: &Problem) -> Option<UsualLatencies> {
    let Usual::Window(summary) = &problem.usual else { return None };
    let all = summary.ascending();
    let every = all.len().div_ceil(OBSERVED_MAX).max(1);
    // The longest is always kept.
    let kept = all.iter().rev().step_by(every).rev();
    Some(UsualLatencies {
        latencies_ms: kept.map(|nanos| Nanos(*nanos).millis()).collect(),
        n: all.len(),
    })
}

fn programs(recording: &Recording) -> Vec<ProgramUse> {
    let programs = recording.cost.programs.iter().map(|program| ProgramUse {
        name: program.name.clone(),
        runs_per_second: program.runs_per_second,
        ns_per_run: program.ns_per_run,
    });
    programs.collect()
}
