// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a compositor for the owner of its clipboard.

use rustix::fd::OwnedFd;

/// State of the clipboard, as reported by the compositor.
#[derive(Default)]
pub(crate) struct ClipboardNews {
    /// Pipes to write the text to.
    pub(crate) requests: Vec<OwnedFd>,
    /// Another program has taken the clipboard, or the compositor did not accept the text.
    pub(crate) is_lost: bool,
    /// The compositor has made the text its clipboard.
    pub(crate) is_current: bool,
}
