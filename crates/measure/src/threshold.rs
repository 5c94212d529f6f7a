// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency thresholds: classes of interactions and their limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MILLI: u64 = 1_000_000;

/// Kind of answer that the user waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InputClass {
    /// Pointer motion and dragging.
    Motion,
    /// The view follows a scroll.
    Scroll,
    /// A key and its echo.
    Key,
    /// A click and its visible feedback.
    Click,
    /// A menu, tab or small dialog opens.
    Menu,
    /// A window opens, or a page is redrawn.
    Window,
    /// An application starts or a document opens.
    Start,
    /// Saving, printing and other heavy commands.
    Command,
}

/// Set of thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ThresholdProfile {
    /// Latencies that most people accept.
    #[default]
    Default,
    /// Latencies that practised people notice.
    Strict,
}

impl ThresholdProfile {
    pub const ALL: [ThresholdProfile; 2] = [ThresholdProfile::Default, ThresholdProfile::Strict];

    /// Returns the name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            ThresholdProfile::Default => "default",
            ThresholdProfile::Strict => "strict",
        }
    }

    /// Returns the description for help.
    pub fn about(self) -> &'static str {
        match self {
            ThresholdProfile::Default => "What most people accept",
            ThresholdProfile::Strict => "What experienced users notice",
        }
    }
}

/// Limits of a class, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassLimits {
    /// Longer latencies are noticed.
    pub threshold: u64,
    /// Longer latencies frustrate.
    pub frustrated: u64,
}

/// Class, threshold, strict threshold and limit of frustration, in milliseconds.
const TABLE: [(InputClass, u64, u64, u64); 8] = [
    (InputClass::Motion, 50, 25, 200),
    (InputClass::Scroll, 50, 25, 200),
    (InputClass::Key, 100, 50, 400),
    (InputClass::Click, 100, 85, 500),
    (InputClass::Menu, 200, 150, 1_000),
    (InputClass::Window, 1_000, 500, 2_000),
    (InputClass::Start, 2_000, 1_000, 5_000),
    (InputClass::Command, 4_000, 2_000, 10_000),
];

impl InputClass {
    /// All classes, in ascending order of their limits.
    pub const ALL: [InputClass; 8] = [
        InputClass::Motion,
        InputClass::Scroll,
        InputClass::Key,
        InputClass::Click,
        InputClass::Menu,
        InputClass::Window,
        InputClass::Start,
        InputClass::Command,
    ];

    /// Returns the name in files, scripts and results.
    pub fn name(self) -> &'static str {
        match self {
            InputClass::Motion => "motion",
            InputClass::Scroll => "scroll",
            InputClass::Key => "key",
            InputClass::Click => "click",
            InputClass::Menu => "menu",
            InputClass::Window => "window",
            InputClass::Start => "start",
            InputClass::Command => "command",
        }
    }

    /// Returns the class of this name.
    pub fn named(name: &str) -> Option<InputClass> {
        InputClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Returns the limits of this class in a profile.
    pub fn limits(self, profile: ThresholdProfile) -> ClassLimits {
        let (_, threshold, strict, frustrated) = TABLE[self as usize];
        let threshold = if profile == ThresholdProfile::Strict { strict } else { threshold };
        ClassLimits { threshold: threshold * MILLI, frustrated: frustrated * MILLI }
    }

    /// Returns `true` if the first drawing is the feedback; a window, page or document is complete
    /// with the last one.
    pub(crate) fn ends_with_first_drawing(self) -> bool {
        matches!(
            self,
            InputClass::Motion | InputClass::Scroll | InputClass::Key | InputClass::Click
        )
    }
}

/// Returns `true` if the automatic mark should fire: a latency is unacceptable given `n` earlier
/// observations of the same class and application with this 98th percentile.
///
/// With at least fifty observations it must exceed the threshold and three times their 98th
/// percentile; with fewer it must exceed the limit of frustration.
pub(crate) fn exceeds_habit(latency: u64, limits: ClassLimits, n: u64, p98: Option<u64>) -> bool {
    match p98 {
        Some(p98) if n >= 50 => latency > limits.threshold && latency > p98.saturating_mul(3),
        _ => latency > limits.frustrated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_by_its_name() {
        for class in InputClass::ALL {
            assert_eq!(InputClass::named(class.name()), Some(class));
        }
        assert_eq!(InputClass::named("Key"), None);
    }

    #[test]
    fn the_table_is_in_the_order_of_the_classes() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
        }
    }

    #[test]
    fn profiles_differ_in_the_threshold_only() {
        let (default, strict) = (
            InputClass::Key.limits(ThresholdProfile::Default),
            InputClass::Key.limits(ThresholdProfile::Strict),
        );
        assert_eq!((default.threshold, strict.threshold), (100 * MILLI, 50 * MILLI));
        assert_eq!(default.frustrated, strict.frustrated);
    }

    #[test]
    fn habit_decides_after_fifty_observations() {
        let limits = InputClass::Key.limits(ThresholdProfile::Default);
        for (n, p98_ms, most_ms) in [(49, Some(20), 400), (50, Some(50), 150), (50, None, 400)] {
            let p98 = p98_ms.map(|ms: u64| ms * MILLI);
            assert!(!exceeds_habit(most_ms * MILLI, limits, n, p98));
            assert!(exceeds_habit((most_ms + 1) * MILLI, limits, n, p98));
        }
    }
}
