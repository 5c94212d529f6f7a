// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys injected into a compositor of Wayland that nobody modified, by whichever way it offers.

mod fake_input;
mod remote_desktop;
mod virtual_keyboard;

use super::device::Device;
use crate::compositor::Link;
use crate::error::Error;
use fake_input::FakeInput;
use remote_desktop::RemoteDesktop;
use std::path::Path;
use virtual_keyboard::VirtualKeyboard;

/// A keyboard of the compositor behind a socket: a virtual keyboard (sway, Hyprland, …), KWin's, or Mutter's.
///
/// # Errors
/// Where it cannot be reached, or offers none of these.
pub(super) fn keyboard(socket: &Path) -> Result<Box<dyn Device + Send>, Error> {
    let mut link = Link::open(socket)?;
    if let Some(manager) = virtual_keyboard::offered(&mut link) {
        return Ok(Box::new(VirtualKeyboard::plug_in(link, &manager)?));
    }
    if let Some(input) = fake_input::offered(&mut link) {
        return Ok(Box::new(FakeInput::authenticate(link, input)?));
    }
    let display = link.name().to_owned();
    let mutter = RemoteDesktop::open(&link, socket);
    Ok(Box::new(mutter.map_err(|reason| Error::NoInjection { display, reason })?))
}
