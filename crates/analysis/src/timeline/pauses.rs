// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pauses of threads are known so far: each kind is found when first asked for.

use crate::timeline::waits::Signature;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tipme_record::Tid;

/// What interrupts a thread's work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pause {
    /// A wait for whatever comes next.
    Idle,
    /// A wait for a condition: others signal it when there is work.
    Condition,
    /// Either of them: nothing that somebody else's answer depends on.
    Rest,
    /// The event wait of a thread that takes input.
    EventWait,
    /// A time for which it could not go on, though it waited for nobody.
    HeldUp,
}

/// Per thread the numbers of the segments in which it pauses, found when first asked for.
pub(crate) type PauseIndex = RefCell<HashMap<(Tid, Pause), Rc<[u32]>>>;

/// The event waits of all threads that take display events; empty where none is known.
#[derive(Debug, Default)]
pub struct EventWaits(pub HashMap<Tid, HashSet<Signature>>);

impl EventWaits {
    /// Whether a thread has event waits of this kind; `None` where none of them is known.
    pub fn has(&self, tid: Tid, signature: Signature) -> Option<bool> {
        let known = self.0.get(&tid).filter(|known| !known.is_empty())?;
        Some(known.contains(&signature))
    }
}
