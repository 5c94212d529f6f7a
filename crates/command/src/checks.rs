// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a program's help, for the tests of each program.

use clap::Command;

/// Columns of help if the width of the terminal is not known.
const COLUMNS: usize = 100;
/// Maximum length of lines with explicit line breaks, so that none is wrapped again.
const PROSE: usize = 98;

/// Returns the words of an example up to its shell operators or its explanation. A command
/// substitution such as `$(pidof firefox)` is one word and stands for a process id.
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
    let given =
        words.into_iter().take_while(|word| ![">", "|", "&", "&&"].contains(&word.as_str()));
    given.map(|word| if word.starts_with("$(") { "7".to_owned() } else { word }).collect()
}

/// Returns the lines of a command's help that are examples.
fn examples_of(verb: &Command) -> Vec<String> {
    let texts = [verb.get_after_help(), verb.get_after_long_help()].into_iter().flatten();
    let texts = texts.map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let lines = texts.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned);
    lines.filter(|line| line.trim_start_matches("sudo ").starts_with("tipme ")).collect()
}

/// Checks that the own verbs of a program and their subcommands have examples that parse; returns
/// their number.
///
/// # Panics
/// If a verb has no example, or one that does not parse.
pub fn examples(program: &Command, has: impl Fn(&str) -> bool) -> usize {
    let verbs =
        program.get_subcommands().filter(|verb| !verb.is_hide_set() && has(verb.get_name()));
    let bench = program.find_subcommand("bench").into_iter().flat_map(Command::get_subcommands);
    let mut count = 0;
    for verb in verbs.chain(bench).chain([program]) {
        let examples = examples_of(verb);
        assert!(!examples.is_empty(), "{} has no example", verb.get_name());
        for example in examples {
            let parsed = program.clone().try_get_matches_from(words(&example));
            assert!(parsed.is_ok(), "{example}: {}", parsed.expect_err("it is none"));
        }
        count += 1;
    }
    count
}

/// Returns a command and all its subcommands.
fn all(command: Command) -> Vec<Command> {
    let below: Vec<Command> = command.get_subcommands().cloned().flat_map(all).collect();
    std::iter::once(command).chain(below).collect()
}

/// Checks that no line of the help of a program and its verbs is wrapped twice; returns the number
/// of commands.
///
/// # Panics
/// If one is.
pub fn lines(mut program: Command) -> usize {
    program.build();
    let commands = all(program);
    for mut command in commands.iter().cloned().map(|command| command.term_width(COLUMNS)) {
        let texts =
            [command.get_before_help(), command.get_after_help(), command.get_after_long_help()];
        let texts: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
        let help = command.render_long_help().to_string();
        let name = command.get_name();
        for line in texts.iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= PROSE, "{name}: too long: {line}");
            assert!(
                help.lines().any(|shown| shown.trim_end() == line.trim_end()),
                "{name}: broken: {line}"
            );
        }
        let wide = help.lines().find(|line| line.chars().count() > COLUMNS);
        assert_eq!(wide, None, "{name}");
    }
    commands.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_split_like_in_a_shell() {
        assert_eq!(
            words(r#"sudo tipme mark -m "it hung" > file"#),
            ["tipme", "mark", "-m", "it hung"]
        );
        assert_eq!(
            words("tipme why $(pidof -s firefox) --json  says why"),
            ["tipme", "why", "7", "--json"]
        );
    }
}
