// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bounded number of detached threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts its running threads.
#[derive(Clone)]
pub struct Workers {
    busy: Arc<AtomicUsize>,
    max: usize,
}

impl Workers {
    pub fn new(max: usize) -> Workers {
        Workers { busy: Arc::default(), max }
    }

    /// Runs the work on a thread of its own. Returns `false`, without running it, if the maximum
    /// number of threads is reached.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let started = self.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| {
            (busy < self.max).then_some(busy + 1)
        });
        if started.is_ok() {
            let busy = Arc::clone(&self.busy);
            std::thread::spawn(move || {
                work();
                busy.fetch_sub(1, Ordering::Relaxed);
            });
        }
        started.is_ok()
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
