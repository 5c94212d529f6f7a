// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys, and the commands that they are bound to.

use anyhow::{Result, ensure};
use std::path::Path;
use tipme_command::program;
use tipme_desktop::hotkeys::{Bindings, Chord, HotKeyAction};

/// What is bound.
pub struct KeyBindings {
    /// The command that is the agent.
    pub agent: String,
    pub all: Vec<KeyBinding>,
}

/// A key, and the command that it is bound to.
pub struct KeyBinding {
    pub action: HotKeyAction,
    pub chord: Chord,
    pub command: String,
}

impl KeyBindings {
    /// Keys that have the agent of these words do what they are for.
    ///
    /// # Errors
    /// Where a word has letters that some desktop's settings read as something else.
    pub fn new(bindings: &Bindings, agent: &[String]) -> Result<KeyBindings> {
        let agent = command(agent)?;
        let key = |(action, chord): &(HotKeyAction, Chord)| {
            let command = format!("{agent} --press {}", action.name());
            KeyBinding { action: *action, chord: chord.clone(), command }
        };
        let all = bindings.0.iter().map(key).collect();
        Ok(KeyBindings { agent, all })
    }
}

/// The command of the agent, of this program.
///
/// # Errors
/// Where this program, or the folder, has no path.
pub fn agent_words(state_dir: Option<&Path>, mark_key: Option<&Chord>) -> Result<Vec<String>> {
    let mut words = vec![program::own()?.display().to_string(), "agent".to_owned()];
    if let Some(dir) = state_dir {
        words.extend(["--state-dir".to_owned(), std::path::absolute(dir)?.display().to_string()]);
    }
    if let Some(key) = mark_key {
        words.extend(["--mark-key".to_owned(), key.to_string()]);
    }
    Ok(words)
}

/// The words as one command, which every desktop's settings take for just these words.
fn command(words: &[String]) -> Result<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@=".contains(letter);
    for word in words {
        ensure!(word.chars().all(is_plain), "{word:?} cannot stand in the settings of a desktop; use a plain path");
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_nothing_in_it_that_settings_would_read() {
        let words = |path: &str| command(&[path.to_owned(), "agent".to_owned()]).ok();
        assert_eq!(words("/usr/bin/tipme").as_deref(), Some("/usr/bin/tipme agent"));
        assert_eq!(["/a b/tipme", "/a;b", "/a,b", "/$a", "/a'b", "/a\"b", "/a%b"].map(words), [const { None }; 7]);
    }
}
