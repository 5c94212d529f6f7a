// SPDX-License-Identifier: MIT OR Apache-2.0
//! System steps: the recording service, users that may mark, and daily counting.

use super::settings;
use super::step::SetupStep;
use crate::arguments::Setup;
use crate::record::user_name;
use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tipme_control::{
    CallError, Client, DEFAULT_STATE_DIR, GROUP, RecorderRequest, RecorderResponse, accounts,
};
use tipme_desktop::polkit::{self, Authorization};

const SERVICE: &str = "tipmed";
const SETTINGS: &str = "/etc/default/tipme";
/// Exists if systemd is the init system.
const SYSTEMD: &str = "/run/systemd/system";

/// Plans the steps. The user starts and stops a recorder in a custom folder.
pub fn plan(arguments: &Setup) -> Result<Vec<SetupStep>> {
    let (dir, own) = folder(arguments);
    after(&Client::new(dir).call(&RecorderRequest::Status), own, arguments)
}

/// Plans the steps after this response of the recorder.
fn after(
    answer: &Result<RecorderResponse, CallError>,
    own: bool,
    arguments: &Setup,
) -> Result<Vec<SetupStep>> {
    match answer {
        Ok(answer) => {
            let pid = if let RecorderResponse::Status(status) = answer { status.pid } else { 0 };
            let mut steps = vec![
                SetupStep::already("a recorder is running, and you may mark"),
                enable_running(own, pid),
            ];
            let day = day(arguments);
            let changes = day.as_ref().is_some_and(SetupStep::is_to_do);
            steps.extend(day.into_iter().chain(changes.then(restart)));
            return Ok(steps);
        }
        // A recorder runs, and this user may not mark yet: a second recorder is no remedy.
        Err(CallError::Refused(_)) if !own => {
            let mut steps = vec![SetupStep::already("a recorder is running")];
            let is_named_in_settings =
                accounts::user_name(desktop_user()).is_none() && is_installed();
            steps.extend(allow()?.into_iter().chain(day(arguments)));
            steps.extend(is_named_in_settings.then(restart));
            return Ok(steps);
        }
        Err(error) if own => return Ok(vec![SetupStep::by_hand(error.to_string())]),
        Err(_) => {}
    }
    let mut steps = allow()?;
    steps.extend(day(arguments));
    if !Path::new(SYSTEMD).exists() {
        let why = "systemd is not running; run this now, and have it run at every boot";
        let user = if desktop_user() == 0 {
            String::new()
        } else {
            format!(" --allow-user {}", desktop_user())
        };
        steps.push(SetupStep::by_hand(format!("{why}: sudo tipme record{user}")));
    } else if !is_installed() {
        steps.push(SetupStep::by_hand(format!(
            "the service {SERVICE} is not installed; run: sudo make install"
        )));
    } else {
        steps.extend([enable(), restart()]);
    }
    Ok(steps)
}

fn enable() -> SetupStep {
    run_step("record from every boot on", &["systemctl", "enable", SERVICE])
}

fn restart() -> SetupStep {
    run_step("start recording now", &["systemctl", "restart", SERVICE])
}

/// Creates a step that runs a command as root, and shows it.
fn run_step(what: &str, words: &'static [&'static str]) -> SetupStep {
    SetupStep::to_do(format!("{what}: {}", words.join(" ")), move || run(words))
}

/// Enables or disables daily counting in the service, if requested.
fn day(arguments: &Setup) -> Option<SetupStep> {
    let on = arguments.day;
    if !on && !arguments.no_day {
        return None;
    }
    let what = if on { "count your delays" } else { "no longer count your delays" };
    if !is_installed() {
        let option = if on { "with" } else { "without" };
        return Some(SetupStep::by_hand(format!("{what}: start the recorder {option} --day")));
    }
    Some(match settings_text().map(|text| settings::day(&text, on)) {
        Ok(None) => SetupStep::already(format!("{what}, according to {SETTINGS}")),
        // An earlier step may change the file.
        _ => write_day(what, on),
    })
}

fn write_day(what: &str, on: bool) -> SetupStep {
    SetupStep::to_do(format!("{what}, in {SETTINGS}"), move || {
        settings::day(&settings_text()?, on).map_or(Ok(()), |text| write(SETTINGS, &text))
    })
}

/// Plans the start of the running recorder at boot.
fn enable_running(own: bool, pid: u32) -> SetupStep {
    if own || !is_installed() {
        let what = "is not a service; start it again after the next boot";
        return SetupStep::note(format!("the recorder (process {pid}) {what}"));
    }
    enable()
}

pub fn undo(arguments: &Setup) -> Result<Vec<SetupStep>> {
    if folder(arguments).1 {
        return Ok(vec![SetupStep::note(
            "the recorder is not a service; stop it where it was started",
        )]);
    }
    let mut steps = Vec::new();
    if Path::new(SYSTEMD).exists() && is_installed() {
        steps.push(run_step("stop recording", &["systemctl", "disable", "--now", SERVICE]));
    }
    steps.extend(disallow());
    if settings::day(&settings_text().unwrap_or_default(), false).is_some() {
        steps.push(write_day("no longer count your delays", false));
    }
    Ok(steps)
}

/// Plans the permission to mark: none if polkit or the settings grant it already, else membership
/// in the group. A user without a local account is listed in the settings.
fn allow() -> Result<Vec<SetupStep>> {
    let (user, name) = (desktop_user(), user_name(desktop_user()));
    let text = settings_text()?;
    let named = settings::allow(&text, user);
    let so = if user == 0 {
        return Ok(Vec::new());
    } else if accounts::is_member(GROUP, user) {
        format!("{name} may mark, as a member of the group {GROUP}")
    } else if named.is_none() {
        format!("{name} may mark, according to {SETTINGS}")
    } else if polkit::of_process(std::process::id(), user) == Authorization::Yes {
        format!("{name} may mark, according to polkit ({})", polkit::ACTION)
    } else if let Some(account) = accounts::user_name(user) {
        let what = format!("allow {name} to mark, as a member of the group {GROUP}");
        return Ok(vec![SetupStep::to_do(what, move || {
            run(&["groupadd", "--system", "--force", GROUP])?;
            run(&["gpasswd", "--add", &account, GROUP])
        })]);
    } else {
        let text = named.unwrap_or_default();
        return Ok(vec![SetupStep::to_do(
            format!("allow {name} to mark, in {SETTINGS}"),
            move || write(SETTINGS, &text),
        )]);
    };
    Ok(vec![SetupStep::already(so)])
}

fn settings_text() -> Result<String> {
    match std::fs::read_to_string(SETTINGS) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("cannot read {SETTINGS}: {error}")
        }
        text => Ok(text.unwrap_or_default()),
    }
}

/// Plans the removal of the permission to mark.
fn disallow() -> Vec<SetupStep> {
    let (user, name, mut steps) = (desktop_user(), user_name(desktop_user()), Vec::new());
    if let Some(text) = settings::disallow(&settings_text().unwrap_or_default(), user) {
        let what = format!("no longer allow {name} to mark, in {SETTINGS}");
        steps.push(SetupStep::to_do(what, move || write(SETTINGS, &text)));
    }
    if let Some(account) = accounts::user_name(user).filter(|_| accounts::is_member(GROUP, user)) {
        let what = format!("no longer allow {name} to mark: remove from the group {GROUP}");
        steps.push(SetupStep::to_do(what, move || run(&["gpasswd", "--delete", &account, GROUP])));
    }
    steps
}

/// Returns the recorder's folder, and whether it is a custom one.
fn folder(arguments: &Setup) -> (&Path, bool) {
    let usual = Path::new(DEFAULT_STATE_DIR);
    arguments.state_dir.as_deref().map_or((usual, false), |dir| (dir, dir != usual))
}

/// Returns the owner of the desktop: the caller of sudo, if there is one.
pub fn desktop_user() -> u32 {
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    caller.filter(|_| geteuid().is_root()).unwrap_or_else(|| geteuid().as_raw())
}

fn is_installed() -> bool {
    let mut command = Command::new("systemctl");
    command.args(["cat", SERVICE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the command with root privileges.
fn as_root(words: &[&str]) -> Command {
    let prefix: &[&str] = if geteuid().is_root() { &[] } else { &["sudo"] };
    let words = [prefix, words].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn run(words: &[&str]) -> Result<()> {
    let status = as_root(words).status().with_context(|| format!("cannot start {}", words[0]))?;
    if status.success() { Ok(()) } else { bail!("{} failed: {status}", words.join(" ")) }
}

fn write(path: &str, text: &str) -> Result<()> {
    let mut child = as_root(&["tee", path])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start tee")?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
    let status = child.wait()?;
    written?;
    if status.success() { Ok(()) } else { bail!("cannot write {path}: {status}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(answer: Result<RecorderResponse, CallError>) -> String {
        let arguments = Setup {
            state_dir: None,
            mark_key: None,
            undo: false,
            dry_run: false,
            yes: false,
            day: false,
            no_day: false,
        };
        let steps = after(&answer, false, &arguments).expect("the settings can be read");
        steps.iter().map(SetupStep::plan).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_refused_user_is_not_asked_to_start_another_recorder() {
        let plan = planned(Err(CallError::Refused("user 7 may not use this recorder".to_owned())));
        assert!(
            plan.starts_with("already     a recorder is running") && !plan.contains("tipme record"),
            "{plan}"
        );
        let nobody = CallError::Nobody {
            daemon: "recorder",
            start: "sudo tipme record",
            path: "/run/tipme".into(),
        };
        assert!(!planned(Err(nobody)).contains("a recorder is running"));
    }
}
