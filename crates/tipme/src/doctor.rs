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
    let (mut findings, state) = (vec![rights()], SystemState::look(arguments.state_dir.as_deref()));
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
    let missing =
        |what: &String| KernelCheck { what: "recording".to_owned(), result: Err(what.clone()) };
    state.missing().iter().map(missing).collect()
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
    let what = "a Wayland compositor; input is recorded up to the frames that answer it; \
                hot keys: tipme setup, or tipme record --hot-keys always; the manager follows its keyboard focus, \
                as the recorder tells it";
    let found = tipme_desktop::server::find_compositors().into_iter();
    found.map(move |socket| KernelCheck {
        what: format!("display {socket}"),
        result: Ok(what.to_owned()),
    })
}

/// Returns the state of the keys according to this session's desktop.
fn desktop_keys(state: &SystemState) -> Option<KernelCheck> {
    let result = match state.key()? {
        (source, KeyState::Works(key)) => Ok(format!("{key} marks, by {}", source.settings())),
        (_, KeyState::OfAgent) => {
            Ok("the portal of the desktop binds them when the agent asks for them".to_owned())
        }
        (_, other) => Err(other.hindrance().unwrap_or_default()),
    };
    Some(KernelCheck { what: "hot keys of the desktop".to_owned(), result })
}

/// Checks whether the recorder can read hot keys itself: requires keyboards, and a console that may
/// show text.
fn console_keys() -> KernelCheck {
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
    KernelCheck { what: "console hot keys".to_owned(), result }
}

/// Returns the usable backends of `tipme manage`.
fn managing() -> Vec<KernelCheck> {
    let offers =
        tipme_sched::offers(Path::new("/proc"), None, None).into_iter().map(|offer| KernelCheck {
            what: format!("manage by {}", offer.backend),
            result: offer.unusable.map_or_else(|| Ok("can be used".to_owned()), Err),
        });
    let scheduler = tipme_sched::extension().map_or_else(
        || "no scheduler of the class sched_ext is at work".to_owned(),
        |name| {
            format!(
                "{name} (sched_ext) is at work: it may ignore weights, nice values are set besides"
            )
        },
    );
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
            "lazy: where others have the CPU, whoever wakes up may wait until the next tick; at once with preempt=full on \
             the kernel's command line, or until the next start, by root: echo full >{PREEMPTION}"
        ),
        Some(other) => other.to_owned(),
        None => {
            format!(
                "not known: root reads it in {PREEMPTION}, where debugfs is mounted and the kernel has the choice"
            )
        }
    }
}

fn text(findings: &[KernelCheck], state: &SystemState, verbose: bool, layout: &Layout) -> String {
    let wanted = |finding: &&KernelCheck| verbose || (finding.result.is_err() && matters(finding));
    let lines: Vec<String> =
        findings.iter().filter(wanted).map(|finding| line(finding, layout)).collect();
    let head = match lines.is_empty() {
        true if state.hindrance().is_some() => "Nothing else is missing.\n",
        true => "Nothing is missing that a verdict would need.\n",
        false if verbose => "\n",
        false => "\nWithout these a verdict says less:\n",
    };
    let more = if verbose { "" } else { "Everything that was looked at: tipme doctor --verbose\n" };
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

/// What this kernel, display and user allow, as `tipme doctor --json` prints it.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme doctor --json")]
pub struct DoctorDocument {
    pub schema: u32,
    /// Whether a press of the key finds its cause.
    pub ready: bool,
    /// Why it does not, and the remedy; `null` where it does.
    pub because: Option<String>,
    pub findings: Vec<Looked>,
}

/// One thing that was looked at.
#[derive(Serialize, JsonSchema)]
pub struct Looked {
    pub what: String,
    pub ok: bool,
    /// What was found, or what is missing and the remedy.
    pub text: String,
}

fn document(findings: &[KernelCheck], state: &SystemState) -> DoctorDocument {
    let findings = findings.iter().map(|KernelCheck { what, result }| Looked {
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
    fn lazy_preemption_is_told_with_the_remedy() {
        let told = preemption_words("none voluntary full (lazy)\n");
        assert!(
            told.starts_with("lazy: ") && told.ends_with(&format!("echo full >{PREEMPTION}")),
            "{told}"
        );
        assert_eq!(preemption_words("none voluntary (full) lazy\n"), "full");
        assert!(preemption_words("").contains("debugfs"));
    }
}
