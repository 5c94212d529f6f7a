// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which displays are recorded.

use tipme_kernel::DisplayNumber;

/// Whether display traffic is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tap {
    /// All X servers and compositors, whenever they start.
    All,
    /// Only the X server with this number.
    Only(u32),
    /// Only the compositor whose socket has this number.
    OnlyWayland(u32),
    /// None, and no events of input devices either.
    Off,
}

impl Tap {
    /// The only display that is recorded; `None` for all and for none.
    pub(crate) fn only(self) -> Option<DisplayNumber> {
        match self {
            Tap::Only(number) => Some(DisplayNumber::X11(number)),
            Tap::OnlyWayland(number) => Some(DisplayNumber::Wayland(number)),
            Tap::All | Tap::Off => None,
        }
    }

    /// Whether the X server with this number is recorded.
    pub(crate) fn takes(self, display: u32) -> bool {
        match self {
            Tap::All => true,
            Tap::Only(number) => display == number,
            Tap::OnlyWayland(_) | Tap::Off => false,
        }
    }

    /// The sockets of the compositors that are recorded.
    pub(crate) fn compositors(self) -> Vec<String> {
        let wanted = |path: &String| match self {
            Tap::All => true,
            Tap::OnlyWayland(number) => path.ends_with(&format!("/wayland-{number}")),
            Tap::Only(_) | Tap::Off => false,
        };
        tipme_desktop::server::find_compositors().into_iter().filter(wanted).collect()
    }
}
