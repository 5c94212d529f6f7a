// SPDX-License-Identifier: MIT OR Apache-2.0
//! The applications of our own: they obey before they answer a key.
//!
//! One has a window of its own, the other sits on a terminal. Both leave their process number in the
//! folder once they take keys, and the reason where an order could not be carried out; then they
//! answer the key all the same, so that nobody waits for nothing.

use super::operations;
use anyhow::{Context, Result};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tipme_desktop::DisplayTarget;
use tipme_desktop::echo::EchoWindow;

/// Names the process that obeys, once it takes keys.
const READY: &str = "ready";
/// Why an order was not carried out.
const FAILURE: &str = "failure";
/// Without a key for so long the application ends: whoever started it is gone.
const KEY_TIMEOUT: Duration = Duration::from_secs(120);
/// How long an exchange with the display may take, longer than any fault.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the application with a window. Says `ready` on the standard output, too.
pub(crate) fn window(display: u32, authority: &Path, folder: &Path) -> Result<()> {
    let target = DisplayTarget {
        authority: Some(authority.to_path_buf()),
        timeout: SERVER_TIMEOUT,
        ..DisplayTarget::new(display)
    };
    let mut window = EchoWindow::open(&target)?;
    say_ready(folder)?;
    println!("ready");
    while let Some(received) = window.receive(KEY_TIMEOUT)? {
        obey(folder)?;
        window.answer(received)?;
    }
    Ok(())
}

/// Runs the application on the terminal at the standard input and output.
pub(crate) fn terminal(folder: &Path) -> Result<()> {
    // The terminal emulator starts it, so nobody else ends it where the emulator is killed.
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot tie myself to the terminal emulator")?;
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let mut mode = tcgetattr(&input).context("the standard input is not a terminal")?;
    mode.make_raw();
    tcsetattr(&input, OptionalActions::Now, &mode).context("cannot set the terminal's mode")?;
    say_ready(folder)?;
    let mut byte = [0];
    while rustix::io::read(&input, &mut byte).context("cannot read the terminal")? == 1 {
        obey(folder)?;
        let answer: &[u8] = if byte == *b"\r" { b"\r\n" } else { &byte };
        rustix::io::write(&output, answer).context("cannot write to the terminal")?;
    }
    Ok(())
}

fn say_ready(folder: &Path) -> Result<()> {
    let (new, path) = (folder.join("ready.new"), folder.join(READY));
    let written = std::fs::write(&new, std::process::id().to_string()).and_then(|()| std::fs::rename(&new, &path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn obey(folder: &Path) -> Result<()> {
    let Err(error) = operations::obey(folder) else { return Ok(()) };
    let path = folder.join(FAILURE);
    std::fs::write(&path, format!("{error:#}")).with_context(|| format!("cannot write {}", path.display()))
}

fn read(folder: &Path, name: &str) -> Result<Option<String>> {
    let path = folder.join(name);
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The process that obeys the orders in a folder; `None` before it takes keys.
pub(super) fn pid(folder: &Path) -> Result<Option<u32>> {
    let text = read(folder, READY)?;
    text.map(|text| text.parse().with_context(|| format!("\"{text}\" is not a process"))).transpose()
}

/// Why the application could not carry out an order.
pub(super) fn failure(folder: &Path) -> Result<Option<String>> {
    read(folder, FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_known_once_it_is_ready() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(pid(folder.path()).expect("a folder that can be read"), None);
        say_ready(folder.path()).expect("a folder that can be written");
        assert_eq!(pid(folder.path()).expect("a number"), Some(std::process::id()));
    }

    #[test]
    fn an_order_that_fails_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        operations::order(folder.path(), &["dance".to_string()]).expect("an order");
        obey(folder.path()).expect("the failure is noted");
        let told = failure(folder.path()).expect("a folder that can be read");
        assert_eq!(told.as_deref(), Some("there is no order \"dance\""));
    }
}
