// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selection of the displays to record.

use tipme_kernel::DisplayNumber;

/// Displays to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tap {
    /// All X servers and compositors, at any time.
    All,
    /// Only the X server with this number.
    Only(u32),
    /// Only the compositor with this socket number.
    OnlyWayland(u32),
    /// None, and no events of input devices either.
    Off,
}

impl Tap {
    /// Returns the only display to record; `None` for all and for none.
    pub(crate) fn only(self) -> Option<DisplayNumber> {
        match self {
            Tap::Only(number) => Some(DisplayNumber::X11(number)),
            Tap::OnlyWayland(number) => Some(DisplayNumber::Wayland(number)),
            Tap::All | Tap::Off => None,
        }
    }

    /// Returns `true` if the X server with this number is recorded.
    pub(crate) fn takes(self, display: u32) -> bool {
        match self {
            Tap::All => true,
            Tap::Only(number) => display == number,
            Tap::OnlyWayland(_) | Tap::Off => false,
        }
    }

    /// Returns the sockets of the compositors recorded.
    pub(crate) fn compositors(self) -> Vec<String> {
        let mut sockets = tipme_desktop::server::find_compositors();
        sockets.retain(|path| match self {
            Tap::All => true,
            Tap::OnlyWayland(number) => path.ends_with(&format!("/wayland-{number}")),
            Tap::Only(_) | Tap::Off => false,
        });
        sockets
    }
}
