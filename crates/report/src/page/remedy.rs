// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands in the text of a remedy, separated from the prose for copying.

use maud::{Markup, html};

/// Commands that remedies contain, word by word: `#` is a number, and a final one may be repeated.
/// No other words are treated as a command, whatever the name of a program is.
const COMMANDS: [&str; 7] = [
    "renice -n # -p #",
    "ionice -c # -p #",
    "kill -CONT #",
    "strace -f -T -p #",
    "tipme diagnose --pid #",
    "tipme manage",
    "cat /proc/#/stack",
];

/// Part of a remedy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RemedyPart<'a> {
    Prose(&'a str),
    Command(&'a str),
}

/// Splits a remedy into parts that add up to the whole text.
pub(super) fn parts(remedy: &str) -> Vec<RemedyPart<'_>> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = remedy.get(at..) {
        if let Some(command) = command(rest) {
            parts.push(RemedyPart::Prose(&remedy[from..at]));
            parts.push(RemedyPart::Command(command));
            at += command.len();
            from = at;
        }
        // The next word begins after a space or an opening bracket.
        match remedy[at..].find([' ', '(']) {
            Some(gap) => at += gap + 1,
            None => break,
        }
    }
    parts.push(RemedyPart::Prose(&remedy[from..]));
    parts.retain(|part| *part != RemedyPart::Prose(""));
    parts
}

/// Returns the command at the start of a text, without the punctuation after it.
fn command(text: &str) -> Option<&str> {
    COMMANDS.iter().find_map(|pattern| {
        let (mut at, mut wanted) = (0, pattern.split(' ').peekable());
        while let Some(word) = wanted.next() {
            let length = word_length(&text[at..], word)?;
            at += length;
            let ends = text[at..].chars().next().is_none_or(|next| " ,;:)".contains(next));
            if !ends {
                return None;
            }
            if wanted.peek().is_some() {
                at += text[at..].starts_with(' ').then_some(1)?;
            }
        }
        // Several processes, as in `renice -n 19 -p 7 8`.
        while pattern.ends_with(" #")
            && let Some(length) = text[at..].strip_prefix(' ').and_then(number)
        {
            at += 1 + length;
        }
        Some(&text[..at])
    })
}

/// Returns the length of a pattern word at the start of a text.
fn word_length(text: &str, word: &str) -> Option<usize> {
    let Some((before, after)) = word.split_once('#') else {
        return text.starts_with(word).then_some(word.len());
    };
    let digits = number(text.strip_prefix(before)?)?;
    let length = before.len() + digits;
    text[length..].starts_with(after).then_some(length + after.len())
}

fn number(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(digits)
}

/// Renders the sentence with its commands as code.
pub(super) fn sentence(remedy: &str) -> Markup {
    html! {
        @for part in parts(remedy) {
            @match part {
                RemedyPart::Prose(text) => (text),
                RemedyPart::Command(text) => code { (text) },
            }
        }
    }
}

/// Renders a command on a line of its own; the page's script reveals the copy button, which needs
/// it.
pub(super) fn to_copy(command: &str) -> Markup {
    html! {
        div.command {
            pre { code { (command) } }
            button.copy type="button" hidden { "Copy" }
        }
    }
}

/// Returns the first command of a remedy that acts on this wait.
pub(super) fn first(remedy: &str) -> Option<&str> {
    parts(remedy).into_iter().find_map(|part| match part {
        RemedyPart::Command(text) if text != "tipme manage" => Some(text),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(remedy: &str) -> Vec<&str> {
        let parts = parts(remedy);
        let texts = parts.iter().map(|part| match part {
            RemedyPart::Prose(text) | RemedyPart::Command(text) => *text,
        });
        assert_eq!(texts.collect::<String>(), remedy, "nothing is lost");
        parts
            .into_iter()
            .filter_map(|part| if let RemedyPart::Command(text) = part { Some(text) } else { None })
            .collect()
    }

    #[test]
    fn commands_are_separated_from_the_prose() {
        let renice = "renice -n 19 -p 12987 (what it starts from then on inherits it); or tipme \
                      manage, which puts";
        assert_eq!(commands(renice), ["renice -n 19 -p 12987", "tipme manage"]);
        assert_eq!(first(renice), Some("renice -n 19 -p 12987"));
        assert_eq!(
            commands("kill -CONT 26042, if it is still stopped; see why"),
            ["kill -CONT 26042"]
        );
        assert_eq!(commands("ionice -c 3 -p 7 8 (its I/O waits)"), ["ionice -c 3 -p 7 8"]);
        assert_eq!(
            commands("look at why a (pid 7) is slow: tipme diagnose --pid 7"),
            ["tipme diagnose --pid 7"]
        );
        assert_eq!(
            commands("look: cat /proc/7/stack (as root) the next time"),
            ["cat /proc/7/stack"]
        );
    }

    #[test]
    fn prose_is_no_command() {
        for prose in [
            "",
            "start make with nice -n 19 next time (this one has ended)",
            "kill -CONT the process that was stopped; see why",
            "tell the authors of editor what it computes",
            "renice -n 19 -p",
            "renice -n 19 -p 7x",
            "überrenice -n 1 -p 2é (ü",
        ] {
            assert_eq!(commands(prose), [""; 0], "{prose}");
        }
        assert_eq!(commands("kill -CONT 1;rm"), ["kill -CONT 1"], "what follows is not part of it");
    }
}
