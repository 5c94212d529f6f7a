// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme manage`, and requests to a running manager.

use crate::arguments::{HelperChoice, Manage, ManageHelper, ManageVerb};
use crate::record::user_id;
use anyhow::{Result, bail};
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::process::ExitCode;
use tipme_analysis::clean;
use tipme_control::manager::{
    Client, ManagerRequest, ManagerResponse, ManagerStatus, PreloadState, PreloadStatus,
};
use tipme_control::{DEFAULT_STATE_DIR, journal};
use tipme_manager::{Ended, HelperOptions, ManageOptions, StateDir, Strength, UseHelper};
use tipme_report::padded;

/// Manages until it is stopped, or sends a request to a running manager.
pub fn run(arguments: Manage) -> Result<ExitCode> {
    let Some(verb) = arguments.verb else { return manage(arguments) };
    let client = Client::new(StateDir::find(arguments.state_dir.as_deref()).path());
    match verb {
        ManageVerb::Status { json } => status(&client, json),
        ManageVerb::Off => turn(&client, Strength::Off),
        ManageVerb::Gentle => turn(&client, Strength::Gentle),
        ManageVerb::Normal => turn(&client, Strength::Normal),
        ManageVerb::Strong => turn(&client, Strength::Strong),
    }
}

fn manage(arguments: Manage) -> Result<ExitCode> {
    let options = ManageOptions {
        strength: arguments.strength,
        backend: arguments.backend,
        display: arguments.display,
        recorder: arguments.recorder.unwrap_or_else(|| DEFAULT_STATE_DIR.into()),
        under: arguments.under,
        cgroup: arguments.cgroup,
        state: StateDir::choose(arguments.state_dir.as_deref()),
        predict: !arguments.no_predict,
        helper: use_helper(arguments.helper),
    };
    match tipme_manager::run(&options)? {
        Ended::Stopped => Ok(ExitCode::SUCCESS),
        Ended::DisplayGone(why) => {
            journal::warning(format!("everything is put back, because the display is gone: {why}"))
                .tell();
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Changes knobs for managers of users until it is stopped.
pub fn help(arguments: ManageHelper) -> Result<ExitCode> {
    if !geteuid().is_root() && arguments.state_dir.is_none() {
        bail!("changing settings for managers needs root; run: sudo tipme manage-helper");
    }
    let allowed =
        arguments.allow_user.iter().map(|name| user_id(name)).collect::<Result<Vec<u32>>>()?;
    tipme_manager::help(&HelperOptions { dir: arguments.state_dir, allowed })?;
    Ok(ExitCode::SUCCESS)
}

fn use_helper(choice: Option<HelperChoice>) -> UseHelper {
    match choice {
        None => UseHelper::Auto,
        Some(HelperChoice::Never) => UseHelper::Never,
        Some(HelperChoice::In(dir)) => UseHelper::In(dir),
    }
}

fn turn(client: &Client, strength: Strength) -> Result<ExitCode> {
    client.call(&ManagerRequest::Strength(strength.to_string()))?;
    println!("strength {strength}");
    Ok(ExitCode::SUCCESS)
}

fn status(client: &Client, json: bool) -> Result<ExitCode> {
    let ManagerResponse::Status(status) = client.call(&ManagerRequest::Status)? else {
        bail!("unexpected reply from the manager; restart it")
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        print!("{}", text(&status));
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the status for people.
fn text(status: &ManagerStatus) -> String {
    let mut lines = vec![format!(
        "managing {} for user {} with {}{}, {}{}{}",
        status.display,
        status.user,
        status.backend,
        status.helper.map(|pid| format!(" by the helper (pid {pid})")).unwrap_or_default(),
        status.strength,
        status.under.map(|pid| format!(", only below process {pid}")).unwrap_or_default(),
        if status.present { "" } else { "; the user is away" },
    )];
    lines.extend(status.silent_seconds.map(|seconds| {
        let display = &status.display;
        format!(
            "  {display} has not answered for {seconds:.0} s: a client has grabbed it, \
             or it hangs; until it answers, nothing changes"
        )
    }));
    lines.extend(status.missing.iter().map(|missing| format!("  cannot: {missing}")));
    let core: Vec<String> =
        status.core.iter().map(|(program, pid)| format!("{} {pid}", clean(program))).collect();
    lines.push(format!("core: {}", core.join(", ")));
    lines.extend(sets(status));
    lines.extend(figures(status));
    lines.join("\n") + "\n"
}

fn sets(status: &ManagerStatus) -> Vec<String> {
    let mut lines =
        vec![format!("{:<10} {:<16} {:>8} {:>10}  why", "role", "program", "pid", "processes")];
    lines.extend(status.sets.iter().map(|set| {
        format!(
            "{:<10} {} {:>8} {:>10}  {}",
            set.role,
            padded(&clean(&set.program), 16),
            set.pid,
            set.processes,
            set.reason
        )
    }));
    if status.sets_left_out > 0 {
        lines.push(format!("and {} more", status.sets_left_out));
    }
    lines
}

fn figures(status: &ManagerStatus) -> Vec<String> {
    let (times, memory, counts) = (&status.focus_changes, &status.memory, &status.counts);
    let mut lines = vec![
        format!(
            "focus changes: {}, to the last knob in {} ms (p50 {}, p99 {}, max {})",
            times.n, times.last_ms, times.p50_ms, times.p99_ms, times.max_ms
        ),
        format!(
            "memory: {} of {} MiB available, {:.1}% of the time stalled, {} actions",
            memory.available_bytes >> 20,
            memory.total_bytes >> 20,
            memory.some_percent,
            memory.actions
        ),
    ];
    lines.push(status.prediction.as_ref().map_or("prediction: off".to_owned(), |prediction| {
        let rate = 100.0 * prediction.hits as f64 / prediction.predictions.max(1) as f64;
        format!(
            "prediction: {} of {} right ({rate:.0}%), {} read ahead",
            prediction.hits, prediction.predictions, prediction.warmed
        )
    }));
    lines.extend(status.preload.as_ref().map(read_ahead));
    lines.push(format!(
        "knobs: {} changed, {} left alone; {} dropped, {} claims rejected, {} checks skipped",
        counts.changed, counts.skipped, counts.dropped, counts.disbelieved, counts.looks_left
    ));
    lines.push(format!(
        "own cost: {:.2}% of one CPU over {:.0} s{}, {:.1} MiB",
        status.own_cpu_percent,
        status.seconds,
        most_of(&status.own_cpu_by),
        mib(status.own_rss_bytes)
    ));
    lines
}

/// Returns the largest parts of the manager's own CPU time.
fn most_of(own_cpu_by: &BTreeMap<String, f64>) -> String {
    let mut most: Vec<(&String, &f64)> =
        own_cpu_by.iter().filter(|(_, percent)| **percent >= 0.005).collect();
    most.sort_by(|one, other| other.1.total_cmp(one.1));
    let words: Vec<String> =
        most.iter().take(3).map(|(what, percent)| format!("{what} {percent:.2}%")).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Describes the preload at the start.
fn read_ahead(preload: &PreloadStatus) -> String {
    let ended = match preload.state {
        PreloadState::UnderWay => return "read ahead at the start: under way".to_owned(),
        PreloadState::Off => return "read ahead at the start: no more, switched off".to_owned(),
        PreloadState::OutOfTime => "; ended early, as others needed the machine",
        PreloadState::Done => "",
    };
    format!(
        "read ahead at the start: {} programs, {} files, {:.0} MiB ({:.0} from the disk) in \
         {:.1} s, paused for {:.1} s of them; {} files skipped{ended}",
        preload.programs,
        preload.files,
        mib(preload.bytes),
        mib(preload.fetched_bytes),
        preload.seconds,
        preload.paused_seconds,
        preload.skipped
    )
}
