// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts: what somebody types and clicks at an application, as a TOML file tells it.
//!
//! A script is read and checked as a whole before anything is started, and expanded into single
//! inputs. Each input belongs to a class, which decides how long its answer may take, and has a
//! label, by which it is found in tables. The same script with the same seed gives the same inputs at
//! the same intervals.

mod parse;
mod prose;

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tipme_desktop::hotkeys::Chord;
use tipme_desktop::inject::Pace;
use tipme_measure::{Class, Limits, Profile};

/// Inputs of a script, at most.
pub const EVENTS_MAX: usize = 100_000;
/// Typed text of a script in bytes, at most.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// The script itself in bytes, at most.
pub const SCRIPT_BYTES_MAX: usize = 4 << 20;
/// A file that a script has made, in bytes, at most.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files that a script has made, at most.
pub const FILES_MAX: usize = 100;

/// Stands for the application's home folder in its arguments.
pub const HOME: &str = "{home}";

/// A script, checked and expanded.
#[derive(Clone, Debug)]
pub struct Script {
    pub name: String,
    /// What it models, in a sentence.
    pub about: String,
    /// The application and its arguments where none is named on the command line; may be empty.
    pub application: Vec<String>,
    /// How long the application may take to show a window that has the focus.
    pub start_within: Duration,
    /// Thresholds in nanoseconds that differ from those of the profile.
    pub thresholds: Vec<(Class, u64)>,
    pub files: Vec<MadeFile>,
    pub steps: Vec<Step>,
}

/// A file in the application's home, made before it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeFile {
    /// Relative to the home, and below it.
    pub path: String,
    pub content: Content,
}

/// What is in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// As it stands in the script.
    Plain(String),
    /// Lines of made-up text, so many bytes.
    Prose { bytes: u64, seed: u64 },
    /// A web page with so many sections of made-up text and tables.
    Page { sections: u64, seed: u64 },
}

/// One thing that is done.
#[derive(Clone, Debug)]
pub enum Step {
    /// The rhythm of the inputs that follow.
    Pace(Pace),
    Input(Input),
    Pause(Duration),
    /// Wait until nothing is drawn for `quiet`, and at most for `at_most`.
    Idle {
        quiet: Duration,
        at_most: Duration,
    },
}

/// One input, whose answer is timed.
#[derive(Clone, Debug)]
pub struct Input {
    pub act: Act,
    pub label: Arc<str>,
    pub class: Class,
}

/// What the person does.
#[derive(Clone, Debug)]
pub enum Act {
    Character(char),
    Key(Chord),
    /// At a place on the screen, in pixels.
    Click {
        x: i16,
        y: i16,
        button: u8,
    },
    /// By one notch of the wheel.
    Scroll {
        down: bool,
    },
}

/// Scripts that come with the program.
const SHIPPED: [(&str, &str); 4] = [
    ("editor", include_str!("../scripts/editor.toml")),
    ("terminal", include_str!("../scripts/terminal.toml")),
    ("writer", include_str!("../scripts/writer.toml")),
    ("browser", include_str!("../scripts/browser.toml")),
];

/// All classes and their names in scripts and results.
const CLASSES: [(&str, Class); 8] = [
    ("motion", Class::Motion),
    ("scroll", Class::Scroll),
    ("key", Class::Key),
    ("click", Class::Click),
    ("menu", Class::Menu),
    ("window", Class::Window),
    ("start", Class::Start),
    ("command", Class::Command),
];

impl Script {
    /// Reads a script's text. Errors name the script, the line, and what to do.
    pub fn parse(name: &str, text: &str) -> Result<Script> {
        parse::parse(name, text)
    }

    /// The script of this name that comes with the program, else the file of this name.
    pub fn find(name: &str) -> Result<Script> {
        if let Some((name, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
            return Script::parse(name, text);
        }
        let path = Path::new(name);
        let known = SHIPPED.map(|(name, _)| name).join(", ");
        let size = path.metadata().with_context(|| format!("cannot read script {name}; shipped are {known}"))?.len();
        if size > SCRIPT_BYTES_MAX as u64 {
            bail!("script {name} has {size} bytes, at most {SCRIPT_BYTES_MAX} are read; make it shorter");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read script {name}"))?;
        let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        Script::parse(&stem, &text)
    }

    /// Those that come with the program.
    pub fn shipped() -> impl Iterator<Item = Script> {
        SHIPPED.iter().map(|(name, text)| Script::parse(name, text).expect("a test reads all shipped scripts"))
    }

    /// How many inputs it has.
    pub fn inputs(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Input(_))).count()
    }

    /// The limits of a class: those of the profile, unless the script says otherwise.
    pub fn limits(&self, class: Class, profile: Profile) -> Limits {
        let limits = class.limits(profile);
        let own = self.thresholds.iter().find(|(of, _)| *of == class).map(|(_, threshold)| *threshold);
        Limits { threshold: own.unwrap_or(limits.threshold), ..limits }
    }

    /// Makes the script's files below a folder.
    pub fn make_files(&self, home: &Path) -> Result<()> {
        self.files.iter().try_for_each(|file| file.make(home))
    }
}

impl MadeFile {
    fn make(&self, home: &Path) -> Result<()> {
        let path = home.join(&self.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let text = match &self.content {
            Content::Plain(text) => text.clone(),
            Content::Prose { bytes, seed } => prose::text(*bytes as usize, *seed),
            Content::Page { sections, seed } => prose::page(*sections, *seed),
        };
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The name of a class in scripts and results.
pub fn class_name(class: Class) -> &'static str {
    CLASSES.iter().find(|(_, known)| *known == class).map_or("key", |(name, _)| name)
}

/// The class of a name.
fn class_named(name: &str) -> Option<Class> {
    CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class)
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
        let is_text = |label: &str| label == "type" || label == "newline";
        let typed =
            |step: &&Step| matches!(step, Step::Input(Input { act: Act::Character(_), label, .. }) if is_text(label));
        assert_eq!(script.steps.iter().filter(typed).count(), 1_300);
        assert_eq!(script.files[0].content, Content::Prose { bytes: 56 << 10, seed: 1 });
    }

    #[test]
    fn every_class_has_a_name() {
        for (name, class) in CLASSES {
            assert_eq!((class_name(class), class_named(name)), (name, Some(class)));
        }
        assert_eq!(class_named("Key"), None);
    }

    #[test]
    fn a_script_that_is_not_there_is_told_with_those_that_are() {
        let error = Script::find("no-such-script").expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "cannot read script no-such-script; shipped are editor, terminal, writer, browser"
        );
    }

    #[test]
    fn files_are_made_below_the_home() {
        let home = tempfile::tempdir().expect("a folder");
        let text = "about = \"x\"\n[[file]]\npath = \"a/b.txt\"\nprose_bytes = 500\n";
        Script::parse("x", text).and_then(|script| script.make_files(home.path())).expect("it is made");
        assert_eq!(std::fs::read(home.path().join("a/b.txt")).expect("it is there").len(), 500);
    }
}
