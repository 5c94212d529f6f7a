// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a script.

use super::{prose, slides};
use crate::files::{make_folder, write};
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tipme_desktop::hotkeys::Chord;
use tipme_desktop::inject::Pace;
use tipme_measure::InputClass;

/// Maximum number of inputs of a script.
pub const EVENTS_MAX: u64 = 100_000;
/// Maximum size of the typed text of a script, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum size of a script, in bytes.
pub(super) const SCRIPT_BYTES_MAX: usize = 4 << 20;
/// Maximum size of a file that a script makes, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of files that a script makes.
pub const FILES_MAX: usize = 100;

/// A script, checked and expanded.
#[derive(Clone, Debug)]
pub struct Script {
    pub name: String,
    /// Description of the modelled activity, in a sentence.
    pub about: String,
    /// Default application with its arguments, if none is named on the command line; may be empty.
    pub application: Vec<String>,
    /// Maximum time until the application has a focused window.
    pub start_within: Duration,
    /// Thresholds in nanoseconds that override those of the profile.
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

/// Contents of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Literal text from the script.
    Plain(String),
    /// Lines of generated text with `bytes` bytes in total.
    Prose { bytes: u64, seed: u64 },
    /// A web page with `sections` sections of generated text and tables.
    Page { sections: u64, seed: u64 },
    /// A presentation with `slides` slides, some of which have a chart.
    Slides { slides: u64, seed: u64 },
}

/// One step of a script.
#[derive(Clone, Debug)]
pub enum ScriptStep {
    /// Rhythm of the inputs that follow.
    Pace(Pace),
    Input(Input),
    Pause(Duration),
    /// Waits until nothing is drawn for `quiet`, and at most for `at_most`.
    Idle {
        quiet: Duration,
        at_most: Duration,
    },
}

/// One input; its answer is timed.
#[derive(Clone, Debug)]
pub struct Input {
    pub act: ScriptAct,
    pub label: Arc<str>,
    pub class: InputClass,
}

/// Action of the user.
#[derive(Clone, Debug)]
pub enum ScriptAct {
    Character(char),
    Key(Chord),
    /// Click at a position on the screen, in pixels.
    Click {
        x: i16,
        y: i16,
        button: u8,
    },
    /// Move of the pointer to a position on the screen, in pixels.
    Move {
        x: i16,
        y: i16,
    },
    /// Scroll by one notch of the wheel.
    Scroll {
        down: bool,
    },
}

impl MadeFile {
    pub(super) fn make(&self, home: &Path) -> Result<()> {
        let path = home.join(&self.path);
        path.parent().map_or(Ok(()), make_folder)?;
        let text = match &self.content {
            Content::Plain(text) => text.clone(),
            Content::Prose { bytes, seed } => prose::text(*bytes as usize, *seed),
            Content::Page { sections, seed } => prose::page(*sections, *seed),
            Content::Slides { slides, seed } => slides::presentation(*slides, *seed),
        };
        write(&path, text)
    }
}
