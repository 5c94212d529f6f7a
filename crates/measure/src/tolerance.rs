// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tolerance of a user, learned from feedback.
//!
//! The baseline decides what is unusually long (`exceeds_habit`). Marks, and answers to automatic
//! marks, shift those limits for one class of one application. They go down by a step for a mark of
//! a latency within the limits, and for "it was this". They go up by a step for "something else",
//! for a removal, and for several unanswered marks in a row. Four steps halve or double the limits,
//! which is the maximum either way.

use crate::threshold::{ClassLimits, exceeds_habit};
use serde::{Deserialize, Serialize};

/// Limits at each level, the lowest first, in percent of the usual ones: four steps per doubling.
const PERCENT: [u64; 9] = [50, 59, 71, 84, 100, 119, 141, 168, 200];

const LEVEL_MAX: i8 = 4;

/// Number of consecutive unanswered marks that count as one unwanted mark.
const UNANSWERED_MAX: u8 = 5;

/// Feedback of the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PersonSaid {
    /// Marked although the limits were not exceeded.
    Bad,
    /// Confirmed an automatic mark: "it was this".
    Right,
    /// Rejected an automatic mark ("not this"), or removed it.
    Wrong,
    /// No answer so far: the automatic mark was just made.
    Nothing,
}

/// Learned limits relative to the usual ones, with counts of the feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tolerance {
    level: i8,
    unanswered: u8,
    pub bad: u32,
    pub right: u32,
    pub wrong: u32,
    pub ignored: u32,
}

impl Tolerance {
    /// Applies feedback.
    pub fn hear(&mut self, said: PersonSaid) {
        let (step, count) = match said {
            PersonSaid::Bad => (-1, &mut self.bad),
            PersonSaid::Right => (-1, &mut self.right),
            PersonSaid::Wrong => (1, &mut self.wrong),
            PersonSaid::Nothing if self.unanswered + 1 < UNANSWERED_MAX => {
                self.unanswered += 1;
                return;
            }
            PersonSaid::Nothing => (1, &mut self.ignored),
        };
        *count = count.saturating_add(1);
        self.unanswered = 0;
        self.level = self.level.saturating_add(step).clamp(-LEVEL_MAX, LEVEL_MAX);
    }

    /// Returns the limits in percent of the usual ones.
    pub fn percent(&self) -> u64 {
        usize::try_from(self.level + LEVEL_MAX)
            .ok()
            .and_then(|at| PERCENT.get(at))
            .copied()
            .unwrap_or(100)
    }

    /// Returns `true` if a latency is unacceptable: it exceeds the scaled limits.
    pub fn is_exceeded(&self, latency: u64, limits: ClassLimits, n: u64, p98: Option<u64>) -> bool {
        let scaled = u128::from(latency) * 100 / u128::from(self.percent());
        exceeds_habit(u64::try_from(scaled).unwrap_or(u64::MAX), limits, n, p98)
    }

    /// Returns `true` if this can result from feedback.
    pub fn is_bounded(&self) -> bool {
        self.level.unsigned_abs() <= LEVEL_MAX.unsigned_abs() && self.unanswered < UNANSWERED_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputClass, ThresholdProfile};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn after(said: &[PersonSaid]) -> Tolerance {
        let mut tolerance = Tolerance::default();
        said.iter().for_each(|said| tolerance.hear(*said));
        tolerance
    }

    fn exceeds(tolerance: &Tolerance, ms: u64) -> bool {
        let limits = InputClass::Key.limits(ThresholdProfile::Default);
        tolerance.is_exceeded(ms * MS, limits, 50, Some(50 * MS))
    }

    #[test]
    fn marks_and_consent_tighten_the_limits_up_to_a_half() {
        let usual = after(&[]);
        assert_eq!(
            (usual.percent(), exceeds(&usual, 150), exceeds(&usual, 151)),
            (100, false, true)
        );
        let tighter = after(&[PersonSaid::Bad, PersonSaid::Right]);
        assert_eq!(
            (tighter.percent(), exceeds(&tighter, 106), exceeds(&tighter, 108)),
            (71, false, true)
        );
        assert_eq!(after(&[PersonSaid::Bad; 100]).percent(), 50);
    }

    #[test]
    fn denials_and_silence_widen_them_up_to_twice() {
        assert_eq!(after(&[PersonSaid::Wrong]).percent(), 119);
        assert_eq!(
            (
                after(&[PersonSaid::Nothing; 4]).percent(),
                after(&[PersonSaid::Nothing; 5]).percent()
            ),
            (100, 119)
        );
        let answered =
            [[PersonSaid::Nothing; 4].as_slice(), &[PersonSaid::Wrong], &[PersonSaid::Nothing; 4]]
                .concat();
        assert_eq!(after(&answered).percent(), 119, "an answer begins the count again");
        let wider = after(&[PersonSaid::Wrong; 100]);
        assert_eq!(
            (wider.percent(), exceeds(&wider, 300), exceeds(&wider, 303)),
            (200, false, true)
        );
    }

    proptest! {
        #[test]
        fn any_feedback_keeps_the_bounds(
            said in proptest::collection::vec(
                proptest::sample::select(vec![
                    PersonSaid::Bad, PersonSaid::Right, PersonSaid::Wrong, PersonSaid::Nothing,
                ]),
                0..60,
            ),
            latency in any::<u64>(),
        ) {
            let tolerance = after(&said);
            prop_assert!(tolerance.is_bounded() && (50..=200).contains(&tolerance.percent()));
            let _ = exceeds(&tolerance, latency / MS);
        }
    }
}
