// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polling of other processes in tests.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Only a failing test waits this long: another process may hold the machine for five minutes.
const TIMEOUT: Duration = Duration::from_secs(400);

/// Polls until a condition holds.
///
/// # Panics
/// Panics on a timeout.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain for {TIMEOUT:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}
