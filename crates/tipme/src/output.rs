// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, whose reader may go at any time: `tipme incidents | head -1`.

use std::io::Write;

/// Writes at once; what nobody reads any more is dropped.
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
