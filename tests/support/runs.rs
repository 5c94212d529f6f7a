// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the lab's verbs, and what their documents hold.

use crate::family::{Program, expect_gone, for_everybody, until_named};
use crate::{lab, schema};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tempfile::TempDir;

/// A user without privileges.
const NOBODY: u32 = 65_534;

/// Outcome of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub text: String,
    pub said: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Ran {
        let output = command.output().unwrap();
        let [text, said] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ran { code: output.status.code(), text, said }
    }

    /// Asserts that the exit code is one of these.
    #[track_caller]
    pub fn expect(self, codes: &[i32]) -> Ran {
        assert!(self.code.is_some_and(|code| codes.contains(&code)), "{self:#?}");
        self
    }

    /// Asserts that these words were printed.
    #[track_caller]
    pub fn expect_text(&self, words: &[&str]) {
        for word in words {
            assert!(self.text.contains(word), "{word} is not in:\n{}\n{}", self.text, self.said);
        }
    }

    /// Asserts that the program could not run, and said these words.
    #[track_caller]
    pub fn expect_refused(&self, why: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        assert!(why.iter().all(|word| self.said.contains(word)), "{why:?}: {}", self.said);
    }
}

/// Returns the program with these words, which are separated by blanks.
pub fn lab_with(words: &str) -> Command {
    let mut command = lab();
    command.args(words.split_whitespace());
    command
}

pub fn run(words: &str) -> Ran {
    Ran::of(&mut lab_with(words))
}

/// Returns a copy of the program with these words, run by a user without privileges.
pub fn as_nobody(words: &str) -> (TempDir, Command) {
    let (folder, program) = for_everybody(&["tipme-lab", "tipme"]);
    let mut command = Command::new(program);
    command.args(words.split_whitespace()).uid(NOBODY).gid(NOBODY).current_dir("/");
    (folder, command)
}

/// Runs the program with a file for its document, which fits the schema of its kind.
#[track_caller]
pub fn measured(kind: &str, command: &mut Command, codes: &[i32]) -> (Ran, Value) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("result.json");
    let ran = Ran::of(command.args([OsStr::new("--json"), path.as_os_str()])).expect(codes);
    let document = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    schema::assert_fits(kind, &document);
    (ran, document)
}

/// Starts the program, ends it by a signal once it has printed a line with these words and has this
/// many processes, and asserts that none outlives it.
#[track_caller]
pub fn expect_ended(words: &str, line: &str, least: usize, end: (Signal, Option<i32>)) {
    let mut program = Program::start(lab_with(words));
    program.wait_for(line);
    tipme_bench::until("all processes", || program.descendants().len() >= least);
    let members = program.descendants();
    program.signal(end.0);
    assert_eq!(program.wait().code(), end.1, "{:?}", program.said());
    expect_gone(&members);
}

/// Kills one of this many processes of a name.
pub fn kill_one(program: &Program, name: &str, count: usize) {
    let victim = until_named(program, name, count);
    kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).unwrap();
}

/// Returns the numbers of a JSON list.
pub fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect()
}

/// Returns the texts in a field of each object of a JSON list.
pub fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}
