// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme measure`.

mod joining;
mod judged;
mod milestones;
mod result;
mod waiting;

use crate::arguments;
use crate::files::{self, write_json, write_plots};
use crate::lines::Lines;
use crate::programs;
use anyhow::{Context, Result, bail};
use judged::JudgedInputs;
use std::process::ExitCode;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::machine::Survey;
use tipme_bench::measure::{self, MeasureOptions};
use tipme_bench::script::Script;
use tipme_measure::ThresholdProfile;
use tipme_report::measure::{MeasureDocument, figures, text};

/// Plays the script, prints the figures, and writes the requested files.
///
/// Exit code 1 if a class exceeds its threshold.
pub fn run(arguments: arguments::Measure) -> Result<ExitCode> {
    if arguments.list {
        Script::shipped().for_each(|script| list(&script));
        return Ok(ExitCode::SUCCESS);
    }
    let script = Script::find(
        arguments.script.as_deref().context("name a script; tipme measure --list has some")?,
    )?;
    let script = arguments.inputs.map_or(script.clone(), |inputs| script.first(inputs as usize));
    let profile = arguments.profile;
    let why_no_tap = why_no_tap(&arguments);
    let options = options(&arguments, script, why_no_tap.is_none())?;
    files::check(arguments.json.as_deref(), arguments.svg.as_deref())?;
    let (judged, survey) = play(&options, profile)?;
    let result = result::document(&options, profile, why_no_tap, &judged, survey.end());
    print!("{}", text(&result));
    write(&arguments, &result)?;
    let exceeded = result.details.classes.iter().any(|class| class.exceeded);
    Ok(ExitCode::from(u8::from(exceeded)))
}

fn play(
    options: &MeasureOptions,
    profile: ThresholdProfile,
) -> Result<(Vec<JudgedInputs>, Survey)> {
    let interrupt = InterruptFlag::install()?;
    let survey = Survey::begin();
    let mut judged = Vec::new();
    measure::run(options, &interrupt, &mut Lines("measure"), &mut |repeat| {
        judged.push(JudgedInputs::of(repeat, options.recorder.is_some(), |class| {
            options.script.limits(class, profile).threshold
        })?);
        Ok(())
    })?;
    Ok((judged, survey))
}

fn options(arguments: &arguments::Measure, script: Script, tap: bool) -> Result<MeasureOptions> {
    let application =
        if arguments.app.is_empty() { script.application.clone() } else { arguments.app.clone() };
    if application.is_empty() {
        bail!("script {} names no application; put one behind --, such as -- xterm", script.name);
    }
    let recorder = if tap { Some(programs::tipme()?) } else { None };
    Ok(MeasureOptions {
        script,
        application,
        display: arguments.display.clone(),
        repeat: arguments.repeat,
        recorder,
    })
}

/// Returns the reason why the display tap is not used; `None` if it is.
fn why_no_tap(arguments: &arguments::Measure) -> Option<String> {
    match (arguments.no_trace, measure::may_record()) {
        (true, _) => Some("asked for by --no-trace".to_owned()),
        (false, false) => {
            Some("the display tap needs root; run it with sudo for exact joins".to_owned())
        }
        (false, true) => None,
    }
}

fn write(arguments: &arguments::Measure, result: &MeasureDocument) -> Result<()> {
    if let Some(path) = &arguments.json {
        write_json(path, result, false)?;
    }
    if let Some(folder) = &arguments.svg {
        write_plots(folder, figures(result))?;
    }
    Ok(())
}

/// Prints a script in two lines: name and description, then inputs and application.
fn list(script: &Script) {
    println!("{:<10} {}", script.name, script.about);
    println!("{:<10} {} inputs; {}", "", script.inputs(), script.application.join(" "));
}
