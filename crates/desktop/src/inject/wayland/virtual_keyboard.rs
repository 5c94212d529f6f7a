// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard by the protocol `zwp_virtual_keyboard_v1` of sway and other compositors, with a
//! pointer.

use super::events::stamp;
use super::virtual_pointer::VirtualPointer;
use crate::clock;
use crate::compositor::{CompositorLink, CompositorState};
use crate::error::DisplayError;
use crate::inject::device::InjectionDevice;
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

delegate_noop!(CompositorState: ignore WlSeat);
delegate_noop!(CompositorState: ignore ZwpVirtualKeyboardManagerV1);
delegate_noop!(CompositorState: ignore ZwpVirtualKeyboardV1);

/// US keyboard: the compositor, and its clients after it, compile a keymap from this.
const KEYMAP: &str = r#"xkb_keymap {
    xkb_keycodes { include "evdev+aliases(qwerty)" };
    xkb_types { include "complete" };
    xkb_compat { include "complete" };
    xkb_symbols { include "pc+us+inet(evdev)" };
};
"#;

/// Modifier keys (Shift, Control, Alt, Super): their codes, and the modifier's bit in that keymap.
const MODIFIERS: [(u8, u32); 4] = [(42, 1), (29, 4), (56, 8), (125, 64)];

/// Binds the interface, if the compositor has it.
pub(super) fn offered(link: &mut CompositorLink) -> Option<ZwpVirtualKeyboardManagerV1> {
    link.bind(1)
}

/// A virtual keyboard, and a pointer if the compositor has virtual ones; they are removed with the
/// value.
pub(super) struct VirtualKeyboard {
    link: CompositorLink,
    keyboard: ZwpVirtualKeyboardV1,
    pointer: Option<VirtualPointer>,
    /// Bits of the held modifiers.
    held: u32,
}

impl VirtualKeyboard {
    /// Adds a US keyboard and a pointer, and waits until the compositor has them.
    pub(super) fn plug_in(
        mut link: CompositorLink,
        manager: &ZwpVirtualKeyboardManagerV1,
    ) -> Result<VirtualKeyboard, DisplayError> {
        let seat: Option<WlSeat> = link.bind(1);
        let seat = seat.ok_or_else(|| link.lost("it has no seat"))?;
        let keyboard = manager.create_virtual_keyboard(&seat, &link.handle(), ());
        let file = keymap_file().map_err(|error| link.lost(error))?;
        keyboard.keymap(KeymapFormat::XkbV1.into(), file.as_fd(), KEYMAP.len() as u32 + 1);
        let pointer = VirtualPointer::plug_in(&mut link, &seat);
        link.settle()?;
        Ok(VirtualKeyboard { link, keyboard, pointer, held: 0 })
    }

    /// Sends a pointer request now.
    fn point(
        &self,
        act: impl FnOnce(&VirtualPointer, &CompositorLink, u32),
    ) -> Result<Nanos, DisplayError> {
        let pointer = self
            .pointer
            .as_ref()
            .ok_or_else(|| DisplayError::NoPointer { display: self.display() })?;
        let at = clock::now();
        act(pointer, &self.link, stamp(at));
        self.link.flush()?;
        Ok(at)
    }
}

impl InjectionDevice for VirtualKeyboard {
    fn display(&self) -> String {
        self.link.name().to_owned()
    }

    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        let at = clock::now();
        self.keyboard.key(stamp(at), code.into(), pressed.into());
        if let Some((_, bit)) = MODIFIERS.iter().find(|(known, _)| *known == code) {
            self.held = if pressed { self.held | bit } else { self.held & !bit };
            self.keyboard.modifiers(self.held, 0, 0, 0);
        }
        self.link.flush()?;
        Ok(at)
    }

    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.point(|pointer, _, stamp| pointer.button(stamp, button, pressed))
    }

    fn turn_wheel(&mut self, down: bool) -> Result<Nanos, DisplayError> {
        self.point(|pointer, _, stamp| pointer.turn_wheel(stamp, down))
    }

    fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError> {
        self.point(|pointer, link, stamp| pointer.move_to(stamp, (x, y), link.screen()))
    }

    fn settle(&mut self) -> Result<(), DisplayError> {
        self.link.settle()
    }
}

/// Returns the keymap in memory, null-terminated.
fn keymap_file() -> std::io::Result<File> {
    let mut file = File::from(memfd_create("keymap", MemfdFlags::CLOEXEC)?);
    file.write_all(KEYMAP.as_bytes())?;
    file.write_all(&[0])?;
    Ok(file)
}
