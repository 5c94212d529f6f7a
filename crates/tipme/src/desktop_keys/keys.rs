// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys and their commands.

use anyhow::{Result, ensure};
use std::path::Path;
use tipme_command::program;
use tipme_desktop::hotkeys::{Bindings, Chord, HotKeyAction};

/// A set of key bindings.
pub struct KeyBindings {
    /// Command line of the agent.
    pub agent: String,
    pub all: Vec<KeyBinding>,
}

/// A key and its command.
pub struct KeyBinding {
    pub action: HotKeyAction,
    pub chord: Chord,
    pub command: String,
}

impl KeyBindings {
    /// Binds each key to an agent command for its action.
    ///
    /// # Errors
    /// Fails if a word contains characters that some desktop's settings would interpret.
    pub fn new(bindings: &Bindings, agent: &[String]) -> Result<KeyBindings> {
        let agent = command(agent)?;
        let keys = bindings.0.iter().map(|(action, chord)| KeyBinding {
            action: *action,
            chord: chord.clone(),
            command: format!("{agent} --press {}", action.name()),
        });
        let all = keys.collect();
        Ok(KeyBindings { agent, all })
    }
}

/// Returns the agent's command line for this executable.
///
/// # Errors
/// Fails if this executable or the folder has no path.
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

/// Joins the words into a command that every desktop's settings split into the same words.
fn command(words: &[String]) -> Result<String> {
    for word in words {
        ensure!(
            word.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-+@=".contains(letter)),
            "{word:?} cannot be written into the settings of a desktop; use a plain path"
        );
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_characters_that_settings_interpret() {
        for (path, is_plain) in [
            ("/usr/bin/tipme", true),
            ("/a b/tipme", false),
            ("/a;b", false),
            ("/a,b", false),
            ("/$a", false),
            ("/a'b", false),
            ("/a\"b", false),
            ("/a%b", false),
        ] {
            let words = command(&[path.to_owned(), "agent".to_owned()]).ok();
            assert_eq!(words, is_plain.then(|| format!("{path} agent")));
        }
    }
}
