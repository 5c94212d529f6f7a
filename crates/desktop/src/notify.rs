// SPDX-License-Identifier: MIT OR Apache-2.0
//! Desktop notifications, where the session has a program to send them.

use crate::dialog::find_program;
use crate::error::Error;
use std::process::{Command, Stdio};

/// Shows a notification; returns at once. `Ok(false)` where there is no program for it.
pub fn notify(summary: &str, body: &str) -> Result<bool, Error> {
    let path = std::env::var("PATH").unwrap_or_default();
    match command(&path, std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some(), summary, body) {
        Some(command) => start(command).map(|()| true),
        None => Ok(false),
    }
}

fn command(path: &str, has_bus: bool, summary: &str, body: &str) -> Option<Command> {
    const SERVICE: &str = "org.freedesktop.Notifications";
    if let Some(program) = find_program(path, "notify-send") {
        let mut command = Command::new(program);
        command.args(["--app-name", "tipme", "--", summary, body]);
        return Some(command);
    }
    let program = find_program(path, "gdbus").filter(|_| has_bus)?;
    let mut command = Command::new(program);
    command.args(["call", "--session", "--dest", SERVICE, "--object-path", "/org/freedesktop/Notifications"]);
    command.args(["--method", &format!("{SERVICE}.Notify"), "--", "tipme", "0", ""]);
    command.args([&quoted(summary), &quoted(body), "[]", "{}", "8000"]);
    Some(command)
}

/// A string as gdbus reads it.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .filter(|character| !character.is_control() || *character == '\n')
        .flat_map(|character| match character {
            '\'' | '\\' => vec!['\\', character],
            '\n' => vec!['\\', 'n'],
            other => vec![other],
        })
        .collect();
    format!("'{escaped}'")
}

fn start(mut command: Command) -> Result<(), Error> {
    let failed = |cause| Error::Io { what: "cannot show a notification".to_string(), cause };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    // Whether it was shown is nobody's business; the child must be waited for all the same.
    std::thread::spawn(move || child.wait());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_for_gdbus() {
        assert_eq!(quoted("it's\n\\ \u{1}"), "'it\\'s\\n\\\\ '");
    }

    #[test]
    fn without_a_program_or_a_bus_there_is_none() {
        assert!(command("/nonexistent", true, "a", "b").is_none());
        assert!(command("/usr/bin", false, "a", "b").is_none_or(|command| command.get_program() != "gdbus"));
    }
}
