// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a script consists of.

use super::{prose, slides};
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tipme_desktop::hotkeys::Chord;
use tipme_desktop::inject::Pace;
use tipme_measure::InputClass;

/// Inputs of a script, at most.
pub const EVENTS_MAX: usize = 100_000;
/// Typed text of a script in bytes, at most.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// The script itself in bytes, at most.
pub(super) const SCRIPT_BYTES_MAX: usize = 4 << 20;
/// A file that a script has made, in bytes, at most.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files that a script has made, at most.
pub const FILES_MAX: usize = 100;

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
    pub thresholds: Vec<(InputClass, u64)>,
    pub files: Vec<MadeFile>,
    pub steps: Vec<ScriptStep>,
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
    /// A presentation with so many slides, some of which have a chart.
    Slides { slides: u64, seed: u64 },
}

/// One thing that is done.
#[derive(Clone, Debug)]
pub enum ScriptStep {
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
    pub act: ScriptAct,
    pub label: Arc<str>,
    pub class: InputClass,
}

/// What the person does.
#[derive(Clone, Debug)]
pub enum ScriptAct {
    Character(char),
    Key(Chord),
    /// At a place on the screen, in pixels.
    Click {
        x: i16,
        y: i16,
        button: u8,
    },
    /// The pointer, to a place on the screen, in pixels.
    Move {
        x: i16,
        y: i16,
    },
    /// By one notch of the wheel.
    Scroll {
        down: bool,
    },
}

impl MadeFile {
    pub(super) fn make(&self, home: &Path) -> Result<()> {
        let path = home.join(&self.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let text = match &self.content {
            Content::Plain(text) => text.clone(),
            Content::Prose { bytes, seed } => prose::text(*bytes as usize, *seed),
            Content::Page { sections, seed } => prose::page(*sections, *seed),
            Content::Slides { slides, seed } => slides::presentation(*slides, *seed),
        };
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
