// SPDX-License-Identifier: MIT OR Apache-2.0
//! Desktop notifications, by a program that sends them, and whether the session's daemon took them.

use crate::dialog::find_program;
use crate::error::Error;
use crate::plain::plain;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long the daemon may take: a daemon that is stopped answers never.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the program is asked whether it has ended.
const GLANCE: Duration = Duration::from_millis(20);
/// How long the notification stays, where the daemon lets us choose: some sentences are to be read.
const SHOWN_MS: &str = "20000";
/// Letters of a summary and of a body, at most.
const SUMMARY_MAX: usize = 120;
const BODY_MAX: usize = 600;
/// Bytes of the program's complaint that are read.
const COMPLAINT_BYTES_MAX: u64 = 1000;

/// Shows a notification; returns once the daemon has taken it, or with the reason why it has not, after ten seconds at
/// most. The text may have anything in it but markup: that is shown as letters.
///
/// # Errors
/// Where there is no program for it, no session bus, no daemon, or no answer.
pub fn notify(summary: &str, body: &str) -> Result<(), Error> {
    let path = std::env::var("PATH").unwrap_or_default();
    let (summary, body) = (plain(summary, SUMMARY_MAX), plain(body, BODY_MAX));
    let sent = bus().and_then(|()| command(&path, &summary, &body)).and_then(|command| send(command, PATIENCE));
    sent.map_err(|reason| Error::NoNotification { reason })
}

fn command(path: &str, summary: &str, body: &str) -> Result<Command, String> {
    const SERVICE: &str = "org.freedesktop.Notifications";
    if let Some(program) = find_program(path, "notify-send") {
        let mut command = Command::new(program);
        command.args(["--app-name", "tipme", "--expire-time", SHOWN_MS, "--"]);
        // The program reads backslashes in the body, and only there, as a C compiler does.
        command.args([summary, &body.replace('\\', "\\\\")]);
        return Ok(command);
    }
    let program = find_program(path, "gdbus").ok_or("no program sends any; install notify-send (libnotify-bin)")?;
    let mut command = Command::new(program);
    command.args(["call", "--session", "--dest", SERVICE, "--object-path", "/org/freedesktop/Notifications"]);
    command.args(["--method", &format!("{SERVICE}.Notify"), "--", "tipme", "0", ""]);
    command.args([&quoted(summary), &quoted(body), "[]", "{}", SHOWN_MS]);
    Ok(command)
}

/// A string as gdbus reads it.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
    format!("'{escaped}'")
}

/// Fails where no session bus is named: the programs would start one of their own, with nobody on it.
fn bus() -> Result<(), String> {
    let named = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    let usual = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists());
    let why = "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set; start the agent from within the session";
    if named || usual { Ok(()) } else { Err(why.to_owned()) }
}

/// Runs the program to its end; its complaint where it fails. It has ended afterwards.
fn send(mut command: Command, patience: Duration) -> Result<(), String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string();
    let failed = |cause: std::io::Error| format!("{name}: {cause}");
    let mut said = tempfile::tempfile().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone().map_err(failed)?);
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    match wait(&mut child, patience).map_err(failed)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            Err(format!("{name}: {}; see whether a notification daemon runs", complaint(&mut said, status)))
        }
        None => {
            Err(format!("the notification daemon did not answer {name} within {patience:?}; see whether it is stopped"))
        }
    }
}

/// How it ended; `None` where it had to be killed.
fn wait(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(GLANCE);
    }
    // It may end just now by itself.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map(|_| None)
}

/// The first line that the program wrote, or how it ended.
fn complaint(said: &mut File, status: ExitStatus) -> String {
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.take(COMPLAINT_BYTES_MAX).read_to_end(&mut bytes));
    let text = read.map(|_| plain(&String::from_utf8_lossy(&bytes), BODY_MAX)).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| status.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_for_gdbus() {
        assert_eq!(quoted("it's\n\\ "), "'it\\'s\\n\\\\ '");
    }

    #[test]
    fn without_a_program_there_is_none() {
        let error = command("/nonexistent", "a", "b").expect_err("there is no such folder");
        assert!(error.contains("libnotify-bin"), "{error}");
    }

    fn script(text: &str, patience: Duration) -> Result<(), String> {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        send(command, patience)
    }

    #[test]
    fn a_refusal_is_told_with_the_programs_own_words() {
        const LONG: Duration = Duration::from_secs(60);
        assert_eq!(script("exit 0", LONG), Ok(()));
        let why = |text: &str| script(text, LONG).expect_err("it failed");
        assert!(why("echo >&2; echo ' no <such> daemon' >&2; exit 1").starts_with("sh: no (such) daemon; "));
        assert!(why("exit 7").contains("exit status: 7"));
        assert!(why("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1").len() < 1000);
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let error = script("sleep 1000 & wait", Duration::from_millis(50)).expect_err("it does not end");
        assert!(error.contains("did not answer"), "{error}");
    }
}
