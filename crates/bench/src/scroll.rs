// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time for which a terminal scrolls through a long file, beside a load.
//!
//! The heavy interaction of Evans et al. (1993, section 5.2): `dd if=FILE bs=100` in a terminal.
//! The time goes from the key that starts it until the terminal stops drawing, after it has
//! answered a cursor position query that follows the file: so it has read all of it.

mod options;

pub use options::Scroll;

use crate::arms::{
    ArmDetails, ArmScale, ArmTerms, Block, Compared, all_turns, load_words, turns_words,
};
use crate::driver::{BenchDriver, BenchStage, Habits, QUIET, User};
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::files::write;
use crate::load::LoadKind;
use crate::screen::Place;
use crate::typist::nanos;
use anyhow::{Context, Result, bail, ensure};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tipme_desktop::inject::Pace;
use tipme_measure::Events;

/// Class of the events.
const CLASS: &str = "scroll";
const TITLE: &str = "Scrolling beside a load: a long file in a terminal";
/// Minimum and maximum size of the file.
const BYTES_MIN: u64 = 1 << 10;
const BYTES_MAX: u64 = 256 << 20;
/// Maximum time for the file.
const SCROLL_MAX: Duration = Duration::from_secs(300);
/// Maximum time for which the terminal may keep drawing after the file.
const REST_TIMEOUT: Duration = Duration::from_secs(20);
/// Approximate speed of a terminal, in bytes per second.
const USUAL_BYTES_PER_S: f64 = (4 << 20) as f64;
/// Interval between checks.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Programs required on a display.
const PROGRAMS: [&str; 6] = ["Xvfb", "openbox", "xterm", "bash", "stty", "dd"];
/// Script for each key: prints the file and a cursor position query, reads the answer, and writes a
/// letter into another file.
const SCRIPT: &str = r#"
    stty -echo
    while IFS= read -rsn1 key; do
        dd if="$1" bs=100 2>/dev/null
        printf '\e[6n'
        IFS= read -rsd R place
        printf '%s' "$key" >> "$2"
    done"#;

/// Figures of this benchmark only.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct File {
    /// Size of the file.
    pub bytes: u64,
}

impl Experiment for Scroll {
    const NAME: &'static str = "scroll";
    const CLASSES: &'static [&'static str] = &[CLASS];
    type Figures = Compared<File>;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        let comparison = self.beside.comparison(driver.programs(), LoadKind::Cpu);
        let scrolling = Duration::from_secs_f64(self.bytes as f64 / USUAL_BYTES_PER_S);
        let usual = comparison.usual_words(QUIET * 2 + scrolling);
        driver.line(&format!("{}; {usual}", turns_words(&comparison)));
        ensure!((BYTES_MIN..=BYTES_MAX).contains(&self.bytes), "choose a file of 1 KiB to 256 MiB");
        comparison.check()?;
        let mut stage = driver.stage(&Place::X11, self.beside.session(), &PROGRAMS)?;
        let marks = open(&mut *stage, self.bytes as usize)?;
        let time = SCROLL_MAX + REST_TIMEOUT;
        let cells =
            all_turns(&comparison, &mut *stage, time, &mut |stage| scroll_once(stage, &marks))?;
        Ok(Compared::measured(TITLE, &comparison, cells, File { bytes: self.bytes }))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.beside.files.paths()
    }
}

impl ArmDetails for File {
    const TERMS: ArmTerms = ArmTerms {
        heading: "scrolling",
        quantity: "the time",
        scale: ArmScale::Elapsed,
        paper: &[
            "Evans et al. (1993), figure 2, on a machine of its time: with their prototype 10 to 15 s at any load average",
            "from 0 to 20, for another file",
        ],
        line_ms: None,
    };

    fn bounds(figures: &Compared<File>) -> Vec<String> {
        vec![format!(
            "{} KiB by dd, 100 bytes at a time; {}",
            figures.more.bytes >> 10,
            load_words(figures)
        )]
    }
}

/// Writes the file and opens the terminal; returns the file with a letter for each completed
/// scroll.
fn open(stage: &mut dyn BenchStage, bytes: usize) -> Result<PathBuf> {
    let (file, marks) = (stage.folder().join("text"), stage.folder().join("marks"));
    write(&file, text(bytes))?;
    write(&marks, "")?;
    let words = ["bash", "--norc", "--noprofile", "-c", SCRIPT, "scroll"].map(OsString::from);
    let program: Vec<OsString> =
        words.into_iter().chain([file.into(), marks.clone().into()]).collect();
    stage.open_terminal(&program)?;
    Ok(marks)
}

/// Scrolls once. If the terminal does not come to rest, the time is a lower bound.
fn scroll_once(stage: &mut dyn BenchStage, marks: &Path) -> Result<Block<()>> {
    let mut user = stage.user(Habits::at_terminal(Pace::default()))?;
    let before = length(marks);
    let pressed = user.key('g')?;
    while length(marks) == before {
        if user.now().since(pressed) > nanos(SCROLL_MAX) {
            bail!(
                "the terminal did not scroll through the file within {SCROLL_MAX:?}; choose a smaller one"
            );
        }
        user.sleep(POLL_INTERVAL)?;
    }
    let rested = wait_for_rest(&mut *user)?;
    let drawn = user.drawings()?;
    let last = drawn.last().copied().context("the terminal drew nothing")?;
    let mut events = Events::of(CLASS, None);
    events.push(pressed.0, last.since(pressed).0);
    events.censored = u64::from(!rested);
    Ok(Block { events, waited: None, more: () })
}

/// Waits until nothing has been drawn for a while; returns `false` on a timeout.
fn wait_for_rest(user: &mut dyn User) -> Result<bool> {
    let begun = user.now();
    while user.now().since(user.last_drawing()) < nanos(QUIET) {
        if user.now().since(begun) >= nanos(REST_TIMEOUT) {
            return Ok(false);
        }
        user.sleep(POLL_INTERVAL)?;
    }
    Ok(true)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns lines like those of a terminal table, all different.
fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "vt{number:06}|terminal {number}:am:co#80:li#24:cl=50\\E[;H\\E[2J:bs:cm=5\\E[%i%d;%dH"
        );
    }
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{BenchFigures, parsed};
    use crate::fake::{FakeDriver, document};

    fn scrolled(driver: &mut FakeDriver) -> Result<MeasuredRepeats<Compared<File>>> {
        parsed::<Scroll>("--load 2 --bytes 1K --blocks 1").run(driver)
    }

    #[test]
    fn the_time_goes_to_the_last_drawing_behind_the_file() {
        let mut driver =
            FakeDriver::answering(|turn, _| Some(Duration::from_secs(1 + u64::from(turn.level))));
        driver.taken_after(Duration::from_millis(500)).drawing_for(Duration::from_millis(900));
        let measured = scrolled(&mut driver).expect("it is measured");
        let runs = measured.runs.iter();
        let ms: Vec<u64> = runs.map(|run| run.classes[0].latencies_ns[0] / 1_000_000).collect();
        assert_eq!(ms, [1_900, 3_900], "drawings behind the mark count");
        assert!(measured.runs.iter().all(|run| run.classes[0].censored == 0));
        let text = Compared::text(&document(measured));
        assert!(
            text.contains("1 KiB by dd")
                && text.contains("load 2, unmanaged           1      3.90"),
            "{text}"
        );
    }

    #[test]
    fn a_terminal_that_keeps_drawing_is_censored() {
        let mut driver = FakeDriver::answering(|_, _| Some(Duration::from_secs(1)));
        driver.taken_after(Duration::from_secs(1)).drawing_for(Duration::from_secs(60));
        let measured = scrolled(&mut driver).expect("it is measured");
        assert!(measured.runs.iter().all(|run| run.classes[0].censored == 1));
        assert!(measured.runs[0].classes[0].latencies_ns[0] >= 20_000_000_000, "at least so long");
        assert_eq!(measured.figures.unmanaged.map(|figures| figures.unanswered), Some(1));
    }

    #[test]
    fn a_file_that_is_never_taken_is_an_error() {
        let error =
            scrolled(&mut FakeDriver::answering(|_, _| None)).err().map(|error| error.to_string());
        assert!(
            error
                .is_some_and(|error| error.contains("did not scroll through the file within 300s"))
        );
    }

    #[test]
    fn the_file_has_its_size_and_no_line_twice() {
        let text = text(10_000);
        assert_eq!(text.len(), 10_000);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.windows(2).all(|pair| pair[0] != pair[1]) && lines.len() > 100);
    }
}
