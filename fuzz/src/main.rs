// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the targets by count or for a time, and saves the inputs that cause a panic.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tipme_fuzz::{Outcome, TARGETS, Target, run};

/// Inputs between checks of the clock.
const PORTION: u64 = 500;

/// Try every decoder with mutated input; exit code 1 if one has panicked
#[derive(Parser)]
struct Arguments {
    /// Mutations of each target
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    count: u64,
    /// Time for all targets together, instead of a count
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// The number of the first mutation
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// This target only
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Try a target with this file as it is
    #[arg(long, value_name = "FILE", requires = "target")]
    input: Option<PathBuf>,
    /// Folder for the inputs that made a target panic
    #[arg(long, value_name = "DIR", default_value = "fuzz/artifacts")]
    artifacts: PathBuf,
    /// List the targets
    #[arg(long)]
    list: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let wanted =
        |target: &&Target| arguments.target.as_ref().is_none_or(|name| name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    ensure!(!targets.is_empty(), "there is no such target; see --list");
    if arguments.list {
        targets.iter().for_each(|target| println!("{:12}{}", target.name, target.what));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &arguments.input {
        println!(
            "understood: {}",
            (targets[0].check)(
                &std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
            )
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut panics = 0;
    for target in &targets {
        let outcome = match arguments.minutes {
            None => run(target, arguments.first, arguments.count),
            Some(minutes) => run_for(
                target,
                arguments.first,
                Duration::from_secs(minutes * 60) / targets.len() as u32,
            ),
        };
        println!("{}", summary(target, &outcome));
        panics += outcome.panics.len();
        keep(&arguments.artifacts, target, &outcome)?;
    }
    Ok(if panics == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_for(target: &Target, first: u64, time: Duration) -> Outcome {
    let (begun, mut whole) = (Instant::now(), Outcome::default());
    while begun.elapsed() < time {
        let outcome = run(target, first + whole.count, PORTION);
        let before = if whole.count == 0 { outcome.memory.0 } else { whole.memory.0 };
        whole.memory = (before, outcome.memory.1);
        whole.count += outcome.count;
        whole.understood += outcome.understood;
        whole.slowest = whole.slowest.max(outcome.slowest);
        whole.panics.extend(outcome.panics);
    }
    whole
}

fn summary(target: &Target, outcome: &Outcome) -> String {
    let (begin, end) = outcome.memory;
    let [begin_mib, end_mib] = [begin, end].map(|bytes| bytes as f64 / f64::from(1 << 20));
    format!(
        "{:12}{:8} inputs, {} understood, {} panics, slowest {:.1} ms (number {}), \
         memory {begin_mib:.1} MiB after a tenth and {end_mib:.1} MiB at the end",
        target.name,
        outcome.count,
        outcome.understood,
        outcome.panics.len(),
        outcome.slowest.0.as_secs_f64() * 1e3,
        outcome.slowest.1,
    )
}

fn keep(folder: &Path, target: &Target, outcome: &Outcome) -> Result<()> {
    for (number, bytes) in outcome.panics.iter().enumerate().take(20) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(format!("{}-{number}", target.name));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        println!("  {}", path.display());
    }
    Ok(())
}
