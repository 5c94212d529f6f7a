// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pauses of threads are known so far: each is found when first asked for.

use crate::timeline::waits::{Signature, signature};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tipme_record::Tid;
use tipme_record::records::Wait;

/// What ends a stretch of a thread's work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pause {
    /// A wait for whatever comes next.
    Idle,
    /// The same, or a wait for a condition: nothing that somebody else's answer depends on.
    Rest,
    /// The event wait of a thread that takes input.
    Home,
}

/// Per thread the numbers of the segments in which it pauses, found when first asked for.
pub type PauseIndex = RefCell<HashMap<(Tid, Pause), Rc<[u32]>>>;

/// The home waits of all threads that take display events; empty where none is known.
#[derive(Debug, Default)]
pub struct Homes(pub HashMap<Tid, HashSet<Signature>>);

impl Homes {
    /// Whether a wait is one of its thread's home waits; `None` where none of them is known.
    pub fn has(&self, wait: &Wait) -> Option<bool> {
        let known = self.0.get(&wait.head.tid).filter(|known| !known.is_empty())?;
        Some(known.contains(&signature(wait)))
    }
}
