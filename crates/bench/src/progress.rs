// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers of progress reports.

/// Receives progress reports.
pub trait ProgressListener {
    /// One line for users.
    fn line(&mut self, text: &str);
}
