// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme demo`.

use crate::lines::Lines;
use crate::{arguments, programs};
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::demo::{self, DemoOptions, DemoOutcome};
use tipme_bench::interrupt::InterruptFlag;
use tipme_command::output::layout;

/// Runs the demonstration. Exit code 0 if the diagnosis has the right kind and culprit, else 1.
pub fn run(arguments: arguments::Demo) -> Result<ExitCode> {
    let options = DemoOptions {
        fault: arguments.fault,
        place: arguments.display,
        launcher: programs::launcher()?,
        tipme: programs::tipme()?,
        state_dir: arguments.state_dir,
    };
    let outcome = demo::run(&options, &InterruptFlag::install()?, &mut Lines("demo"))?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print(&outcome);
    }
    Ok(ExitCode::from(u8::from(!outcome.ok)))
}

fn print(outcome: &DemoOutcome) {
    let verdict = serde_json::from_value(outcome.verdict.clone());
    let text = verdict
        .map_or_else(|_| outcome.text.clone(), |verdict| tipme_report::text(&verdict, &layout()));
    println!("{}\n", text.trim_end());
    let injected = &outcome.injected;
    let pids: Vec<String> = injected.pids.iter().take(5).map(u32::to_string).collect();
    println!(
        "injected: {} (pids {}{})",
        injected.job.as_deref().unwrap_or("nothing"),
        pids.join(", "),
        more(injected)
    );
    if let (Some(fault), Some(calm)) = (injected.fault_ms_max, injected.calm_ms_max) {
        println!(
            "from a key to the next drawing on the screen: \
             {fault:.0} ms at worst, before it {calm:.0} ms"
        );
    }
    println!("incident: {}", outcome.incident.display());
    println!("{}", if outcome.ok { "demo: the injected cause was found" } else { "demo: FAILED" });
    if !outcome.ok {
        println!("demo: {}", outcome.why);
    }
}

fn more(injected: &demo::DemoInjection) -> String {
    match injected.pids.len() {
        0..=5 => String::new(),
        count => format!(" and {} more", count - 5),
    }
}
