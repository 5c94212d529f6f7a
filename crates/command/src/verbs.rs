// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs of `tipme` implemented by another program: stressing a machine does not belong in a
//! command that root installs on users' machines. `tipme` lists these verbs and starts that program
//! with the same arguments.

use clap::{Arg, Command};
use std::ffi::OsStr;

/// Program that implements them.
pub const LAB: &str = "tipme-lab";

/// Verbs with their descriptions, the most needed first.
pub(crate) const VERBS: [(&str, &str); 7] = [
    ("demo", "See it happen on a private display; needs root"),
    ("selftest", "Inject known faults and check each diagnosis; needs root"),
    ("measure", "Measure the latency of every event in a scripted application"),
    ("idle", "Show what takes CPU time; needs neither root nor tracing"),
    ("compare", "Compare results, with confidence intervals"),
    ("bench", "Benchmark timers, memory, forks, typing, scrolling and more"),
    ("load", "Run a background load of processes and memory"),
];

/// Names of the verbs.
pub const NAMES: [&str; VERBS.len()] = {
    let mut names = [""; VERBS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = VERBS[at].0;
        at += 1;
    }
    names
};

/// Adds the verbs to the command line of a program that does not implement them, for help, man page
/// and completions.
pub fn named(command: Command) -> Command {
    let words =
        Arg::new("words").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true).hide(true);
    command.subcommands(VERBS.map(|(name, about)| {
        Command::new(name).about(about).disable_help_flag(true).arg(words.clone())
    }))
}

/// Sets the descriptions of the verbs in the command line of the program that implements them.
pub fn described(command: Command) -> Command {
    VERBS.into_iter().fold(command, |command, (name, about)| {
        command.mut_subcommand(name, |verb| verb.about(about))
    })
}

/// Returns `true` if a command line, without the program's own name, requests one of the verbs or
/// its help.
pub fn are_asked_for<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> bool {
    let mut words = words.into_iter().map(|word| word.to_str().unwrap_or_default());
    let mut help = false;
    while let Some(word) = words.next() {
        match word {
            "--color" => drop(words.next()),
            "help" if !help => help = true,
            word if word.starts_with("--color=") => {}
            word => return NAMES.contains(&word),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(line: &str) -> bool {
        are_asked_for(line.split_whitespace().map(OsStr::new))
    }

    #[test]
    fn a_verb_is_recognised_after_help_and_color() {
        for line in [
            "bench",
            "bench timer --help",
            "help bench timer",
            "--color never help demo",
            "--color=auto idle",
        ] {
            assert!(asks(line), "{line}");
        }
        for line in [
            "",
            "help",
            "status",
            "help status bench",
            "--help bench",
            "mark bench",
            "help help demo",
        ] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn any_words_after_a_verb_parse() {
        for line in [
            "tipme bench",
            "tipme bench timer --help",
            "tipme measure editor --json x -- mousepad -h",
        ] {
            let parsed = named(Command::new("tipme")).try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("it is none"));
        }
    }
}
