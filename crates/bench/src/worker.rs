// SPDX-License-Identifier: MIT OR Apache-2.0
//! Start of worker programs: processes that work, or misbehave, beside a measurement. They are this
//! executable under a hidden verb, so that nothing else must be installed.

use crate::process::ProcessGroup;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc;
use std::time::Duration;

/// First word of a worker program that is in place.
pub(crate) const READY: &str = "ready";

/// Command that starts worker programs: an executable and the words before their own.
#[derive(Clone, Debug)]
pub struct WorkerLauncher(pub Vec<OsString>);

impl WorkerLauncher {
    /// Returns the command that starts a worker program with its arguments.
    ///
    /// If `alias` names a path, the executable is started through a link at that path, which is
    /// made if missing: the process is then named after it.
    pub fn command(&self, alias: Option<&Path>, words: &[OsString]) -> Result<Command> {
        let (program, prefix) = self.0.split_first().context("no worker program is given")?;
        if let Some(alias) = alias.filter(|alias| !alias.exists()) {
            std::os::unix::fs::symlink(program, alias)
                .with_context(|| format!("cannot link {}", alias.display()))?;
        }
        let mut command = Command::new(alias.map_or(program.as_os_str(), Path::as_os_str));
        command.args(prefix).args(words);
        Ok(command)
    }
}

/// A program that is in place. It ends with the value.
pub(crate) struct Ready {
    pub(crate) process: ProcessGroup,
    /// Rest of its first line.
    pub(crate) said: String,
}

impl Ready {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Returns a command from its words, the program first; `None` without any.
pub(crate) fn command(words: &[OsString]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

/// Puts words before a command, such as those that enter a name space.
pub(crate) fn behind(prefix: &[OsString], inner: Command) -> Command {
    match command(prefix) {
        Some(mut command) => {
            command.arg(inner.get_program()).args(inner.get_args());
            command
        }
        None => inner,
    }
}

/// Starts a worker program, pinned to `cpu` if given, and waits until it is in place.
pub(crate) fn start(
    name: &str,
    mut command: Command,
    cpu: Option<usize>,
    timeout: Duration,
) -> Result<Ready> {
    command.stdin(Stdio::null());
    start_saying(READY, name, command, cpu, timeout)
}

/// Like [`start`], for a program with a standard input or with another first word.
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
    let line = first_line(output, timeout).with_context(|| format!("{name} did not start"))?;
    let said = line.strip_prefix(word);
    let said = said.with_context(|| format!("{name} did not start; see its message above"))?;
    Ok(Ready { said: said.trim().to_owned(), process })
}

/// Returns the first line that a program writes, read on a thread so that the wait can time out.
pub(crate) fn first_line(output: impl Read + Send + 'static, timeout: Duration) -> Result<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        sender.send(read.map(|_| line))
    });
    receiver
        .recv_timeout(timeout)
        .context("no output in time")?
        .context("its output cannot be read")
}

/// Reports once that this program is in place, with more words; the reader closes the pipe then.
pub(crate) fn say_ready(with: &str) -> Result<()> {
    println!("{}", format!("{READY} {with}").trim_end());
    std::io::stdout().flush().context("cannot report that this program is ready")
}

/// Function of a worker program, called with its words.
pub(crate) type WorkerProgram = fn(&[&str]) -> Result<()>;

/// Runs the program that the first word names, with the others; `None` if the table has no such
/// program.
pub(crate) fn run_named(
    programs: &[(&str, WorkerProgram)],
    words: &[OsString],
) -> Option<Result<()>> {
    let (name, rest) = words.split_first()?;
    let (_, program) = programs.iter().find(|(known, _)| name == known)?;
    let rest = rest.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    Some(rest.context("a word is not UTF-8 text").and_then(|rest| program(&rest)))
}

/// Seconds after which the kernel kills a program, whatever it waits for.
const LIFE_S: u32 = 60;
/// Maximum duration argument, in milliseconds.
const MILLIS_MAX: u64 = 10_000;

/// Bounds the lifetime of this process.
pub(crate) fn limit_life() {
    // SAFETY: the call sets a timer of this process and touches no memory.
    unsafe { libc::alarm(LIFE_S) };
}

/// Returns the word at an index.
pub(crate) fn word<'a>(words: &[&'a str], at: usize) -> Result<&'a str> {
    words.get(at).copied().with_context(|| format!("word {} is missing", at + 1))
}

/// Returns the number at an index.
pub(crate) fn number<T: FromStr>(words: &[&str], at: usize) -> Result<T> {
    let text = word(words, at)?;
    text.parse().ok().with_context(|| format!("invalid number \"{text}\""))
}

/// Returns the milliseconds at an index, at most ten seconds.
pub(crate) fn millis(words: &[&str], at: usize) -> Result<Duration> {
    Ok(Duration::from_millis(number::<u64>(words, at)?.min(MILLIS_MAX)))
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
