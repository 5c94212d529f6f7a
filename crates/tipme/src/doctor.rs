// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme doctor`.

use crate::arguments::Doctor;
use crate::status::State;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tipme_desktop::console::{ACTIVE, Console};
use tipme_recorder::Finding;

/// Says whether a press will find its cause, and then what is missing and matters to that; with `--verbose` everything.
/// Exit code 1 where it will not.
pub fn run(arguments: &Doctor) -> Result<ExitCode> {
    let (mut findings, state) = (vec![rights()], State::look(arguments.state_dir.as_deref()));
    findings.extend(tipme_recorder::check());
    findings.extend(displays());
    findings.extend(compositors());
    findings.push(console_keys());
    findings.extend(managing());
    if arguments.json {
        println!("{}", json(&findings, &state));
    } else {
        println!("{}", state.headline());
        let wanted = |finding: &&Finding| arguments.verbose || (finding.result.is_err() && matters(finding));
        findings.iter().filter(wanted).for_each(print);
        if !arguments.verbose {
            println!("Everything that was looked at: tipme doctor --verbose");
        }
    }
    Ok(if state.hindrance().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a press needs, or what its verdict says less without; not the rest, such as what the manager can use.
fn matters(finding: &Finding) -> bool {
    !finding.what.starts_with("manage") && !["console hot keys", "rights"].contains(&finding.what.as_str())
}

fn rights() -> Finding {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root = status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"));
    let result =
        if root { Ok("root".to_owned()) } else { Err("not root; recording needs: sudo tipme record".to_owned()) };
    Finding { what: "rights".to_owned(), result }
}

fn displays() -> Vec<Finding> {
    let found = tipme_desktop::server::list(Duration::from_secs(1));
    if found.is_empty() {
        let why = "no X server found; interactions are recorded on X11 only, threads everywhere".to_owned();
        return vec![Finding { what: "displays".to_owned(), result: Err(why) }];
    }
    let lines = found.into_iter().map(|(number, result)| Finding {
        what: format!("display :{number}"),
        result: result
            .map(|display| format!("server pid {}, {} extensions", display.server_pid, display.extensions.len()))
            .map_err(|error| error.to_string()),
    });
    lines.collect()
}

/// No protocol of Wayland names the process of a window, and none lets a program grab a key.
fn compositors() -> impl Iterator<Item = Finding> {
    let why = "a Wayland compositor; what its threads wait for is recorded, which key waited for which window is not; \
               hot keys: tipme record --hot-keys always; the manager follows X11 windows only";
    let found = tipme_desktop::server::find_compositors().into_iter();
    found.map(move |socket| Finding { what: format!("display {socket}"), result: Err(why.to_owned()) })
}

/// Whether the recorder can see hot keys itself: where there are keyboards, and a console that may show text.
fn console_keys() -> Finding {
    let result = tipme_desktop::input::Devices::open().map_err(|error| error.to_string()).and_then(|devices| {
        let refused = devices.refused.first().map_or("there is none".to_owned(), |(_, why)| why.clone());
        let count = Some(devices.count()).filter(|count| *count > 0);
        let count = count.ok_or_else(|| format!("no input device can be read ({refused}); hot keys: tipme agent"))?;
        let console = Console::open(Path::new(ACTIVE)).map_err(|error| {
            format!("{count} input devices, but no console ({error}); hot keys: tipme agent, or --hot-keys always")
        })?;
        let graphics = "graphics; hot keys there: tipme agent under X11, --hot-keys always under Wayland";
        let shows = if console.is_text() { "text" } else { graphics };
        Ok(format!("{count} input devices can be read; the console shows {shows}"))
    });
    Finding { what: "console hot keys".to_owned(), result }
}

/// How `tipme manage` can do its work here.
fn managing() -> Vec<Finding> {
    let offers = tipme_sched::offers(Path::new("/proc"), None, None).into_iter().map(|offer| Finding {
        what: format!("manage by {}", offer.backend),
        result: offer.unusable.map_or_else(|| Ok("can be used".to_owned()), Err),
    });
    let scheduler = tipme_sched::extension().map_or_else(
        || "no scheduler of the class sched_ext is at work".to_owned(),
        |name| format!("{name} (sched_ext) is at work: it may ignore weights, nice values are set besides"),
    );
    let helper = tipme_manager::ask_helper(None);
    let more = [("manage: scheduler", Ok(scheduler)), ("manage: helper", helper)];
    offers.chain(more.map(|(what, result)| Finding { what: what.to_owned(), result })).collect()
}

fn print(finding: &Finding) {
    match &finding.result {
        Ok(found) => println!("ok       {:24} {found}", finding.what),
        Err(why) => println!("missing  {:24} {why}", finding.what),
    }
}

fn json(findings: &[Finding], state: &State) -> serde_json::Value {
    let lines = findings.iter().map(|finding| {
        let (ok, text) = finding.result.as_ref().map_or_else(|why| (false, why), |found| (true, found));
        serde_json::json!({ "what": finding.what, "ok": ok, "text": text })
    });
    let because = state.hindrance();
    serde_json::json!({
        "schema": 1, "ready": because.is_none(), "because": because, "findings": lines.collect::<Vec<_>>(),
    })
}
