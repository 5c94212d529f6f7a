// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preallocated samples of a thread: no allocation and no page fault occurs while it measures.

use rustix::mm::{mlock, munlock};

/// Deadlines and wakeups, up to the reserved number.
pub(super) struct Samples {
    pairs: Vec<(u64, u64)>,
    locked: bool,
}

impl Samples {
    /// Touches all of the memory, and locks it if allowed.
    pub(super) fn reserve(count: usize) -> Samples {
        let mut pairs = vec![(u64::MAX, u64::MAX); count];
        pairs.clear();
        let mut samples = Samples { pairs, locked: false };
        let (start, bytes) = samples.memory();
        // SAFETY: the memory belongs to the vector, which is not moved or grown while it is locked;
        // locking changes none of its bytes.
        samples.locked = unsafe { mlock(start, bytes) }.is_ok();
        samples
    }

    fn memory(&mut self) -> (*mut std::ffi::c_void, usize) {
        (self.pairs.as_mut_ptr().cast(), self.pairs.capacity() * size_of::<(u64, u64)>())
    }

    /// Returns `true` if the memory cannot be paged out.
    pub(super) fn is_locked(&self) -> bool {
        self.locked
    }

    /// Adds a sample; without room it is omitted, and missing in the end.
    pub(super) fn push(&mut self, deadline: u64, now: u64) {
        if self.pairs.len() < self.pairs.capacity() {
            self.pairs.push((deadline, now));
        }
    }

    /// Removes all samples, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Deadlines and wakeups in order of time.
    pub(super) fn pairs(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.pairs.iter().copied()
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        let (start, bytes) = self.memory();
        if self.locked {
            // SAFETY: the memory still belongs to the vector; unlocking changes none of its bytes.
            let _ = unsafe { munlock(start, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_left_out() {
        let mut samples = Samples::reserve(2);
        let room = samples.pairs.capacity();
        (0..10).for_each(|number| samples.push(number, number + 1));
        assert_eq!(samples.pairs().collect::<Vec<_>>()[..2], [(0, 1), (1, 2)]);
        assert_eq!((samples.pairs().len(), samples.pairs.capacity()), (room, room));
        samples.clear();
        assert_eq!(samples.pairs().len(), 0);
    }
}
