// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency of the first key after a pause, beside a load.
//!
//! The warm start of Evans et al. (1993, section 5.2): a user types, stops for 30 seconds, and
//! types again. If memory is short, the terminal's pages have been evicted meanwhile, and the first
//! key brings them back.

mod options;

pub use options::Warmstart;

use crate::arms::{
    Arm, ArmDetails, ArmScale, ArmTerms, Block, Compared, TurnResults, all_turns, load_words,
    turns_words,
};
use crate::driver::{BenchDriver, BenchStage, Habits, QUIET, User};
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::load::LoadKind;
use crate::screen::Place;
use crate::typist::{
    ECHO_PROGRAMS, INTERVAL, WORDS_PER_MINUTE, answers, events, letters, open_echo, type_and_look,
};
use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use tipme_desktop::inject::Pace;
use tipme_measure::{InputClass, ThresholdProfile, ms};
use tipme_record::Nanos;

/// Class of the events.
const CLASS: &str = "key";
const TITLE: &str = "Warm start beside a load: the first key after a pause";
/// Latency of the first key with the paper's prototype.
const PAPER_MS: f64 = 100.0;
/// Maximum pause.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);
/// Keys before the pause, and after the first one behind it.
const KEYS_BEFORE: usize = 20;
const KEYS_AFTER: usize = 10;
/// Run time of the load for the keys of a turn beyond their own pace; it runs a minute longer if
/// nothing ends it.
const KEYS_SPARE: Duration = Duration::from_secs(640);
/// Note that memory made no difference.
const KEPT: &str = "the load pushed nothing out: no page had to be read back after a pause of the unmanaged arm, so the \
     result says nothing about memory; choose a larger --memory, or --type big, which keeps all of it; after an \
     earlier run also: echo 3 > /proc/sys/vm/drop_caches, since pages that were read back are kept longest";

/// Figures of this benchmark only.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Pauses {
    pub pause_s: f64,
    /// `true` if each pause beside an unmanaged load evicted pages; `null` without such pauses.
    pub pushed_out: Option<bool>,
    pub pauses: Vec<WarmstartPause>,
}

/// One pause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pause")]
pub struct WarmstartPause {
    pub turn: String,
    /// Latency of the first key after it; at least the timeout if it was not answered.
    pub first_ns: u64,
    /// Latencies of the keys behind it.
    pub after_ns: Vec<u64>,
    /// Major page faults of display server, terminal and its program, from the first key on.
    pub page_ins: u64,
}

impl Experiment for Warmstart {
    const NAME: &'static str = "warmstart";
    const CLASSES: &'static [&'static str] = &[CLASS];
    type Figures = Compared<Pauses>;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        let comparison = self.beside.comparison(driver.programs(), LoadKind::Big);
        let keys = INTERVAL * (KEYS_BEFORE + 1 + KEYS_AFTER) as u32;
        let usual = comparison.usual_words(QUIET + self.pause + keys);
        driver.line(&format!("{}; {usual}", turns_words(&comparison)));
        ensure!(self.pause <= PAUSE_MAX, "choose a pause of an hour at most");
        comparison.check()?;
        let mut stage = driver.stage(&Place::X11, self.beside.session(), &ECHO_PROGRAMS)?;
        open_echo(&mut *stage)?;
        let time = self.pause + KEYS_SPARE;
        let cells = all_turns(&comparison, &mut *stage, time, &mut |stage| {
            measure_pause(stage, self.pause)
        })?;
        let more = Pauses {
            pause_s: self.pause.as_secs_f64(),
            pushed_out: pushed_out(&cells),
            pauses: pauses(&cells),
        };
        Ok(Compared::measured(TITLE, &comparison, cells, more))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.beside.files.paths()
    }
}

impl ArmDetails for Pauses {
    const TERMS: ArmTerms = ArmTerms {
        heading: "first key",
        quantity: "the first key",
        scale: ArmScale::Latency,
        paper: &[
            "Evans et al. (1993), section 5.4, on a machine of its time: 0.1 s with their prototype, 1 s without it,",
            "on the average",
        ],
        line_ms: Some(PAPER_MS),
    };

    fn bounds(figures: &Compared<Pauses>) -> Vec<String> {
        let more = &figures.more;
        let turns = figures.arms.iter().map(|row| {
            let pauses = more.pauses.iter().filter(|pause| pause.turn == row.turn);
            let page_ins: u64 = pauses.clone().map(|pause| pause.page_ins).sum();
            let longest = ms(pauses.flat_map(|pause| &pause.after_ns).max().copied().unwrap_or_default());
            let turn = &row.turn;
            format!(
                "{turn}: {page_ins} page faults waited for a disk; after the first key, the longest latency was {longest:.2} ms"
            )
        });
        let first = format!("a pause of {} s; {}", more.pause_s, load_words(figures));
        let kept = (more.pushed_out == Some(false)).then(|| KEPT.to_owned());
        [first].into_iter().chain(turns).chain(kept).collect()
    }
}

/// Measures the first key after a pause, and the keys behind it with the page faults.
fn measure_pause(stage: &mut dyn BenchStage, pause: Duration) -> Result<Block<(Vec<Nanos>, u64)>> {
    let pace = Pace { words_per_minute: WORDS_PER_MINUTE, ..Pace::default() };
    let mut user = stage.user(Habits::at_terminal(pace))?;
    let mut letters = letters();
    type_keys(&mut *user, letters.by_ref().take(KEYS_BEFORE))?;
    user.line(&format!("a pause of {} s", pause.as_secs()));
    user.sleep(pause)?;
    let before = user.page_ins();
    let pressed = type_keys(&mut *user, letters.take(1 + KEYS_AFTER))?;
    let page_ins = user.page_ins().saturating_sub(before);
    let drawn = user.drawings()?;
    let (first, after) = pressed.split_at(1);
    let limits = InputClass::Key.limits(ThresholdProfile::Default);
    let events = events(CLASS, Some(limits), first, &drawn);
    Ok(Block { events, waited: None, more: (answers(after, &drawn).0, page_ins) })
}

/// Types some letters; returns the times of the presses.
fn type_keys(user: &mut dyn User, letters: impl Iterator<Item = char>) -> Result<Vec<Nanos>> {
    let mut pressed = Vec::new();
    for letter in letters {
        pressed.push(type_and_look(user, letter)?.0);
    }
    Ok(pressed)
}

fn pushed_out(cells: &[TurnResults<(Vec<Nanos>, u64)>]) -> Option<bool> {
    let unmanaged =
        cells.iter().filter(|cell| cell.turn.level > 0 && cell.turn.arm == Arm::Unmanaged);
    let mut pauses = unmanaged.flat_map(|cell| &cell.blocks).peekable();
    pauses.peek()?;
    Some(pauses.all(|block| block.more.1 > 0))
}

fn pauses(cells: &[TurnResults<(Vec<Nanos>, u64)>]) -> Vec<WarmstartPause> {
    let all =
        cells.iter().flat_map(|cell| cell.blocks.iter().map(|block| (cell.turn.name(), block)));
    all.map(|(turn, block)| WarmstartPause {
        turn,
        first_ns: block.events.latencies_ns.first().copied().unwrap_or_default(),
        after_ns: block.more.0.iter().map(|time| time.0).collect(),
        page_ins: block.more.1,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{BenchFigures, parsed};
    use crate::fake::{FakeDriver, document};

    /// Simulates turns in which the first key after the pause takes `first`, the next one a second,
    /// and all others a millisecond.
    fn warmed(
        first: Option<Duration>,
        page_ins: u64,
    ) -> (MeasuredRepeats<Compared<Pauses>>, FakeDriver) {
        let mut driver = FakeDriver::answering(move |_, key| match key {
            KEYS_BEFORE => first,
            _ if key == KEYS_BEFORE + 1 => Some(Duration::from_secs(1)),
            _ => Some(Duration::from_millis(1)),
        });
        driver.page_ins_each_key(page_ins);
        let words = "--load 8 --memory 64M --pause 30s --managed --blocks 2";
        (parsed::<Warmstart>(words).run(&mut driver).expect("it is measured"), driver)
    }

    #[test]
    fn only_the_first_key_after_the_pause_counts() {
        let (measured, driver) = warmed(Some(Duration::from_millis(400)), 1);
        let figures = measured.figures.unmanaged.expect("it was measured");
        assert_eq!((figures.p50_ms, figures.max_ms, figures.n), (Some(400.0), Some(400.0), 2));
        let pause = &measured.figures.more.pauses[0];
        assert_eq!(
            (pause.first_ns, pause.after_ns.len(), pause.page_ins),
            (400_000_000, KEYS_AFTER, 11)
        );
        assert_eq!((pause.after_ns[0], pause.after_ns[1]), (1_000_000_000, 1_000_000));
        assert!(driver.slept(Duration::from_secs(30)) >= 6, "each turn has its pause");
        assert_eq!(measured.figures.more.pushed_out, Some(true));
        let text = Compared::text(&document(measured));
        let line = "load 8, managed: 22 page faults waited for a disk; after the first key, the longest latency was 1000.00 ms";
        assert!(
            text.contains(line) && text.contains("a pause of 30 s; 2 blocks; load big"),
            "{text}"
        );
    }

    #[test]
    fn an_unanswered_first_key_counts_as_the_timeout() {
        for late in [None, Some(Duration::from_secs(30))] {
            let figures = warmed(late, 1).0.figures.managed.expect("it was measured");
            assert_eq!((figures.p50_ms, figures.unanswered), (Some(20_000.0), 2), "{late:?}");
        }
    }

    #[test]
    fn a_load_that_evicts_nothing_is_reported() {
        let measured = warmed(Some(Duration::from_millis(1)), 0).0;
        assert_eq!(measured.figures.more.pushed_out, Some(false));
        assert!(Compared::text(&document(measured)).contains("the load pushed nothing out"));
        let calm = parsed::<Warmstart>("--load 0 --blocks 1");
        let calm = calm.run(&mut FakeDriver::answering(|_, _| Some(Duration::from_millis(1))));
        assert_eq!(
            calm.expect("it is measured").figures.more.pushed_out,
            None,
            "only a load can evict pages"
        );
    }
}
