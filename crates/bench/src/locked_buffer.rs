// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers for observations, fully allocated before the measurement, so that no allocation and no
//! page fault occurs while it runs.

use std::ffi::c_void;

/// A buffer of fixed capacity; values beyond it are counted as lost.
pub(crate) struct LockedBuffer<T> {
    items: Vec<T>,
    lost: u64,
    locked: bool,
}

impl<T: Copy> LockedBuffer<T> {
    /// Touches the memory for `capacity` values, and locks it if the user's limit allows that.
    pub(crate) fn new(capacity: usize, blank: T) -> LockedBuffer<T> {
        let mut items = Vec::with_capacity(capacity);
        items.resize(capacity, blank);
        let (start, length) = (items.as_mut_ptr().cast::<c_void>(), capacity * size_of::<T>());
        // SAFETY: the range is the vector's own memory, which does not move: it never grows.
        // Locking changes no byte.
        let locked = unsafe { rustix::mm::mlock(start, length) }.is_ok();
        items.clear();
        LockedBuffer { items, lost: 0, locked }
    }

    /// Stores a value; returns `false` if the buffer is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.items.len() < self.items.capacity() {
            self.items.push(value);
            return true;
        }
        self.lost += 1;
        false
    }

    /// Removes all values, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.lost = 0;
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns `true` if the memory cannot be paged out.
    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }
}

impl<T> Drop for LockedBuffer<T> {
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
        let mut buffer = LockedBuffer::new(2, 0_u64);
        let kept: Vec<bool> = (7..11).map(|value| buffer.push(value)).collect();
        assert_eq!(
            (kept, buffer.items(), buffer.lost()),
            (vec![true, true, false, false], &[7, 8][..], 2)
        );
        buffer.clear();
        assert!(buffer.push(1) && buffer.items() == [1] && buffer.lost() == 0);
    }
}
