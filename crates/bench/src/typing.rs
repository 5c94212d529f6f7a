// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keystroke-to-echo latency in a terminal beside a load.
//!
//! The steady typing of Evans et al. (1993, section 5.2): a person types at a human pace into a
//! terminal, and its program answers each key with its letter. Display server, terminal and program
//! start like any others, and only the arm favours them; the typing and watching threads have
//! real-time priority if allowed. Each key is pressed once the previous one is on the screen, as by
//! a user watching it. So a long stall counts once, and a drawing can only be mistaken for the
//! answer to a later key after a key that timed out.

mod options;

pub use options::Typing;

use crate::arms::{
    ArmComparison, ArmDetails, ArmScale, ArmTerms, Block, Compared, all_turns, load_words,
    turns_words,
};
use crate::driver::{BenchDriver, BenchStage, Habits, QUIET};
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::load::LoadKind;
use crate::typist::{
    ANSWER_TIMEOUT, INTERVAL, WORDS_PER_MINUTE, echo_programs, events, letters, nanos, open_echo,
    type_and_look,
};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use tipme_desktop::inject::Pace;
use tipme_measure::{InputClass, ThresholdProfile};

/// Class of the events.
const CLASS: &str = "key";
const TITLE: &str = "Typing beside a load: keystroke-to-echo latency in a terminal";
/// Threshold in the paper: "character echoing should happen within 50 milliseconds".
const PAPER_PROTOTYPE_MS: f64 = 50.0;
/// Uncounted keys at the start of a block, which wake up sleeping parts.
const FIRST_KEYS: usize = 3;
/// Maximum time of a block beyond that of its keys; remaining keys are not typed.
const BLOCK_SPARE: Duration = Duration::from_secs(60);

/// Figures of this benchmark only.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Keys {
    /// Minimum time between two keys.
    pub interval_ms: u64,
    pub keys_per_block: usize,
    /// Description of the display.
    pub display: String,
    /// Keys that were not typed for lack of time.
    pub untyped: usize,
}

impl Experiment for Typing {
    const NAME: &'static str = "typing";
    const CLASSES: &'static [&'static str] = &[CLASS];
    type Figures = Compared<Keys>;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        let comparison = self.beside.comparison(driver.programs(), LoadKind::Cpu);
        let keys_per_block = self.keys_per_block(&comparison);
        driver.line(&self.plan(&comparison));
        comparison.check()?;
        let mut stage =
            driver.stage(&self.display, self.beside.session(), echo_programs(&self.display))?;
        open_echo(&mut *stage)?;
        let (time, mut seed) = (time_per_block(keys_per_block) + BLOCK_SPARE, 0);
        let cells = all_turns(&comparison, &mut *stage, time, &mut |stage| {
            seed += 1;
            type_keys(stage, keys_per_block, seed, time)
        })?;
        let untyped = cells.iter().flat_map(|cell| &cell.blocks).map(|block| block.more).sum();
        let (interval_ms, display) = (INTERVAL.as_millis() as u64, self.display.about());
        let more = Keys { interval_ms, keys_per_block, display, untyped };
        Ok(Compared::measured(TITLE, &comparison, cells, more))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.beside.files.paths()
    }
}

impl Typing {
    fn keys_per_block(&self, comparison: &ArmComparison) -> usize {
        usize::from(self.keys).div_ceil(comparison.blocks.max(1))
    }

    /// Describes the expected duration, for output before the start.
    fn plan(&self, comparison: &ArmComparison) -> String {
        let keys = self.keys_per_block(comparison);
        let usual = comparison.usual_words(QUIET + time_per_block(keys));
        format!("{}; {keys} keys each; {usual}", turns_words(comparison))
    }
}

fn time_per_block(keys: usize) -> Duration {
    INTERVAL * (keys + FIRST_KEYS) as u32
}

impl ArmDetails for Keys {
    const TERMS: ArmTerms = ArmTerms {
        heading: "typing",
        quantity: "the delay",
        scale: ArmScale::Latency,
        paper: &[
            "Evans et al. (1993), figure 2, on a machine of its time: with their prototype about 0.05 s at any load",
            "average from 0 to 20; without it 0.1 s at a small load, 1 s and then 10 s as it grew",
        ],
        line_ms: Some(PAPER_PROTOTYPE_MS),
    };

    fn bounds(figures: &Compared<Keys>) -> Vec<String> {
        let Keys { keys_per_block, interval_ms, display, .. } = &figures.more;
        vec![format!(
            "{keys_per_block} keys in each turn, {interval_ms} ms apart, on {display}; {}",
            load_words(figures)
        )]
    }
}

/// Types the keys of one turn; returns the number of keys not typed for lack of time too.
fn type_keys(
    stage: &mut dyn BenchStage,
    keys: usize,
    seed: u64,
    time: Duration,
) -> Result<Block<usize>> {
    let pace = Pace { words_per_minute: WORDS_PER_MINUTE, seed, ..Pace::default() };
    let mut user = stage.user(Habits::at_terminal(pace))?;
    let end = user.now().after(nanos(time.saturating_sub(ANSWER_TIMEOUT)));
    let (mut pressed, mut before) = (Vec::new(), None);
    for letter in letters().take(keys + FIRST_KEYS) {
        if user.now() >= end {
            break;
        }
        if pressed.len() == FIRST_KEYS {
            before = user.run_queue_delay();
        }
        pressed.push(type_and_look(&mut *user, letter)?.0);
    }
    let waited =
        before.zip(user.run_queue_delay()).and_then(|(before, after)| after.checked_sub(before));
    let drawn = user.drawings()?;
    let counted = pressed.get(FIRST_KEYS..).unwrap_or_default();
    let events =
        events(CLASS, Some(InputClass::Key.limits(ThresholdProfile::Default)), counted, &drawn);
    Ok(Block { events, waited, more: keys.saturating_sub(counted.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::{Arm, ArmFigures};
    use crate::experiment::{BenchFigures, parsed};
    use crate::fake::{FakeDriver, document};

    fn measured(words: &str, driver: &mut FakeDriver) -> MeasuredRepeats<Compared<Keys>> {
        parsed::<Typing>(words).run(driver).expect("it is measured")
    }

    fn median(figures: Option<ArmFigures>) -> Option<f64> {
        figures?.p50_ms
    }

    #[test]
    fn each_arm_has_the_times_that_its_turns_took() {
        let mut driver = FakeDriver::answering(|turn, _| match turn.arm {
            Some(Arm::Managed) => Some(Duration::from_millis(2)),
            _ if turn.level > 0 => Some(Duration::from_millis(80)),
            _ => Some(Duration::from_millis(1)),
        });
        let measured = measured("--load 20 --keys 200 --blocks 2 --managed", &mut driver);
        let figures = &measured.figures;
        assert_eq!((median(figures.unloaded), median(figures.unmanaged)), (Some(1.0), Some(80.0)));
        assert_eq!((median(figures.managed), figures.more.untyped), (Some(2.0), 0));
        // A tenth of the time from key to key.
        let waited: Vec<u64> = figures
            .arms
            .iter()
            .filter_map(|row| Some(row.run_queue_delay_ms?.round() as u64))
            .collect();
        assert_eq!(waited, [10, 18, 10]);
        let calm = "unloaded".to_owned();
        let forth = [calm.clone(), "load 20, unmanaged".to_owned(), "load 20, managed".to_owned()];
        let back = forth.iter().rev().cloned().collect::<Vec<String>>();
        assert_eq!(
            driver.turns(),
            [&forth[..], &back].concat(),
            "arms have their turns forth and back"
        );
        let text = Compared::text(&document(measured));
        assert!(text.contains("load 20, managed          200      2.00      2.00"), "{text}");
        assert!(text.contains("100 ms apart, on a private display; 2 blocks; load cpu"), "{text}");
    }

    #[test]
    fn late_answers_count_as_late_and_missing_ones_are_shown() {
        for missing in [None, Some(Duration::from_secs(25))] {
            let mut driver = FakeDriver::answering(move |_, key| match key {
                4 => Some(Duration::from_secs(7)),
                5 => missing,
                _ => Some(Duration::from_millis(1)),
            });
            let measured = measured("--load 0 --keys 10 --blocks 1", &mut driver);
            let events = &measured.runs[0].classes[0];
            let ms: Vec<u64> = events.latencies_ns.iter().map(|ns| ns / 1_000_000).collect();
            assert_eq!(ms, [1, 7_000, 20_000, 1, 1, 1, 1, 1, 1, 1], "{missing:?}");
            assert_eq!((events.censored, measured.figures.more.untyped), (1, 0));
            let text = Compared::text(&document(measured));
            assert!(text.contains("(1 not answered in time)"), "{text}");
        }
    }

    #[test]
    fn keys_without_time_are_counted() {
        let mut driver = FakeDriver::answering(|_, _| Some(Duration::from_secs(10)));
        let figures = measured("--load 0 --keys 10 --blocks 1", &mut driver).figures;
        let typed = figures.unloaded.map_or(0, |figures| figures.n);
        assert!(
            typed > 0 && typed + figures.more.untyped == 10,
            "{typed}, {}",
            figures.more.untyped
        );
    }

    #[test]
    fn it_ends_where_it_is_interrupted() {
        let mut driver = FakeDriver::answering(|_, _| Some(Duration::from_millis(1)));
        driver.interrupt_at_key(5);
        let ended = parsed::<Typing>("--load 0 --keys 10 --blocks 1").run(&mut driver);
        assert!(ended.is_err_and(|error| error.to_string().contains("interrupted")));
    }
}
