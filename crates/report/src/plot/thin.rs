// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits the number of points to the visible resolution without losing a maximum.

use super::page::PLOT_WIDTH;

/// Number of columns: one for each half pixel of the width, so that a plot can be magnified once.
pub(super) const COLUMNS: usize = 2 * PLOT_WIDTH as usize;

/// Returns the column of a share of the width.
pub(super) fn column(share: f64) -> usize {
    // A cast from a float saturates at the bounds of the integer and turns NaN into 0.
    ((share * COLUMNS as f64) as usize).min(COLUMNS - 1)
}

/// Thins the points of a curve that never falls, from left to right: the first and the last of each
/// column stay.
///
/// The first is the lowest and the last the highest of its column, so the curve keeps its outline.
pub(super) fn rising(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let (mut at, mut many) = (usize::MAX, false);
    for point in points {
        let next = column(point.0);
        if next == at && many {
            kept.pop();
        }
        many = next == at;
        at = next;
        kept.push(point);
    }
    kept
}

/// Highest value of each column, in order of the columns.
pub(super) struct Highest(Vec<Option<(f64, f64)>>);

impl Highest {
    pub(super) fn new() -> Highest {
        Highest(vec![None; COLUMNS])
    }

    /// Adds a value at a share of the width.
    pub(super) fn add(&mut self, share: f64, value: f64) {
        let slot = &mut self.0[column(share)];
        if slot.is_none_or(|(_, known)| known < value) {
            *slot = Some((share, value));
        }
    }

    /// Returns share and value of the highest point in each column.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.0.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_curve_keeps_its_ends_and_is_bounded() {
        let points: Vec<(f64, f64)> =
            (0..1_000_000).map(|index| (index as f64 / 1e6, index as f64)).collect();
        let kept = rising(points.iter().copied());
        assert!(kept.len() <= 2 * COLUMNS && kept.len() > COLUMNS);
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        let few = vec![(0.0, 1.0), (0.0, 2.0), (0.5, 3.0)];
        assert_eq!(rising(few.iter().copied()), few);
        assert_eq!(rising((1..=5).map(|value| (0.3, f64::from(value)))), [(0.3, 1.0), (0.3, 5.0)]);
    }

    #[test]
    fn the_highest_of_a_column_stays() {
        let mut highest = Highest::new();
        (0..100_000).for_each(|index| highest.add(index as f64 / 1e5, f64::from(index % 977)));
        highest.add(0.5, 5_000.0);
        assert!(highest.points().count() <= COLUMNS);
        assert_eq!(highest.points().map(|point| point.1).fold(0.0, f64::max), 5_000.0);
        highest.add(f64::NAN, 1e9);
        highest.add(7.0, 1e9);
        assert_eq!(highest.points().filter(|point| point.1 == 1e9).count(), 2);
    }
}
