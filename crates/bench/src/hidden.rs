// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the hidden programs are started: the command offers them under a hidden name.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::Path;

/// How the hidden programs are started: an executable and the words before their own.
#[derive(Clone, Debug)]
pub struct Helper(pub Vec<OsString>);

impl Helper {
    /// The words that start a hidden program with its arguments.
    ///
    /// Where `alias` names a path, the executable is started by that link, which is made where it is not there
    /// yet: the process is then named after it.
    pub fn command(&self, alias: Option<&Path>, words: &[OsString]) -> Result<std::process::Command> {
        let (program, prefix) = self.0.split_first().context("no helper program is given")?;
        if let Some(alias) = alias.filter(|alias| !alias.exists()) {
            std::os::unix::fs::symlink(program, alias).with_context(|| format!("cannot link {}", alias.display()))?;
        }
        let mut command = std::process::Command::new(alias.map_or(program.as_os_str(), Path::as_os_str));
        command.args(prefix).args(words);
        Ok(command)
    }
}

/// What a hidden program does with its words.
pub(crate) type Program = fn(&[&str]) -> Result<()>;

/// Runs the program that the first word names, with the others; `None` where the table has none of that name.
pub(crate) fn run_named(programs: &[(&str, Program)], words: &[OsString]) -> Option<Result<()>> {
    let (name, rest) = words.split_first()?;
    let (_, program) = programs.iter().find(|(known, _)| name == known)?;
    let rest = rest.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    Some(rest.context("a word is not UTF-8 text").and_then(|rest| program(&rest)))
}
