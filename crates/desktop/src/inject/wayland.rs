// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys, buttons and motions injected into an unmodified Wayland compositor, by any interface that
//! it offers.

mod events;
mod fake_input;
mod remote_desktop;
mod virtual_keyboard;
mod virtual_pointer;

use super::device::InjectionDevice;
use crate::compositor::CompositorLink;
use crate::error::DisplayError;
use fake_input::FakeInput;
use remote_desktop::RemoteDesktop;
use std::path::Path;
use virtual_keyboard::VirtualKeyboard;

/// Opens keyboard and pointer of the compositor behind a socket: virtual ones (sway, Hyprland, …),
/// KWin's, or Mutter's.
///
/// # Errors
/// Fails if the compositor is not reachable, or offers none of these.
pub(super) fn devices(socket: &Path) -> Result<Box<dyn InjectionDevice + Send>, DisplayError> {
    let mut link = CompositorLink::open(socket)?;
    if let Some(manager) = virtual_keyboard::offered(&mut link) {
        return Ok(Box::new(VirtualKeyboard::plug_in(link, &manager)?));
    }
    if let Some(input) = fake_input::offered(&mut link) {
        return Ok(Box::new(FakeInput::authenticate(link, input)?));
    }
    let display = link.name().to_owned();
    let mutter = RemoteDesktop::open(&link, socket);
    Ok(Box::new(mutter.map_err(|reason| DisplayError::NoInjection { display, reason })?))
}
