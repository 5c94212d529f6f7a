// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contended locks inside the kernel: the stack of a sleeping thread does not show the lock
//! functions, but the kernel traces the begin and end of such a wait.

use crate::timeline::threads::Span;
use tipme_record::Tid;
use tipme_record::records::Lock;

/// Waits for sleeping kernel locks, by thread and end.
#[derive(Debug, Default)]
pub struct Contention {
    sorted: Vec<Lock>,
}

/// Flag of a contended spinlock.
const SPIN: u32 = 1;

impl Contention {
    /// Keeps the waits that sleep.
    pub fn new(mut locks: Vec<Lock>) -> Contention {
        locks.retain(|lock| lock.flags & SPIN == 0);
        locks.sort_by_key(|lock| (lock.head.tid, lock.head.ts));
        Contention { sorted: locks }
    }

    /// Returns `true` if a blocked segment lies within a wait for a lock. The waiter records the
    /// end once it runs again.
    pub fn covers(&self, span: &Span) -> bool {
        self.next(span.tid, span).is_some_and(|lock| lock.head.ts.before(lock.nanos) <= span.start)
    }

    /// Returns the first wait of a thread that ends after a segment.
    fn next(&self, tid: Tid, span: &Span) -> Option<&Lock> {
        let first =
            self.sorted.partition_point(|lock| (lock.head.tid, lock.head.ts) < (tid, span.end));
        self.sorted.get(first).filter(|lock| lock.head.tid == tid)
    }
}
