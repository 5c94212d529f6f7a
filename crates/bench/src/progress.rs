// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is told what goes on.

/// Told what happens meanwhile.
pub trait ProgressListener {
    /// One line for people.
    fn line(&mut self, text: &str);
}
