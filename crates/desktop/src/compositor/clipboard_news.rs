// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a compositor tells the owner of its clipboard.

use rustix::fd::OwnedFd;

/// What a compositor told of the clipboard.
#[derive(Default)]
pub(crate) struct ClipboardNews {
    /// Where the text is to be written.
    pub(crate) requests: Vec<OwnedFd>,
    /// Another program has taken the clipboard, or the compositor did not take the text.
    pub(crate) is_lost: bool,
    /// The text is what a paste gives.
    pub(crate) is_current: bool,
}
