// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress output of the verbs.

use std::io::Write;
use tipme_bench::ProgressListener;

/// Progress on standard error, so that standard output contains only the result; each line starts
/// with this name.
pub struct Lines(pub &'static str);

impl ProgressListener for Lines {
    fn line(&mut self, text: &str) {
        // A closed reader is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{}: {text}", self.0);
    }
}
