// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts: a user's typing and clicking at an application, from a TOML file.
//!
//! A script is parsed and checked as a whole before anything starts, and expanded into single
//! inputs. Each input has a class, which determines its thresholds, and a label, which identifies
//! it in tables. The same script with the same seed gives the same inputs at the same intervals.

mod parse;
mod parts;
mod prose;
mod slides;

use parts::SCRIPT_BYTES_MAX;
pub use parts::{
    Content, EVENTS_MAX, FILE_BYTES_MAX, FILES_MAX, Input, MadeFile, Script, ScriptAct, ScriptStep,
};

use anyhow::{Context, Result, bail};
use std::path::Path;
use tipme_measure::{ClassLimits, InputClass, ThresholdProfile};

/// Placeholder of the application's home folder in its arguments.
pub(crate) const HOME: &str = "{home}";

/// Scripts that ship with the program.
const SHIPPED: [(&str, &str); 5] = [
    ("editor", include_str!("../scripts/editor.toml")),
    ("terminal", include_str!("../scripts/terminal.toml")),
    ("writer", include_str!("../scripts/writer.toml")),
    ("impress", include_str!("../scripts/impress.toml")),
    ("browser", include_str!("../scripts/browser.toml")),
];

impl Script {
    /// Parses a script. Errors name the script, the line, and the remedy.
    pub fn parse(name: &str, text: &str) -> Result<Script> {
        parse::parse(name, text)
    }

    /// Returns the shipped script of this name, else reads the file of this name.
    pub fn find(name: &str) -> Result<Script> {
        if let Some((name, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
            return Script::parse(name, text);
        }
        let path = Path::new(name);
        let known = SHIPPED.map(|(name, _)| name).join(", ");
        let about = path
            .metadata()
            .with_context(|| format!("cannot read script {name}; shipped are {known}"))?;
        let size = about.len();
        if !about.is_file() {
            bail!("script {name} is not a regular file; shipped are {known}");
        }
        if size > SCRIPT_BYTES_MAX as u64 {
            bail!(
                "script {name} has {size} bytes, at most {SCRIPT_BYTES_MAX} are read; make it shorter"
            );
        }
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read script {name}"))?;
        let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        Script::parse(&stem, &text)
    }

    /// Scripts that ship with the program.
    pub fn shipped() -> impl Iterator<Item = Script> {
        SHIPPED.iter().map(|(name, text)| {
            Script::parse(name, text).expect("a test reads all shipped scripts")
        })
    }

    /// Number of its inputs.
    pub fn inputs(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, ScriptStep::Input(_))).count()
    }

    /// Truncates the script after `inputs` inputs.
    pub fn first(mut self, inputs: usize) -> Script {
        let mut sent = 0;
        let until = self.steps.iter().position(|step| {
            sent += usize::from(matches!(step, ScriptStep::Input(_)));
            sent > inputs
        });
        self.steps.truncate(until.unwrap_or(self.steps.len()));
        self
    }

    /// Returns the limits of a class: those of the profile, unless the script overrides them.
    pub fn limits(&self, class: InputClass, profile: ThresholdProfile) -> ClassLimits {
        let limits = class.limits(profile);
        let own =
            self.thresholds.iter().find(|(of, _)| *of == class).map(|(_, threshold)| *threshold);
        ClassLimits { threshold: own.unwrap_or(limits.threshold), ..limits }
    }

    /// Makes the script's files below a folder.
    pub(crate) fn make_files(&self, home: &Path) -> Result<()> {
        self.files.iter().try_for_each(|file| file.make(home))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_scripts_are_well_formed_and_have_an_application() {
        for script in Script::shipped() {
            assert!(!script.application.is_empty() && !script.about.is_empty(), "{}", script.name);
            assert!(script.inputs() > 20, "{}: {} inputs", script.name, script.inputs());
        }
    }

    #[test]
    fn the_editor_task_is_that_of_the_paper() {
        let script = Script::find("editor").expect("it comes with the program");
        let typed = script.steps.iter().filter(|step| match step {
            ScriptStep::Input(Input { act: ScriptAct::Character(_), label, .. }) => {
                ["type", "newline"].contains(&&**label)
            }
            _ => false,
        });
        assert_eq!(typed.count(), 1_300);
        assert_eq!(script.files[0].content, Content::Prose { bytes: 56 << 10, seed: 1 });
    }

    #[test]
    fn a_script_can_be_cut_behind_an_input() {
        let script = Script::find("editor").expect("it comes with the program");
        let cut = script.clone().first(290);
        assert_eq!((cut.inputs(), cut.files.len()), (290, 1));
        assert!(cut.steps.len() < script.steps.len());
        assert_eq!(script.clone().first(10_000).inputs(), script.inputs());
        assert_eq!(script.first(0).inputs(), 0);
    }

    #[test]
    fn an_unknown_script_is_refused_with_the_known_names() {
        let error = Script::find("no-such-script").expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "cannot read script no-such-script; shipped are editor, terminal, writer, impress, browser"
        );
    }

    #[test]
    fn files_are_made_below_the_home() {
        let home = tempfile::tempdir().expect("a folder");
        let text = "about = \"x\"\n[[file]]\npath = \"a/b.txt\"\nprose_bytes = 500\n";
        Script::parse("x", text)
            .and_then(|script| script.make_files(home.path()))
            .expect("it is made");
        assert_eq!(std::fs::read(home.path().join("a/b.txt")).expect("it is there").len(), 500);
    }
}
