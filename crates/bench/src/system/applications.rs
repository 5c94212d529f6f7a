// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several applications on a display, and the script that goes round them.

use crate::estimate::Estimate;
use crate::interrupt::Interrupt;
use crate::priority::Priority;
use crate::process::{Process, is_group_member, missing};
use crate::seen::Seen;
use crate::session::Session;
use crate::typing::{ANSWER_TIMEOUT, await_answer, nanos};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::window::{DamageWatch, Watcher};
use tipme_record::Nanos;

/// The longest that one run of the script may take.
pub const RUN_MAX: Duration = Duration::from_secs(900);

/// Faster than people type, so that what is measured is the machine.
const WORDS_PER_MINUTE: f64 = 300.0;
const INTERVAL: Duration = Duration::from_millis(40);
/// About what a click takes, with its rest on the place.
const CLICK: Duration = Duration::from_millis(250);
/// How long a window may take to come, and to get the focus.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(60);
/// The screen has been still for so long before the script begins.
const QUIET: Duration = Duration::from_millis(300);
/// Lines of the files that are looked at.
const LINES: usize = 400;
/// A cursor that blinks would be taken for an answer.
const GTK_SETTINGS: &str = "[Settings]\ngtk-cursor-blink=false\n";

/// One run of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Played {
    pub begun: Nanos,
    pub time: Nanos,
    /// Changes of the focus.
    pub changes: usize,
    pub keys: usize,
    /// Keys that were not answered in time.
    pub unanswered: usize,
}

/// What is opened where, and what is typed there: each key draws something.
struct Kind {
    name: &'static str,
    /// The program, or what runs in a terminal.
    words: &'static [&'static str],
    /// Of a terminal; `None` for a program with a window of its own, which comes into the middle of the screen.
    geometry: Option<&'static str>,
    /// Where to click.
    at: (i16, i16),
    keys: &'static str,
}

/// The GTK editor comes first, so that it has the middle; the terminals have three corners.
const KINDS: [Kind; 4] = [
    Kind {
        name: "mousepad",
        words: &["mousepad", "--disable-server", "notes"],
        geometry: None,
        at: (512, 400),
        keys: "gui words",
    },
    Kind {
        name: "vi",
        words: &["vi", "-n", "+startinsert", "letter"],
        geometry: Some("50x10+0+0"),
        at: (150, 100),
        keys: "dear friend",
    },
    Kind { name: "less", words: &["less", "book"], geometry: Some("50x10-0+0"), at: (870, 100), keys: "jjjjkkkk" },
    Kind { name: "shell", words: &["sh"], geometry: Some("50x10+0-0"), at: (150, 690), keys: "echo hello\n" },
];

/// The applications come up.
pub(super) const ESTIMATE: Estimate =
    Estimate::new(Duration::from_secs(3), WINDOW_TIMEOUT.saturating_mul(KINDS.len() as u32));
/// The longest that a visit to an application can take; a run may go on so long after its time.
pub(super) const VISIT_MAX: Duration = WINDOW_TIMEOUT.saturating_add(ANSWER_TIMEOUT.saturating_mul(KEYS_MAX));
/// Keys of a visit, at most.
const KEYS_MAX: u32 = 11;

/// About how long a run takes where nothing is slow.
pub(super) fn about(rounds: usize) -> Duration {
    let keys: usize = KINDS.iter().map(|kind| kind.keys.chars().count()).sum();
    (INTERVAL * keys as u32 + (CLICK + INTERVAL) * KINDS.len() as u32) * rounds as u32
}

struct Tool {
    kind: &'static Kind,
    process: Process,
}

/// The applications, open.
pub(super) struct OpenApplications<'a> {
    session: &'a Session,
    watcher: Watcher,
    tools: Vec<Tool>,
}

impl<'a> OpenApplications<'a> {
    /// Opens those that are installed, and waits for each.
    pub(super) fn set(session: &'a Session, interrupt: &Interrupt) -> Result<OpenApplications<'a>> {
        write_files(session.folder())?;
        let watcher = Watcher::open(&session.target())?;
        let mut open = OpenApplications { session, watcher, tools: Vec::new() };
        for kind in KINDS.iter().filter(|kind| missing(&[kind.words[0]]).is_empty()) {
            interrupt.check()?;
            let tool = Tool { kind, process: Process::start(kind.name, command(kind, session), None)? };
            open.wait_for_focus(&tool)?;
            open.tools.push(tool);
        }
        Ok(open)
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.tools.iter().map(|tool| tool.kind.name).collect()
    }

    fn wait_for_focus(&self, tool: &Tool) -> Result<()> {
        let group = tool.process.pid();
        let focused = self.watcher.wait_for_focus_of(|pid| is_group_member(pid, group), WINDOW_TIMEOUT);
        focused.with_context(|| format!("the window of {} does not get the focus", tool.kind.name))?;
        Ok(())
    }

    /// One run of the script.
    pub(super) fn play(&mut self, rounds: usize, interrupt: &Interrupt) -> Result<Played> {
        let pace = Pace { words_per_minute: WORDS_PER_MINUTE, ..Pace::default() };
        let mut typist = Typist::open(&self.session.target(), pace)?;
        let _priority = Priority::realtime();
        let seen = Seen::watch(Box::new(DamageWatch::open_screen(&self.session.target())?), QUIET)?;
        let mut played = Played { begun: clock::now(), ..Played::default() };
        for tool in (0..rounds).flat_map(|_| &self.tools) {
            self.visit(tool, &mut typist, &seen, &mut played, interrupt)?;
            if clock::now().since(played.begun) > nanos(RUN_MAX) {
                bail!("the script did not end within {RUN_MAX:?}; choose fewer rounds or a smaller load");
            }
        }
        played.time = clock::now().since(played.begun);
        seen.finish()?;
        Ok(played)
    }

    /// Clicks into a window, waits for its focus, and types.
    fn visit(
        &self,
        tool: &Tool,
        typist: &mut Typist,
        seen: &Seen,
        played: &mut Played,
        interrupt: &Interrupt,
    ) -> Result<()> {
        interrupt.check()?;
        typist.click_at(tool.kind.at.0, tool.kind.at.1, 1)?;
        self.wait_for_focus(tool)?;
        played.changes += 1;
        for letter in tool.kind.keys.chars() {
            let at = typist.key(letter)?;
            played.unanswered += usize::from(!await_answer(seen, at, interrupt)?);
            played.keys += 1;
        }
        Ok(())
    }
}

/// What the applications show, and how they behave.
fn write_files(folder: &Path) -> Result<()> {
    let lines = (0..LINES).map(|line| format!("line {line} of something that people read\n"));
    let settings = folder.join("gtk-3.0");
    std::fs::create_dir_all(&settings).with_context(|| format!("cannot make {}", settings.display()))?;
    let files = [
        (folder.join("book"), lines.collect::<String>()),
        (folder.join("letter"), String::new()),
        (folder.join("notes"), String::new()),
        (settings.join("settings.ini"), GTK_SETTINGS.to_owned()),
    ];
    for (path, text) in files {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn command(kind: &Kind, session: &Session) -> Command {
    let mut command = match kind.geometry {
        Some(geometry) => {
            let mut command = Command::new("xterm");
            command.args(["-geometry", geometry, "+sb", "-xrm", "XTerm*cursorBlink: false", "-e"]).args(kind.words);
            command
        }
        None => {
            let mut command = Command::new(kind.words[0]);
            command.args(&kind.words[1..]);
            command
        }
    };
    session.prepare(&mut command);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_takes_its_keys_and_clicks() {
        assert_eq!(about(0), Duration::ZERO);
        assert!(about(10) > Duration::from_secs(15) && about(10) < Duration::from_secs(60), "{:?}", about(10));
    }

    #[test]
    fn no_visit_has_more_keys_than_its_time_allows() {
        assert!(KINDS.iter().all(|kind| kind.keys.chars().count() <= KEYS_MAX as usize));
    }

    #[test]
    fn every_place_is_on_the_screen() {
        assert!(KINDS.iter().all(|kind| (0..1024).contains(&kind.at.0) && (0..768).contains(&kind.at.1)));
    }
}
