// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers for observations, fully allocated before the measurement: a page fault would be a gap.

use std::ffi::c_void;

/// Number of long gaps that are kept once the buffer is full.
const LONGEST: usize = 64;

/// A buffer of fixed capacity; values beyond it are counted as lost.
pub(super) struct Buffer<T> {
    items: Vec<T>,
    lost: u64,
    locked: bool,
}

impl<T: Copy> Buffer<T> {
    /// Touches the memory for `capacity` values, and locks it if the user's limit allows that.
    pub(super) fn new(capacity: usize, blank: T) -> Buffer<T> {
        let mut items = Vec::with_capacity(capacity);
        items.resize(capacity, blank);
        let (start, length) = (items.as_mut_ptr().cast::<c_void>(), capacity * size_of::<T>());
        // SAFETY: the range is the vector's own memory, which does not move: it never grows.
        // Locking changes no byte.
        let locked = unsafe { rustix::mm::mlock(start, length) }.is_ok();
        items.clear();
        Buffer { items, lost: 0, locked }
    }

    /// Stores a value; returns `false` if the buffer is full.
    #[inline(always)]
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.items.len() < self.items.capacity() {
            self.items.push(value);
            return true;
        }
        self.lost += 1;
        false
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn is_locked(&self) -> bool {
        self.locked
    }
}

/// The longest gaps that had no room in a buffer: start and length of each, in ticks.
pub(super) struct LongGaps {
    kept: [(u64, u64); LONGEST],
    shortest: usize,
}

impl LongGaps {
    pub(super) fn new() -> LongGaps {
        LongGaps { kept: [(0, 0); LONGEST], shortest: 0 }
    }

    /// Replaces the shortest gap if the new one is longer. Returns the length of the gap that is
    /// dropped.
    pub(super) fn exchange(&mut self, gap: (u64, u64)) -> u64 {
        if gap.1 <= self.kept[self.shortest].1 {
            return gap.1;
        }
        let gone = std::mem::replace(&mut self.kept[self.shortest], gap);
        self.shortest = (0..LONGEST).min_by_key(|at| self.kept[*at].1).unwrap_or_default();
        gone.1
    }

    /// Gaps in order of time.
    pub(super) fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps: Vec<(u64, u64)> = self.kept.iter().copied().filter(|gap| gap.1 > 0).collect();
        gaps.sort_unstable();
        gaps
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.locked {
            let length = self.items.capacity() * size_of::<T>();
            // SAFETY: the same range as was locked. The pages may hold other values too, which stay
            // as they are.
            let _ =
                unsafe { rustix::mm::munlock(self.items.as_mut_ptr().cast::<c_void>(), length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut buffer = Buffer::new(2, 0_u64);
        let kept: Vec<bool> = (7..11).map(|value| buffer.push(value)).collect();
        assert_eq!(
            (kept, buffer.items(), buffer.lost()),
            (vec![true, true, false, false], &[7, 8][..], 2)
        );
    }

    #[test]
    fn the_longest_stay_and_the_time_of_the_others_is_told() {
        let mut longest = LongGaps::new();
        let gone: u64 = (1..=100).map(|at| longest.exchange((at, 1_000 * (at % 10) + at))).sum();
        let kept = longest.gaps();
        assert_eq!(kept.len(), LONGEST);
        assert!(kept.is_sorted() && kept.iter().all(|gap| gap.1 > 3_000), "{kept:?}");
        let all: u64 = (1..=100).map(|at| 1_000 * (at % 10) + at).sum();
        assert_eq!(gone + kept.iter().map(|gap| gap.1).sum::<u64>(), all);
    }
}
