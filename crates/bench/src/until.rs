// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests wait for what other processes do.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Only a test that fails waits for so long: another one may hold the machine for five minutes.
const TIMEOUT: Duration = Duration::from_secs(400);

/// Polls until something is so.
///
/// # Panics
/// Where it does not come.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain for {TIMEOUT:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}
