// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bounded number of threads that nobody waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the threads that work for it.
#[derive(Clone)]
pub struct Workers {
    busy: Arc<AtomicUsize>,
    max: usize,
}

impl Workers {
    pub fn new(max: usize) -> Workers {
        Workers { busy: Arc::default(), max }
    }

    /// Does the work on a thread of its own; false, and it is not done, where as many as there may be are at work.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let more = |busy: usize| (busy < self.max).then_some(busy + 1);
        let free = self.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if free {
            let busy = Arc::clone(&self.busy);
            std::thread::spawn(move || {
                work();
                busy.fetch_sub(1, Ordering::Relaxed);
            });
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn there_are_no_more_threads_than_may_be() {
        let (workers, (begin, wait)) = (Workers::new(1), channel::<()>());
        assert!(workers.start(move || wait.recv().unwrap_or_default()));
        assert!(!workers.start(|| ()));
        drop(begin);
        while !workers.start(|| ()) {
            std::thread::yield_now();
        }
    }
}
