// SPDX-License-Identifier: MIT OR Apache-2.0
//! Baseline of an interaction: the others of its kind in the window, or the summary learned by the
//! recorder.

use crate::join::answer::Milestone;
use crate::model::Baseline;
use tipme_measure::{Share, Summary, ms};
use tipme_record::Nanos;
use tipme_record::incident::StoredBaseline;

/// Minimum number of other interactions in the window to prefer them to the stored summary.
const WINDOW_MIN: usize = 5;

/// Baseline and its source.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Usual {
    /// Other interactions of the window, exact.
    Window(Summary),
    /// The recorder's summary of this class and application, coarse.
    Stored(StoredBaseline),
}

impl Usual {
    /// Chooses the interactions of the window if there are enough, or else the stored summary of
    /// the same milestone if it has more observations.
    pub(crate) fn of(
        others: Summary,
        stored: &[StoredBaseline],
        what: (Milestone, &str, &str),
    ) -> Usual {
        let (milestone, class, application) = what;
        let known = stored
            .iter()
            .find(|known| {
                known.milestone() == milestone.name()
                    && known.class == class
                    && known.application == application
            })
            .filter(|known| known.n > others.n() as u64);
        match known {
            Some(known) if others.n() < WINDOW_MIN => Usual::Stored(known.clone()),
            _ => Usual::Window(others),
        }
    }

    /// Returns the number of observations.
    pub(crate) fn n(&self) -> usize {
        match self {
            Usual::Window(summary) => summary.n(),
            Usual::Stored(stored) => usize::try_from(stored.n).unwrap_or(usize::MAX),
        }
    }

    /// Returns the median of any number of observations; zero if there are none.
    pub(crate) fn median(&self) -> Nanos {
        match self {
            Usual::Window(summary) => Nanos(summary.value(Share::P50).unwrap_or(0)),
            Usual::Stored(stored) => Nanos(stored.p50_ns),
        }
    }

    /// Converts to the baseline of the verdict; returns `None` if there are no observations.
    pub(crate) fn baseline(&self) -> Option<Baseline> {
        let n = self.n();
        match self {
            Usual::Window(summary) => Some(Baseline {
                n,
                p50_ms: summary.shown(Share::P50).map(ms),
                p98_ms: summary.shown(Share::P98).map(ms),
                max_ms: ms(summary.max()?),
                stored: false,
            }),
            Usual::Stored(stored) => Some(Baseline {
                n,
                p50_ms: Share::P50.is_shown(n).then(|| ms(stored.p50_ns)),
                p98_ms: Share::P98.is_shown(n).then(|| ms(stored.p98_ns)),
                max_ms: ms(stored.max_ns),
                stored: true,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn stored(class: &str, application: &str, n: u64) -> StoredBaseline {
        let (class, application) = (class.to_owned(), application.to_owned());
        let milestone = String::new();
        StoredBaseline {
            class,
            application,
            milestone,
            n,
            p50_ns: 2 * MS,
            p98_ns: 14 * MS,
            max_ns: 40 * MS,
        }
    }

    fn of(window: usize, stored: &[StoredBaseline]) -> Usual {
        Usual::of(Summary::new(vec![MS; window]), stored, (Milestone::Response, "key", "xterm"))
    }

    #[test]
    fn enough_others_of_the_window_count_more() {
        let known = [stored("key", "xterm", 3_000)];
        assert!(matches!(of(5, &known), Usual::Window(_)));
        assert_eq!(of(4, &known), Usual::Stored(known[0].clone()));
        assert_eq!(of(0, &known).median(), Nanos(2 * MS));
    }

    #[test]
    fn another_class_or_application_says_nothing() {
        for known in [
            stored("click", "xterm", 3_000),
            stored("key", "gedit", 3_000),
            stored("key", "xterm", 2),
        ] {
            assert!(matches!(of(3, &[known]), Usual::Window(_)));
        }
        assert_eq!(of(0, &[]).baseline(), None);
    }

    #[test]
    fn another_milestone_says_nothing() {
        let handled =
            StoredBaseline { milestone: "handled".to_owned(), ..stored("key", "xterm", 3_000) };
        let known =
            [handled.clone(), StoredBaseline { p50_ns: MS, ..stored("key", "xterm", 3_000) }];
        let of =
            |milestone| Usual::of(Summary::new(Vec::new()), &known, (milestone, "key", "xterm"));
        assert_eq!(of(Milestone::Response).median(), Nanos(MS));
        assert_eq!(of(Milestone::Handled), Usual::Stored(handled));
        assert_eq!(of(Milestone::Completed).n(), 0);
    }

    #[test]
    fn percentiles_are_shown_with_enough_observations() {
        let shown = |n| {
            of(0, &[stored("key", "xterm", n)])
                .baseline()
                .map(|one| (one.p50_ms, one.p98_ms, one.stored))
        };
        assert_eq!(shown(9), Some((None, None, true)));
        assert_eq!(shown(10), Some((Some(2.0), None, true)));
        assert_eq!(shown(250), Some((Some(2.0), Some(14.0), true)));
    }
}
