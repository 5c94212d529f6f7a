// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a terminal takes to scroll through a long file, beside a load.
//!
//! The heavy interaction of Evans et al. (1993, section 5.2): `dd if=FILE bs=100` in a terminal. The time goes from
//! the key that starts it until the terminal draws no more, after it has answered a question for the place of its
//! cursor that stands behind the file: so it has taken all of it.

use crate::arms::{Cell, Comparison, all_turns};
use crate::interrupt::Interrupt;
use crate::intervals::Watch;
use crate::seen::Seen;
use crate::session::{self, Session};
use crate::steady::Steady;
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
const REST_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const GLANCE: Duration = Duration::from_millis(2);
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
    /// The longest that measuring may take.
    pub fn time_max(&self) -> Duration {
        let turns = (self.comparison.turns(0).len() * self.comparison.blocks) as u32;
        (SCROLL_MAX + REST_PATIENCE) * turns
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
    pub time: Nanos,
}

/// Scrolls once in every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, watch: &mut dyn Watch) -> Result<Vec<Cell<Scrolled>>> {
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
    let time = SCROLL_MAX + REST_PATIENCE;
    all_turns(&options.comparison, &session, time, interrupt, watch, &mut |_, _| once(&session, &marks, interrupt))
}

fn once(session: &Session, marks: &Path, interrupt: &Interrupt) -> Result<Scrolled> {
    let mut typist = Typist::open(&session.target(), Pace::default())?;
    let _steady = Steady::new();
    let seen = Seen::start(session, QUIET)?;
    let before = length(marks);
    let pressed = typist.key('g')?;
    while length(marks) == before {
        if clock::now().since(pressed) > nanos(SCROLL_MAX) {
            bail!("the terminal did not scroll through the file within {SCROLL_MAX:?}; choose a smaller one");
        }
        interrupt.sleep(GLANCE)?;
    }
    let taken = clock::now();
    while seen.quiet_for() < QUIET && clock::now().since(taken) < nanos(REST_PATIENCE) {
        interrupt.sleep(GLANCE)?;
    }
    let drawn = seen.finish()?;
    let last = drawn.last().copied().context("the terminal drew nothing")?;
    Ok(Scrolled { pressed, time: last.since(pressed) })
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
    fn the_file_has_its_size_and_no_line_twice() {
        let text = text(10_000);
        assert_eq!(text.len(), 10_000);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.windows(2).all(|pair| pair[0] != pair[1]) && lines.len() > 100);
    }
}
