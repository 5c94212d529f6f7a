// SPDX-License-Identifier: MIT OR Apache-2.0
//! A keyboard by the protocol `zwp_virtual_keyboard_v1`, which sway and other compositors have.

use crate::clock;
use crate::compositor::{Heard, Link};
use crate::error::Error;
use crate::inject::device::Device;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use tipme_record::Nanos;
use wayland_client::delegate_noop;
use wayland_client::protocol::wl_keyboard::KeymapFormat;
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_protocols_misc::zwp_virtual_keyboard_v1::client::zwp_virtual_keyboard_manager_v1::ZwpVirtualKeyboardManagerV1;
use wayland_protocols_misc::zwp_virtual_keyboard_v1::client::zwp_virtual_keyboard_v1::ZwpVirtualKeyboardV1;

delegate_noop!(Heard: ignore WlSeat);
delegate_noop!(Heard: ignore ZwpVirtualKeyboardManagerV1);
delegate_noop!(Heard: ignore ZwpVirtualKeyboardV1);

/// A US keyboard: what the compositor compiles a keymap from, and its clients after it.
const KEYMAP: &str = r#"xkb_keymap {
    xkb_keycodes { include "evdev+aliases(qwerty)" };
    xkb_types { include "complete" };
    xkb_compat { include "complete" };
    xkb_symbols { include "pc+us+inet(evdev)" };
};
"#;

/// Keys that hold a modifier: their codes, and the modifier's bit in that keymap. Shift, Control, Alt, Super.
const MODIFIERS: [(u8, u32); 4] = [(42, 1), (29, 4), (56, 8), (125, 64)];

/// The interface, where the compositor has it.
pub(super) fn offered(link: &mut Link) -> Option<ZwpVirtualKeyboardManagerV1> {
    link.bind(1)
}

/// A virtual keyboard, which is unplugged with the value.
pub(super) struct VirtualKeyboard {
    link: Link,
    keyboard: ZwpVirtualKeyboardV1,
    /// Bits of the modifiers that are held.
    held: u32,
}

impl VirtualKeyboard {
    /// Plugs a US keyboard in, and waits until the compositor has it.
    pub(super) fn plug_in(mut link: Link, manager: &ZwpVirtualKeyboardManagerV1) -> Result<VirtualKeyboard, Error> {
        let seat: Option<WlSeat> = link.bind(1);
        let seat = seat.ok_or_else(|| link.lost("it has no seat"))?;
        let keyboard = manager.create_virtual_keyboard(&seat, &link.handle(), ());
        let file = keymap_file().map_err(|error| link.lost(error))?;
        keyboard.keymap(KeymapFormat::XkbV1.into(), file.as_fd(), KEYMAP.len() as u32 + 1);
        link.settle()?;
        Ok(VirtualKeyboard { link, keyboard, held: 0 })
    }
}

impl Device for VirtualKeyboard {
    fn display(&self) -> String {
        self.link.name().to_owned()
    }

    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, Error> {
        let at = clock::now();
        // The clock of input devices, which goes round.
        let stamp = (at.0 / 1_000_000) as u32;
        self.keyboard.key(stamp, code.into(), pressed.into());
        if let Some((_, bit)) = MODIFIERS.iter().find(|(known, _)| *known == code) {
            self.held = if pressed { self.held | bit } else { self.held & !bit };
            self.keyboard.modifiers(self.held, 0, 0, 0);
        }
        self.link.flush()?;
        Ok(at)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.link.settle()
    }
}

/// The keymap in memory, with a zero behind it.
fn keymap_file() -> std::io::Result<File> {
    let mut file = File::from(memfd_create("keymap", MemfdFlags::CLOEXEC)?);
    file.write_all(KEYMAP.as_bytes())?;
    file.write_all(&[0])?;
    Ok(file)
}
