// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a terminal takes to scroll through a long file, beside a load.
//!
//! The heavy interaction of Evans et al. (1993, section 5.2): `dd if=FILE bs=100` in a terminal. The time goes from
//! the key that starts it until the terminal draws no more, after it has answered a question for the place of its
//! cursor that stands behind the file: so it has taken all of it.

use crate::arms::{Cell, Comparison, all_turns};
use crate::estimate::Estimate;
use crate::interrupt::Interrupt;
use crate::priority::Priority;
use crate::progress::Progress;
use crate::seen::Seen;
use crate::session::{self, Session};
use crate::typing::nanos;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// Bytes of the file, at least and at most.
pub const BYTES_MIN: u64 = 1 << 10;
pub const BYTES_MAX: u64 = 256 << 20;
/// The longest that the file may take.
pub const SCROLL_MAX: Duration = Duration::from_secs(300);
/// Nothing is drawn for so long before the key and after the file.
const QUIET: Duration = Duration::from_millis(200);
/// How long the terminal may go on drawing behind the file.
const REST_TIMEOUT: Duration = Duration::from_secs(20);
/// What a terminal draws in a second, about.
const USUAL_BYTES_PER_S: f64 = (4 << 20) as f64;
/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// For each key: the file, a question for the cursor's place, its answer, and a letter into another file.
const SCRIPT: &str = r#"
    stty -echo
    while IFS= read -rsn1 key; do
        dd if="$1" bs=100 2>/dev/null
        printf '\e[6n'
        IFS= read -rsd R place
        printf '%s' "$key" >> "$2"
    done"#;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    pub comparison: Comparison,
    /// Size of the file.
    pub bytes: u64,
}

impl Options {
    /// How long all of it takes; about that where the terminal draws as fast as is usual.
    pub fn estimate(&self) -> Estimate {
        let scrolling = Duration::from_secs_f64(self.bytes as f64 / USUAL_BYTES_PER_S);
        self.comparison.estimate(Estimate::new(QUIET * 2 + scrolling, QUIET + SCROLL_MAX + REST_TIMEOUT))
    }

    fn check(&self) -> Result<()> {
        ensure!((BYTES_MIN..=BYTES_MAX).contains(&self.bytes), "choose a file of 1 KiB to 256 MiB");
        self.comparison.check()
    }
}

/// When the key was pressed, and how long it took until all was drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scrolled {
    pub pressed: Nanos,
    /// At least so long where the terminal did not come to rest.
    pub time: Nanos,
    /// The terminal drew no more; false where it went on for longer than was waited for.
    pub rested: bool,
}

/// Scrolls once in every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, progress: &mut dyn Progress) -> Result<Vec<Cell<Scrolled>>> {
    options.check()?;
    session::require(&["Xvfb", "openbox", "xterm", "bash", "stty", "dd"])?;
    let mut session = Session::start(session::Options::default())?;
    let (file, marks) = (session.folder().join("text"), session.folder().join("marks"));
    for (path, content) in [(&file, text(options.bytes as usize)), (&marks, String::new())] {
        std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let words = ["bash", "--norc", "--noprofile", "-c", SCRIPT, "scroll"].map(std::ffi::OsString::from);
    let program: Vec<_> = words.into_iter().chain([file.into(), marks.clone().into()]).collect();
    session.open_terminal(&[], &program)?;
    let time = SCROLL_MAX + REST_TIMEOUT;
    all_turns(&options.comparison, &session, time, interrupt, progress, &mut |_, _| once(&session, &marks, interrupt))
}

fn once(session: &Session, marks: &Path, interrupt: &Interrupt) -> Result<Scrolled> {
    let mut typist = Typist::open(&session.target(), Pace::default())?;
    let _priority = Priority::realtime();
    let seen = Seen::start(session, QUIET)?;
    let before = length(marks);
    let pressed = typist.key('g')?;
    while length(marks) == before {
        if clock::now().since(pressed) > nanos(SCROLL_MAX) {
            bail!("the terminal did not scroll through the file within {SCROLL_MAX:?}; choose a smaller one");
        }
        interrupt.sleep(POLL_INTERVAL)?;
    }
    let rested = rests(|| seen.quiet_for(), REST_TIMEOUT, interrupt)?;
    let drawn = seen.finish()?;
    let last = drawn.last().copied().context("the terminal drew nothing")?;
    Ok(Scrolled { pressed, time: last.since(pressed), rested })
}

/// Waits until nothing has been drawn for a while; false where that did not come in time.
fn rests(quiet_for: impl Fn() -> Duration, timeout: Duration, interrupt: &Interrupt) -> Result<bool> {
    let begun = clock::now();
    while quiet_for() < QUIET {
        if clock::now().since(begun) >= nanos(timeout) {
            return Ok(false);
        }
        interrupt.sleep(POLL_INTERVAL)?;
    }
    Ok(true)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Lines as of a table of terminals, all different.
fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        // Writing to a text does not fail.
        let _ = writeln!(text, "vt{number:06}|terminal {number}:am:co#80:li#24:cl=50\\E[;H\\E[2J:bs:cm=5\\E[%i%d;%dH");
    }
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_goes_on_drawing_does_not_rest() {
        let interrupt = Interrupt::default();
        assert!(!rests(|| Duration::ZERO, POLL_INTERVAL, &interrupt).expect("nobody interrupts"));
        assert!(rests(|| QUIET, Duration::ZERO, &interrupt).expect("nobody interrupts"));
    }

    #[test]
    fn the_file_has_its_size_and_no_line_twice() {
        let text = text(10_000);
        assert_eq!(text.len(), 10_000);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.windows(2).all(|pair| pair[0] != pair[1]) && lines.len() > 100);
    }
}
