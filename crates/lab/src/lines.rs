// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the verbs tell while they run.

use std::io::Write;
use tipme_bench::ProgressListener;

/// Progress on the error output, so that the output proper is the result only; each line begins with this name.
pub struct Lines(pub &'static str);

impl ProgressListener for Lines {
    fn line(&mut self, text: &str) {
        // A reader that is gone is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{}: {text}", self.0);
    }
}
