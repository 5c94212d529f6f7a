// SPDX-License-Identifier: MIT OR Apache-2.0
//! How worker programs are started: processes that work, or go wrong, beside what is measured. They are this very
//! executable under a hidden verb, so that nothing else need be installed.

use crate::process::ProcessGroup;
use crate::session::first_line;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How the first line of a worker program begins, which says that it is in place.
pub(crate) const READY: &str = "ready";

/// How worker programs are started: an executable and the words before their own.
#[derive(Clone, Debug)]
pub struct WorkerLauncher(pub Vec<OsString>);

impl WorkerLauncher {
    /// The words that start a worker program with its arguments.
    ///
    /// Where `alias` names a path, the executable is started by that link, which is made where it is not there
    /// yet: the process is then named after it.
    pub fn command(&self, alias: Option<&Path>, words: &[OsString]) -> Result<Command> {
        let (program, prefix) = self.0.split_first().context("no worker program is given")?;
        if let Some(alias) = alias.filter(|alias| !alias.exists()) {
            std::os::unix::fs::symlink(program, alias).with_context(|| format!("cannot link {}", alias.display()))?;
        }
        let mut command = Command::new(alias.map_or(program.as_os_str(), Path::as_os_str));
        command.args(prefix).args(words);
        Ok(command)
    }
}

/// A program that is in place. It ends with the value.
pub(crate) struct Ready {
    pub(crate) process: ProcessGroup,
    /// The rest of its first line.
    pub(crate) said: String,
}

impl Ready {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// A command behind other words, such as those that enter a name space.
pub(crate) fn behind(prefix: &[OsString], inner: &Command) -> Result<Command> {
    let (first, rest) = prefix.split_first().context("no words to put before a command")?;
    let mut command = Command::new(first);
    command.args(rest).arg(inner.get_program()).args(inner.get_args());
    Ok(command)
}

/// Starts a worker program, on one CPU only where `cpu` names one, and waits until it says that it is in place.
pub(crate) fn start(name: &str, mut command: Command, cpu: Option<usize>, timeout: Duration) -> Result<Ready> {
    command.stdin(Stdio::null());
    start_saying(READY, name, command, cpu, timeout)
}

/// As [`start`], for a program that has its standard input, or whose first line begins with another word.
pub(crate) fn start_saying(
    word: &str,
    name: &str,
    mut command: Command,
    cpu: Option<usize>,
    timeout: Duration,
) -> Result<Ready> {
    command.stdout(Stdio::piped());
    let mut process = ProcessGroup::start(name, command, cpu)?;
    let output = process.child().stdout.take().with_context(|| format!("{name} has no output"))?;
    let line = first_line(output, timeout).with_context(|| format!("{name} did not begin"))?;
    let said = line.strip_prefix(word);
    let said = said.with_context(|| format!("{name} did not begin; its message stands above"))?;
    Ok(Ready { said: said.trim().to_owned(), process })
}

/// Says that this program is in place, and something more; once, since the reader goes then.
pub(crate) fn say_ready(with: &str) -> Result<()> {
    println!("{READY} {with}");
    std::io::stdout().flush().context("nobody waits for this program")
}

/// What a worker program does with its words.
pub(crate) type WorkerProgram = fn(&[&str]) -> Result<()>;

/// Runs the program that the first word names, with the others; `None` where the table has none of that name.
pub(crate) fn run_named(programs: &[(&str, WorkerProgram)], words: &[OsString]) -> Option<Result<()>> {
    let (name, rest) = words.split_first()?;
    let (_, program) = programs.iter().find(|(known, _)| name == known)?;
    let rest = rest.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    Some(rest.context("a word is not UTF-8 text").and_then(|rest| program(&rest)))
}
