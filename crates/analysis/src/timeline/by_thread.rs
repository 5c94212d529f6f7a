// SPDX-License-Identifier: MIT OR Apache-2.0
//! Map from thread ids to values, indexed directly.

use tipme_record::Tid;

/// Limit for thread ids: the kernel's PID_MAX_LIMIT.
const TID_LIMIT: u32 = 1 << 22;

/// Map from threads to values in insertion order.
#[derive(Debug)]
pub(crate) struct ByThread<T> {
    /// Index into `entries` plus one, by tid.
    places: Vec<u32>,
    entries: Vec<(Tid, T)>,
}

impl<T> Default for ByThread<T> {
    fn default() -> ByThread<T> {
        ByThread { places: Vec::new(), entries: Vec::new() }
    }
}

impl<T> ByThread<T> {
    pub(crate) fn get(&self, tid: Tid) -> Option<&T> {
        let place = *self.places.get(tid.0 as usize)? as usize;
        self.entries.get(place.checked_sub(1)?).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, tid: Tid) -> Option<&mut T> {
        let place = *self.places.get(tid.0 as usize)? as usize;
        self.entries.get_mut(place.checked_sub(1)?).map(|(_, value)| value)
    }

    /// Returns the value of a thread and inserts it if there is none; `None` for the idle task and
    /// for ids beyond the kernel's limit.
    pub(crate) fn get_or_add(&mut self, tid: Tid, new: impl FnOnce() -> T) -> Option<&mut T> {
        let number = tid.0 as usize;
        if tid.0 == 0 || tid.0 >= TID_LIMIT {
            return None;
        }
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        if self.places[number] == 0 {
            self.entries.push((tid, new()));
            self.places[number] = self.entries.len() as u32;
        }
        self.entries.get_mut(self.places[number] as usize - 1).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tid, &T)> {
        self.entries.iter().map(|(tid, value)| (*tid, value))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_it_was_given_first() {
        let mut names = ByThread::default();
        for (tid, name) in [(7, "a"), (3, "b"), (7, "c")] {
            names.get_or_add(Tid(tid), || name);
        }
        assert_eq!(names.iter().collect::<Vec<_>>(), [(Tid(7), &"a"), (Tid(3), &"b")]);
        assert_eq!(
            (names.get(Tid(3)), names.get(Tid(4)), names.get(Tid(1 << 30))),
            (Some(&"b"), None, None)
        );
    }

    #[test]
    fn idle_and_impossible_numbers_have_nothing() {
        let mut names = ByThread::default();
        assert_eq!(names.get_or_add(Tid(0), || 1), None);
        assert_eq!(names.get_or_add(Tid(TID_LIMIT), || 1), None);
        assert_eq!(names.iter().count(), 0);
    }
}
