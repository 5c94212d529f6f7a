// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults that take the CPU: other processes, a quota, the program itself.

use super::scenario::{ECHO, InjectedFault, Scenario, Site, start};
use crate::cpu_work::last_cpu;
use crate::filler::text;
use crate::group::ControlGroup;
use crate::process::family;
use anyhow::{Context, Result};
use std::fs::File;
use std::process::Command;

/// Script that prints the next page of the file `$8` for each key. A terminal that has a page to
/// draw uses up its time slices, and then waits for all others; for a mere echo the kernel would
/// run it soon.
const PAGE: &str = r#"
    mapfile -n 40 -u 8
    printf '\e[H'
    printf '%s' "${MAPFILE[@]}""#;
/// Number of concurrent processes: each wait for all of them takes hundreds of milliseconds.
const PARALLEL: &str = "260";
/// Total number of processes, which bounds the job to about half a minute of one CPU.
const TOTAL: usize = 300;
/// Bytes that each process compresses: a tenth of a second of CPU time, so that they pile up even
/// if a busy machine starts few in a second.
const INPUT_BYTES: usize = 1 << 20;
/// Size of the file in bytes: more pages than keys are typed.
const DOCUMENT_BYTES: usize = 1 << 20;

/// `xargs` keeps many `gzip` processes busy on the terminal's CPU.
///
/// The parent may use any CPU, so that its children do not keep it from starting new ones.
pub(super) fn storm(site: &Site) -> Result<Scenario> {
    let document = site.write("document", text(DOCUMENT_BYTES))?;
    let input = site.write("input", text(INPUT_BYTES))?;
    let list = site.write("list", format!("{}\n", input.display()).repeat(TOTAL))?;
    let pager = Scenario::on_key("pager", r#"exec 8<"$1""#, PAGE, &[&document]).typing(" ");
    Ok(pager.injecting(move |_| {
        let cpu = last_cpu().unwrap_or_default().to_string();
        let words = ["-n", "1", "-P", PARALLEL, "taskset", "-c", &cpu, "gzip", "-9", "-c"];
        let mut command = Command::new("xargs");
        command.args(words).stdin(File::open(&list).context("cannot read the list of files")?);
        let job = start("the compression job", command)?;
        Ok(InjectedFault::job(&format!("xargs {}", words.join(" ")), job))
    }))
}

/// CPU time in each tenth of a second, in microseconds.
const QUOTA_US: u64 = 5_000;
/// Counts for some tens of milliseconds.
const COUNT: &str = "for ((i = 0; i < 30000; i++)); do :; done";

/// A control group limits the CPU time of the terminal once the fault begins.
pub(super) fn quota(_: &Site) -> Result<Scenario> {
    let group = ControlGroup::named("tipme-fault-", "cpu")?;
    let counter = Scenario::on_key("counter", "", &format!("{COUNT}\n{ECHO}"), &[]);
    Ok(counter.behind(group.prefix()).injecting(move |_| {
        group.limit_cpu(QUOTA_US)?;
        Ok(InjectedFault::new("a quota of 5 ms of CPU time in each 100 ms").named(group.name()))
    }))
}

/// Script that computes for the milliseconds in the file `$1`.
const COMPUTE: &str = r#"
    read -r ms <"$1"
    end=$((${EPOCHREALTIME/./} + ms * 1000))
    while ((${EPOCHREALTIME/./} < end)); do :; done"#;

/// The program takes a long time for a document that has become large.
pub(super) fn computation(site: &Site) -> Result<Scenario> {
    let size = site.write("size", "1\n")?;
    let each = format!("{COMPUTE}\n{ECHO}");
    let script = Scenario::on_key("layout", "LC_ALL=C", &each, &[&size]);
    let site = site.clone();
    Ok(script.injecting(move |terminal| {
        site.write("size", "800\n")?;
        Ok(InjectedFault::new("the shell computes for 0.8 s").by(&family(terminal)))
    }))
}
