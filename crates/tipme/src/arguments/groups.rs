// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs grouped by purpose, as `tipme --help` shows them.

use super::Arguments;
use clap::{Command, CommandFactory};
use tipme_command::{Group, grouped, verbs};
use tipme_report::Layout;

const GROUPS: [Group<'_>; 4] = [
    (
        "Every day",
        &[
            "setup",
            "status",
            "mark",
            "pause",
            "resume",
            "incidents",
            "diagnose",
            "report",
            "day",
            "doctor",
        ],
    ),
    ("For engineers", &["record", "agent", "scrub", "schema"]),
    ("Managing", &["manage", "manage-helper", "why"]),
    ("Lab", &verbs::NAMES),
];

/// Returns the command for man pages and completions, including the lab's verbs.
pub fn whole() -> Command {
    verbs::named(Arguments::command())
}

/// Returns the same command with grouped verbs.
pub fn command(layout: &Layout) -> Command {
    grouped(whole(), &GROUPS, layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(columns: usize) -> String {
        let layout = Layout { columns: Some(columns), ..Layout::default() };
        command(&layout).term_width(columns).render_help().to_string()
    }

    #[test]
    fn every_verb_is_in_one_group() {
        let mut named: Vec<&str> =
            GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        let command = whole();
        let mut verbs: Vec<&str> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .collect();
        named.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(named, verbs);
    }

    #[test]
    fn the_first_line_says_what_it_is_for_and_groups_follow() {
        let help = help(80);
        assert!(
            help.starts_with(
                "Find out why the desktop just hung: press one key, and read the cause\n\n"
            ),
            "{help}"
        );
        let places: Vec<Option<usize>> =
            GROUPS.iter().map(|(name, _)| help.find(&format!("\n{name}:\n"))).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{help}");
        assert!(help.contains("\n  status         "), "{help}");
    }

    #[test]
    fn help_fits_the_terminal() {
        for columns in [60, 80, 200] {
            let help = help(columns);
            assert!(help.lines().all(|line| line.chars().count() <= columns), "{help}");
        }
    }

    #[test]
    fn every_verb_has_examples_and_each_can_be_given() {
        let checked = tipme_command::checks::examples(&command(&Layout::default()), |verb| {
            !verbs::NAMES.contains(&verb)
        });
        assert!(checked > 10, "{checked} verbs");
    }
}
