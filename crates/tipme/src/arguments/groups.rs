// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs by what they are for, as `tipme --help` shows them.

use super::Arguments;
use clap::{Command, CommandFactory};
use tipme_report::Layout;

/// What groups are called, and which verbs are in them, in the order in which people need them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Every day", &["setup", "status", "mark", "incidents", "diagnose", "report", "doctor", "demo"]),
    ("For engineers", &["record", "agent", "scrub", "measure", "idle", "compare", "selftest", "schema"]),
    ("Managing", &["manage", "manage-helper", "why"]),
    ("Benchmarks", &["bench", "load"]),
];

/// Columns of names of verbs.
const NAMES: usize = 17;

/// The command line, with its verbs in groups.
pub fn command(layout: &Layout) -> Command {
    let command = Arguments::command();
    let (header, groups) = (*command.get_styles().get_header(), groups(&command, layout));
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

fn groups(command: &Command, layout: &Layout) -> String {
    let header = command.get_styles().get_header();
    let group = |(name, verbs): &(&str, &[&str])| {
        let lines = verbs.iter().filter_map(|verb| line(command, command.find_subcommand(verb)?, layout));
        format!("{header}{name}:{header:#}\n{}\n", lines.collect::<String>())
    };
    GROUPS.iter().map(group).collect()
}

/// `  mark             what it does`
fn line(root: &Command, verb: &Command, layout: &Layout) -> Option<String> {
    let (literal, name) = (root.get_styles().get_literal(), verb.get_name());
    let space = " ".repeat(NAMES.saturating_sub(name.len() + 2));
    Some(layout.item(&format!("  {literal}{name}{literal:#}{space}"), &verb.get_about()?.to_string()))
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
        let mut named: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        let command = Arguments::command();
        let mut verbs: Vec<&str> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        named.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(named, verbs);
    }

    #[test]
    fn the_first_line_says_what_it_is_for_and_groups_follow() {
        let help = help(80);
        assert!(
            help.starts_with("Find out why the desktop just hung: press one key, and read the cause\n\n"),
            "{help}"
        );
        let places: Vec<Option<usize>> = GROUPS.iter().map(|(name, _)| help.find(&format!("\n{name}:\n"))).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{help}");
        assert!(help.contains("\n  status         "), "{help}");
    }

    #[test]
    fn it_fits_the_terminal() {
        for columns in [60, 80, 200] {
            let help = help(columns);
            assert!(help.lines().all(|line| line.chars().count() <= columns), "{help}");
        }
    }

    /// The words of an example up to what the shell takes from it, or what explains it. What the shell puts in for a
    /// command, `$(pidof firefox)`, is one word, and here a process.
    fn words(example: &str) -> Vec<String> {
        let command = example.trim_start_matches("sudo ").split("  ").next().unwrap_or_default();
        let (mut words, mut quoted, mut inner) = (vec![String::new()], false, false);
        for letter in command.chars() {
            inner = letter == '(' || inner && letter != ')';
            match letter {
                '"' => quoted = !quoted,
                ' ' if !quoted && !inner => words.push(String::new()),
                letter => words.last_mut().expect("there is one").push(letter),
            }
        }
        let given = words.into_iter().take_while(|word| ![">", "|", "&", "&&"].contains(&word.as_str()));
        given.map(|word| if word.starts_with("$(") { "7".to_owned() } else { word }).collect()
    }

    #[test]
    fn an_example_is_read_as_the_shell_reads_it() {
        let read = |example| words(example).join("|");
        assert_eq!(read(r#"sudo tipme mark -m "it hung" > file"#), "tipme|mark|-m|it hung");
        assert_eq!(read("tipme why $(pidof -s firefox) --json  says why"), "tipme|why|7|--json");
    }

    /// Lines of a command's help that are examples of it.
    fn examples(verb: &Command) -> Vec<String> {
        let texts = [verb.get_after_help(), verb.get_after_long_help()].into_iter().flatten();
        let texts = texts.map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let lines = texts.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned);
        lines.filter(|line| line.trim_start_matches("sudo ").starts_with("tipme ")).collect()
    }

    #[test]
    fn every_verb_has_examples_and_each_can_be_given() {
        let root = command(&Layout::default());
        let visible = |verb: &&Command| !verb.is_hide_set();
        let verbs: Vec<&Command> = root.get_subcommands().filter(visible).collect();
        let bench = root.find_subcommand("bench").into_iter().flat_map(Command::get_subcommands).collect::<Vec<_>>();
        for verb in verbs.into_iter().chain(bench).chain([&root]) {
            let examples = examples(verb);
            assert!(!examples.is_empty(), "{} has no example", verb.get_name());
            for example in examples {
                let parsed = command(&Layout::default()).try_get_matches_from(words(&example));
                assert!(parsed.is_ok(), "{example}: {}", parsed.expect_err("it is none"));
            }
        }
    }
}
