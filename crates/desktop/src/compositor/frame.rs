// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a compositor tells of a picture of its screen.

use tipme_record::Nanos;
use wayland_client::protocol::wl_shm::Format;

/// What a picture of the screen needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameShape {
    pub format: Format,
    pub width: u32,
    pub height: u32,
    pub stride: u32,
}

/// What was told of the picture that was asked for.
#[derive(Default)]
pub(super) struct Frame {
    pub shape: Option<FrameShape>,
    /// It was shown at this time.
    pub shown: Option<Nanos>,
    pub failed: bool,
}
