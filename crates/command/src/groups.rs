// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs grouped by purpose, as `--help` shows them.

use clap::Command;
use tipme_report::Layout;

/// Name of a group with its verbs, the most needed first.
pub type Group<'a> = (&'a str, &'a [&'a str]);

/// Width of the column of verb names.
const NAMES: usize = 17;

/// Sets the help of a command line to show its verbs in groups.
pub fn grouped(command: Command, groups: &[Group<'_>], layout: &Layout) -> Command {
    let (header, groups) = (*command.get_styles().get_header(), listed(&command, groups, layout));
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n\
         {{options}}{{after-help}}"
    ))
}

fn listed(command: &Command, groups: &[Group<'_>], layout: &Layout) -> String {
    let header = command.get_styles().get_header();
    let mut text = String::new();
    for (name, verbs) in groups {
        text += &format!("{header}{name}:{header:#}\n");
        text.extend(
            verbs.iter().filter_map(|verb| line(command, command.find_subcommand(verb)?, layout)),
        );
        text.push('\n');
    }
    text
}

/// Formats ` mark what it does`.
fn line(root: &Command, verb: &Command, layout: &Layout) -> Option<String> {
    let (literal, name) = (root.get_styles().get_literal(), verb.get_name());
    let space = " ".repeat(NAMES.saturating_sub(name.len() + 2));
    let head = format!("  {literal}{name}{literal:#}{space}");
    Some(layout.item(&head, &verb.get_about()?.to_string()))
}
