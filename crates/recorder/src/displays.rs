// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which X servers there are, and the opcodes that they gave to their extensions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tipme_desktop::{DisplayTarget, server};
use tipme_record::incident::Display;

/// How long one server may take to answer; a hung server must not hold up an incident.
const TIMEOUT: Duration = Duration::from_millis(150);

/// How long all of them may take together: anybody can offer a display that does not answer.
const TIMEOUT_FOR_ALL: Duration = Duration::from_secs(2);

/// The displays known so far. Servers are asked at the start and when an incident is sealed.
#[derive(Clone, Default)]
pub(crate) struct Displays(Arc<Mutex<Vec<Display>>>);

impl Displays {
    /// Asks all servers: a new process may have taken the place of one that is known.
    pub(crate) fn refresh(&self) -> Vec<Display> {
        let known = self.known();
        let until = Instant::now() + TIMEOUT_FOR_ALL;
        let found = server::find().into_iter().filter_map(|display| look(&known, display, until));
        let found: Vec<Display> = found.collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found.clone();
        found
    }

    /// What the last look found.
    pub(crate) fn known(&self) -> Vec<Display> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A server that does not answer in time keeps what was known of it.
fn look(known: &[Display], display: u32, until: Instant) -> Option<Display> {
    let before = known.iter().find(|old| old.display == display);
    if Instant::now() >= until {
        return before.cloned();
    }
    match server::describe(&DisplayTarget { timeout: TIMEOUT, ..DisplayTarget::new(display) }) {
        Ok(described) => Some(described),
        Err(_) => before.cloned(),
    }
}
