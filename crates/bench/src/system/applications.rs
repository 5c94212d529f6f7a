// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several applications on a display, and the script that visits them in turn.

use crate::arms::Block;
use crate::driver::{BenchStage, Habits, User, Watch};
use crate::files::{make_folder, write};
use crate::process::missing;
use crate::typist::{nanos, type_and_look};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tipme_desktop::inject::Pace;
use tipme_measure::Events;

/// Class of the runs of the script.
pub(super) const CLASS: &str = "script";
/// Maximum duration of one run of the script.
pub(super) const RUN_MAX: Duration = Duration::from_secs(900);

/// Faster than people type, so that the machine dominates the time.
const WORDS_PER_MINUTE: f64 = 300.0;
const INTERVAL: Duration = Duration::from_millis(40);
/// Approximate duration of a click, with its rest at the position.
const CLICK: Duration = Duration::from_millis(250);
/// Time without drawing that is required before the script begins.
const QUIET: Duration = Duration::from_millis(300);
/// Lines of the displayed files.
const LINES: usize = 400;
/// A blinking cursor would look like an answer.
const GTK_SETTINGS: &str = "[Settings]\ngtk-cursor-blink=false\n";

/// Activity of one run of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PlayedRun {
    /// Changes of the focus.
    pub changes: usize,
    pub keys: usize,
    /// Keys that were not answered in time.
    pub unanswered: usize,
}

/// A window, its position, and the keys typed there, each of which causes a drawing.
pub(super) struct ApplicationKind {
    name: &'static str,
    /// The program, or the command in a terminal.
    words: &'static [&'static str],
    /// Geometry of a terminal; `None` for a program with a window of its own, which opens in the
    /// middle of the screen.
    geometry: Option<&'static str>,
    /// Position of the click.
    at: (i16, i16),
    keys: &'static str,
}

/// The GTK editor is first, so that it gets the middle; the terminals have three corners.
const KINDS: [ApplicationKind; 4] = [
    ApplicationKind {
        name: "mousepad",
        words: &["mousepad", "--disable-server", "notes"],
        geometry: None,
        at: (512, 400),
        keys: "gui words",
    },
    ApplicationKind {
        name: "vi",
        words: &["vi", "-n", "+startinsert", "letter"],
        geometry: Some("50x10+0+0"),
        at: (150, 100),
        keys: "dear friend",
    },
    ApplicationKind {
        name: "less",
        words: &["less", "book"],
        geometry: Some("50x10-0+0"),
        at: (870, 100),
        keys: "jjjjkkkk",
    },
    ApplicationKind {
        name: "shell",
        words: &["sh"],
        geometry: Some("50x10+0-0"),
        at: (150, 690),
        keys: "echo hello\n",
    },
];

/// Usual time until the applications are open.
pub(super) const OPEN_USUAL: Duration = Duration::from_secs(3);

/// Returns the approximate duration of a run on a fast machine.
pub(super) fn about(rounds: u16) -> Duration {
    let keys: usize = KINDS.iter().map(|kind| kind.keys.chars().count()).sum();
    (INTERVAL * keys as u32 + (CLICK + INTERVAL) * KINDS.len() as u32) * u32::from(rounds)
}

/// The open applications.
pub(super) struct OpenApplications(Vec<&'static ApplicationKind>);

impl OpenApplications {
    /// Opens those that are installed, and waits for each.
    pub(super) fn open(stage: &mut dyn BenchStage) -> Result<OpenApplications> {
        write_files(stage.folder())?;
        let installed = KINDS.iter().filter(|kind| missing(&[kind.words[0]]).is_empty());
        let open = OpenApplications(installed.collect());
        open.0.iter().try_for_each(|kind| stage.open_window(kind.name, command(kind)))?;
        Ok(open)
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|kind| kind.name).collect()
    }

    /// Plays the script once.
    pub(super) fn play(&self, rounds: u16, stage: &mut dyn BenchStage) -> Result<Block<PlayedRun>> {
        let pace = Pace { words_per_minute: WORDS_PER_MINUTE, ..Pace::default() };
        let mut user = stage.user(Habits { pace, quiet: QUIET, watch: Watch::Screen })?;
        let (begun, mut played) = (user.now(), PlayedRun::default());
        for kind in (0..rounds).flat_map(|_| &self.0) {
            visit(kind, &mut *user, &mut played)?;
            if user.now().since(begun) > nanos(RUN_MAX) {
                bail!(
                    "the script did not end within {RUN_MAX:?}; choose fewer rounds or a smaller load"
                );
            }
        }
        let mut events = Events::of(CLASS, None);
        events.push(begun.0, user.now().since(begun).0);
        user.drawings()?;
        Ok(Block { events, waited: None, more: played })
    }
}

/// Clicks into a window, waits for its focus, and types.
fn visit(kind: &ApplicationKind, user: &mut dyn User, played: &mut PlayedRun) -> Result<()> {
    user.focus(kind.name, kind.at)?;
    played.changes += 1;
    for letter in kind.keys.chars() {
        let (_, in_time) = type_and_look(user, letter)?;
        played.unanswered += usize::from(!in_time);
        played.keys += 1;
    }
    Ok(())
}

/// Writes the documents and settings of the applications.
fn write_files(folder: &Path) -> Result<()> {
    let lines = (0..LINES).map(|line| format!("line {line} of something that people read\n"));
    let settings = folder.join("gtk-3.0");
    make_folder(&settings)?;
    let files = [
        (folder.join("book"), lines.collect::<String>()),
        (folder.join("letter"), String::new()),
        (folder.join("notes"), String::new()),
        (settings.join("settings.ini"), GTK_SETTINGS.to_owned()),
    ];
    files.iter().try_for_each(|(path, text)| write(path, text))
}

fn command(kind: &ApplicationKind) -> Command {
    match kind.geometry {
        Some(geometry) => {
            let mut command = Command::new("xterm");
            command
                .args(["-geometry", geometry, "+sb", "-xrm", "XTerm*cursorBlink: false", "-e"])
                .args(kind.words);
            command
        }
        None => {
            let mut command = Command::new(kind.words[0]);
            command.args(&kind.words[1..]);
            command
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_takes_its_keys_and_clicks() {
        assert_eq!(about(0), Duration::ZERO);
        assert!(
            about(10) > Duration::from_secs(15) && about(10) < Duration::from_secs(60),
            "{:?}",
            about(10)
        );
    }

    #[test]
    fn every_place_is_on_the_screen() {
        assert!(
            KINDS
                .iter()
                .all(|kind| (0..1024).contains(&kind.at.0) && (0..768).contains(&kind.at.1))
        );
    }
}
