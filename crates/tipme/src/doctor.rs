// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme doctor`.

use crate::arguments::Doctor;
use crate::desktop_keys::KeyState;
use crate::status::SystemState;
use anyhow::Result;
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tipme_command::output::layout;
use tipme_desktop::console::{ACTIVE, Console};
use tipme_record::proc_text::{PREEMPTION, preemption};
use tipme_recorder::KernelCheck;
use tipme_report::{Layout, Tone};

/// Reports whether a press will find its cause, and then the relevant missing functions; with
/// `--verbose` everything. Exit code 1 if it will not.
pub fn run(arguments: &Doctor) -> Result<ExitCode> {
    let (mut findings, state) = (vec![rights()], SystemState::read(arguments.state_dir.as_deref()));
    findings.extend(recording(&state, arguments.verbose));
    findings.extend(displays());
    findings.extend(compositors());
    findings.extend(desktop_keys(&state));
    findings.push(console_keys());
    findings.extend(managing());
    if arguments.json {
        println!("{}", serde_json::to_string(&document(&findings, &state))?);
    } else {
        print!("{}", text(&findings, &state, arguments.verbose, &layout()));
    }
    Ok(if state.hindrance().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the kernel's recording capabilities. Root can test them; otherwise returns the missing
/// ones known to the running recorder, or the missing recorder itself.
fn recording(state: &SystemState, verbose: bool) -> Vec<KernelCheck> {
    if verbose || geteuid().is_root() {
        return tipme_recorder::check();
    }
    let missing = state.missing().iter();
    missing
        .map(|why| KernelCheck { what: "recording".to_owned(), result: Err(why.clone()) })
        .collect()
}

/// Returns `true` for functions that a press needs or that improve its verdict, unlike those of the
/// manager.
fn matters(finding: &KernelCheck) -> bool {
    let foreign = std::env::var("DISPLAY").is_ok_and(|own| {
        let display =
            finding.what.strip_prefix("display ").filter(|display| display.starts_with(':'));
        display.is_some_and(|display| own.split('.').next() != Some(display))
    });
    !foreign
        && !finding.what.starts_with("manage")
        && !["console hot keys", "rights"].contains(&finding.what.as_str())
}

fn rights() -> KernelCheck {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root = tipme_record::proc_text::users(&status).is_some_and(|(_, effective)| effective == 0);
    let result = if root {
        Ok("root".to_owned())
    } else {
        Err("not root; recording needs: sudo tipme record".to_owned())
    };
    KernelCheck { what: "rights".to_owned(), result }
}

fn displays() -> Vec<KernelCheck> {
    let found = tipme_desktop::server::list(Duration::from_secs(1));
    if found.is_empty() {
        let why =
            "no X server found; interactions are recorded on X11 and Wayland, threads everywhere"
                .to_owned();
        return vec![KernelCheck { what: "displays".to_owned(), result: Err(why) }];
    }
    let lines = found.into_iter().map(|(number, result)| KernelCheck {
        what: format!("display :{number}"),
        result: result
            .map(|display| {
                format!(
                    "server pid {}, {} extensions",
                    display.server_pid,
                    display.extensions.len()
                )
            })
            .map_err(|error| error.to_string()),
    });
    lines.collect()
}

/// No Wayland protocol reveals the process of a window, and none lets a program grab a key.
fn compositors() -> impl Iterator<Item = KernelCheck> {
    let what = "a Wayland compositor: input is recorded up to the frame that answers it; \
                for hot keys, run tipme setup, or tipme record --hot-keys always; \
                the manager follows the focus that the recorder reports";
    let found = tipme_desktop::server::find_compositors().into_iter();
    found.map(move |socket| KernelCheck {
        what: format!("display {socket}"),
        result: Ok(what.to_owned()),
    })
}

/// Returns the state of the keys according to this session's desktop.
fn desktop_keys(state: &SystemState) -> Option<KernelCheck> {
    let result = match state.key()? {
        (source, KeyState::Works(key)) => {
            Ok(format!("{key} marks, bound in {}", source.settings()))
        }
        (_, KeyState::OfAgent) => {
            Ok("the portal of the desktop binds them at the request of the agent".to_owned())
        }
        (_, other) => Err(other.hindrance().unwrap_or_default()),
    };
    Some(KernelCheck { what: "hot keys of the desktop".to_owned(), result })
}

/// Checks whether the recorder can read hot keys itself: requires keyboards, and a console that may
/// show text.
fn console_keys() -> KernelCheck {
    KernelCheck { what: "console hot keys".to_owned(), result: find_console() }
}

fn find_console() -> Result<String, String> {
    let devices = tipme_desktop::input::Devices::open().map_err(|error| error.to_string())?;
    let count = devices.count();
    if count == 0 {
        let refused = devices.refused.first().map_or("there is none", |(_, why)| why.as_str());
        return Err(format!(
            "no input device can be read ({refused}); for hot keys, use tipme agent"
        ));
    }
    let console = Console::open(Path::new(ACTIVE)).map_err(|error| {
        format!(
            "{count} input devices, but no console ({error}); for hot keys, use tipme agent, \
             or --hot-keys always"
        )
    })?;
    let shows = if console.is_text() {
        "text"
    } else {
        "graphics; for hot keys there, use tipme agent under X11, --hot-keys always under Wayland"
    };
    Ok(format!("{count} input devices can be read; the console shows {shows}"))
}

/// Returns the usable backends of `tipme manage`.
fn managing() -> Vec<KernelCheck> {
    let offers =
        tipme_sched::offers(Path::new("/proc"), None, None).into_iter().map(|offer| KernelCheck {
            what: format!("manage by {}", offer.backend),
            result: offer.unusable.map_or_else(|| Ok("usable".to_owned()), Err),
        });
    let scheduler = match tipme_sched::extension() {
        None => "no sched_ext scheduler is loaded".to_owned(),
        Some(name) => format!(
            "{name} (sched_ext) is loaded and may ignore weights; nice values are set as well"
        ),
    };
    let helper = tipme_manager::ask_helper(None);
    let more = [
        ("manage: scheduler", Ok(scheduler)),
        (
            "manage: preemption",
            Ok(preemption_words(&std::fs::read_to_string(PREEMPTION).unwrap_or_default())),
        ),
        ("manage: helper", helper),
    ];
    offers.chain(more.map(|(what, result)| KernelCheck { what: what.to_owned(), result })).collect()
}

/// Describes the kernel's preemption model, and the cost of a lazy one.
fn preemption_words(text: &str) -> String {
    match preemption(text) {
        Some("lazy") => format!(
            "lazy: a thread that wakes up may wait for the next tick; to avoid that, boot with \
             preempt=full, or until the next boot, as root: echo full >{PREEMPTION}"
        ),
        Some(other) => other.to_owned(),
        None => format!(
            "unknown: only root can read it, from {PREEMPTION}, if debugfs is mounted and the \
             kernel offers the choice"
        ),
    }
}

fn text(findings: &[KernelCheck], state: &SystemState, verbose: bool, layout: &Layout) -> String {
    let wanted =
        findings.iter().filter(|finding| verbose || (finding.result.is_err() && matters(finding)));
    let lines: Vec<String> = wanted.map(|finding| line(finding, layout)).collect();
    let head = match lines.is_empty() {
        true if state.hindrance().is_some() => "Nothing else is missing.\n",
        true => "Nothing is missing for a verdict.\n",
        false if verbose => "\n",
        false => "\nWithout these, verdicts are less detailed:\n",
    };
    let more = if verbose { "" } else { "All checks: tipme doctor --verbose\n" };
    format!("{}{head}{}{more}", state.ready(layout), lines.concat())
}

/// Formats a line such as `missing  display :0               why, and the remedy`.
fn line(finding: &KernelCheck, layout: &Layout) -> String {
    let (tone, word, text) = match &finding.result {
        Ok(found) => (Tone::Good, "ok", found),
        Err(why) => (Tone::Bad, "missing", why),
    };
    layout
        .item(&format!("{}  {:24} ", layout.paint(tone, &format!("{word:7}")), finding.what), text)
}

/// Output of `tipme doctor --json`: capabilities of this kernel, display and user.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme doctor --json")]
pub struct DoctorDocument {
    pub schema: u32,
    /// `true` if a press of the key will find its cause.
    pub ready: bool,
    /// Reason why it will not, with the remedy; `null` if it will.
    pub because: Option<String>,
    pub findings: Vec<CheckResult>,
}

/// Result of a check.
#[derive(Serialize, JsonSchema)]
pub struct CheckResult {
    pub what: String,
    pub ok: bool,
    /// Result, or the missing function with its remedy.
    pub text: String,
}

fn document(findings: &[KernelCheck], state: &SystemState) -> DoctorDocument {
    let findings = findings.iter().map(|KernelCheck { what, result }| CheckResult {
        what: what.clone(),
        ok: result.is_ok(),
        text: result.clone().unwrap_or_else(|why| why),
    });
    let because = state.hindrance();
    DoctorDocument { schema: 1, ready: because.is_none(), because, findings: findings.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazy_preemption_comes_with_its_remedy() {
        let words = preemption_words("none voluntary full (lazy)\n");
        let remedy = format!("echo full >{PREEMPTION}");
        assert!(words.starts_with("lazy: ") && words.ends_with(&remedy), "{words}");
        assert_eq!(preemption_words("none voluntary (full) lazy\n"), "full");
        assert!(preemption_words("").contains("debugfs"));
    }
}
