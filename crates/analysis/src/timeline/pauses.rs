// SPDX-License-Identifier: MIT OR Apache-2.0
//! Index of the pauses of threads; each kind is found on first use.

use crate::timeline::waits::Signature;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tipme_record::Tid;

/// Kind of pause in a thread's work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pause {
    /// A wait for unspecified further work.
    Idle,
    /// A wait for a condition that other threads signal when there is work.
    Condition,
    /// Either of the two: no other thread depends on its end.
    Rest,
    /// The event wait of a thread that receives input.
    EventWait,
    /// A delay of the thread itself, without a wait for another thread.
    HeldUp,
}

/// Segment indices of each kind of pause by thread, found on first use.
pub(crate) type PauseIndex = RefCell<HashMap<(Tid, Pause), Rc<[u32]>>>;

/// Event waits of all threads that receive display events; an empty set if none is known.
#[derive(Debug, Default)]
pub struct EventWaits(pub HashMap<Tid, HashSet<Signature>>);

impl EventWaits {
    /// Returns `true` if a thread has this event wait; `None` if it has no known one.
    pub fn has(&self, tid: Tid, signature: Signature) -> Option<bool> {
        let known = self.0.get(&tid).filter(|known| !known.is_empty())?;
        Some(known.contains(&signature))
    }
}
