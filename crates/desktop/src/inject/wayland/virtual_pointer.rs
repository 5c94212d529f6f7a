// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pointer by the protocol `zwlr_virtual_pointer_v1` of sway and other compositors.

use super::events::{button_code, notch};
use crate::compositor::{CompositorLink, CompositorState};
use wayland_client::delegate_noop;
use wayland_client::protocol::wl_output::WlOutput;
use wayland_client::protocol::wl_pointer::{Axis, AxisSource, ButtonState};
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_protocols_wlr::virtual_pointer::v1::client::zwlr_virtual_pointer_manager_v1::ZwlrVirtualPointerManagerV1;
use wayland_protocols_wlr::virtual_pointer::v1::client::zwlr_virtual_pointer_v1::ZwlrVirtualPointerV1;

delegate_noop!(CompositorState: ignore ZwlrVirtualPointerManagerV1);
delegate_noop!(CompositorState: ignore ZwlrVirtualPointerV1);

/// First version with pointers of one output.
const VERSION: u32 = 2;

/// A virtual pointer on one output, which is removed with the connection.
pub(super) struct VirtualPointer {
    pointer: ZwlrVirtualPointerV1,
}

impl VirtualPointer {
    /// Adds one; returns `None` if the compositor has no virtual pointers.
    pub(super) fn plug_in(link: &mut CompositorLink, seat: &WlSeat) -> Option<VirtualPointer> {
        let manager: ZwlrVirtualPointerManagerV1 = link.bind(VERSION)?;
        let output: WlOutput = link.bind(1)?;
        let pointer = if wayland_client::Proxy::version(&manager) < VERSION {
            manager.create_virtual_pointer(Some(seat), &link.handle(), ())
        } else {
            manager.create_virtual_pointer_with_output(
                Some(seat),
                Some(&output),
                &link.handle(),
                (),
            )
        };
        Some(VirtualPointer { pointer })
    }

    pub(super) fn button(&self, stamp: u32, button: u8, pressed: bool) {
        let state = if pressed { ButtonState::Pressed } else { ButtonState::Released };
        self.pointer.button(stamp, button_code(button), state);
        self.pointer.frame();
    }

    pub(super) fn turn_wheel(&self, stamp: u32, down: bool) {
        self.pointer.axis_source(AxisSource::Wheel);
        self.pointer.axis_discrete(
            stamp,
            Axis::VerticalScroll,
            notch(down),
            if down { 1 } else { -1 },
        );
        self.pointer.frame();
    }

    /// Moves it to a position on an output of this size, both in pixels.
    pub(super) fn move_to(&self, stamp: u32, (x, y): (i16, i16), (width, height): (u32, u32)) {
        let x = u32::from(x.max(0).unsigned_abs()).min(width);
        let y = u32::from(y.max(0).unsigned_abs()).min(height);
        self.pointer.motion_absolute(stamp, x, y, width, height);
        self.pointer.frame();
    }
}
