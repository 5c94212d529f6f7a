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

/// Seconds after which the kernel ends a program, whatever it waits for.
const LIFE_S: u32 = 60;
/// The longest time that may be asked for, in milliseconds.
const MILLIS_MAX: u64 = 10_000;

/// Makes sure that this process ends by itself.
pub(crate) fn limit_life() {
    // SAFETY: the call sets a timer of this process and touches no memory.
    unsafe { libc::alarm(LIFE_S) };
}

/// The word at a place.
pub(crate) fn word<'a>(words: &[&'a str], at: usize) -> Result<&'a str> {
    words.get(at).copied().with_context(|| format!("word {} is missing", at + 1))
}

/// The milliseconds at a place, at most ten seconds.
pub(crate) fn millis(words: &[&str], at: usize) -> Result<Duration> {
    let text = word(words, at)?;
    let number: u64 = text.parse().with_context(|| format!("invalid number \"{text}\""))?;
    Ok(Duration::from_millis(number.min(MILLIS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_with_their_limits() {
        assert_eq!(millis(&["a", "700"], 1).expect("a number"), Duration::from_millis(700));
        assert_eq!(millis(&["999999999"], 0).expect("a number"), Duration::from_secs(10));
        assert_eq!(millis(&["a"], 0).expect_err("no number").to_string(), "invalid number \"a\"");
        assert_eq!(word(&["a"], 1).expect_err("one word").to_string(), "word 2 is missing");
    }
}
