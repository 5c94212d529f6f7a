// SPDX-License-Identifier: MIT OR Apache-2.0
//! The priority of whoever types and watches the screen.

use rustix::process::{getpriority_process, setpriority_process};

/// Keeps the typing thread ahead of the fault: a person's fingers do not wait for a CPU.
///
/// Nothing may be started meanwhile, since it would inherit the priority.
pub(crate) struct Urgent {
    before: i32,
}

impl Urgent {
    /// Does without where it is not allowed.
    pub(crate) fn new() -> Urgent {
        let before = getpriority_process(None).unwrap_or_default();
        let _ = setpriority_process(None, before - 15);
        Urgent { before }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        let _ = setpriority_process(None, self.before);
    }
}
