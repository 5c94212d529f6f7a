// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a compositor about a frame of its screen.

use tipme_record::Nanos;
use wayland_client::protocol::wl_shm::Format;

/// Buffer parameters of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameShape {
    pub format: Format,
    pub width: u32,
    pub height: u32,
    pub stride: u32,
}

/// State of the requested frame.
#[derive(Default)]
pub(super) struct Frame {
    pub shape: Option<FrameShape>,
    /// Time at which it was shown.
    pub shown: Option<Nanos>,
    pub failed: bool,
}
