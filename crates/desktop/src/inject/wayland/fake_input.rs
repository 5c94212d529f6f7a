// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard and pointer by the interface `org_kde_kwin_fake_input`, which KWin offers to programs
//! that it trusts.

use super::events::{button_code, notch};
use crate::clock;
use crate::compositor::{CompositorLink, CompositorState};
use crate::error::DisplayError;
use crate::inject::device::InjectionDevice;
use protocol::org_kde_kwin_fake_input::OrgKdeKwinFakeInput;
use tipme_record::Nanos;
use wayland_client::delegate_noop;
use wayland_client::protocol::wl_pointer::Axis;

/// Rust bindings, generated from the XML description at build time.
#[allow(missing_docs, clippy::all, reason = "generated")]
mod protocol {
    use wayland_client;

    mod interfaces {
        use wayland_client::backend as wayland_backend;
        wayland_scanner::generate_interfaces!("src/inject/wayland/fake-input.xml");
    }

    use interfaces::*;
    wayland_scanner::generate_client_code!("src/inject/wayland/fake-input.xml");
}

delegate_noop!(CompositorState: ignore OrgKdeKwinFakeInput);

/// First version with keys.
const VERSION: u32 = 4;

/// Binds the interface, if KWin offers it to this program, with keys.
pub(super) fn offered(link: &mut CompositorLink) -> Option<OrgKdeKwinFakeInput> {
    link.bind(VERSION).filter(|input| wayland_client::Proxy::version(input) == VERSION)
}

/// KWin's fake keyboard and pointer.
pub(super) struct FakeInput {
    link: CompositorLink,
    input: OrgKdeKwinFakeInput,
}

impl FakeInput {
    /// Names the program and the purpose, and waits until KWin has processed that.
    pub(super) fn authenticate(
        mut link: CompositorLink,
        input: OrgKdeKwinFakeInput,
    ) -> Result<FakeInput, DisplayError> {
        input.authenticate("tipme".to_owned(), "types at a program that is measured".to_owned());
        link.settle()?;
        Ok(FakeInput { link, input })
    }

    /// Sends a request; returns the time of sending.
    fn send(&self, request: impl FnOnce(&OrgKdeKwinFakeInput)) -> Result<Nanos, DisplayError> {
        let at = clock::now();
        request(&self.input);
        self.link.flush()?;
        Ok(at)
    }
}

impl InjectionDevice for FakeInput {
    fn display(&self) -> String {
        self.link.name().to_owned()
    }

    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.send(|input| input.keyboard_key(code.into(), pressed.into()))
    }

    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.send(|input| input.button(button_code(button), pressed.into()))
    }

    fn turn_wheel(&mut self, down: bool) -> Result<Nanos, DisplayError> {
        self.send(|input| input.axis(Axis::VerticalScroll.into(), notch(down)))
    }

    fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError> {
        self.send(|input| input.pointer_motion_absolute(x.into(), y.into()))
    }

    fn settle(&mut self) -> Result<(), DisplayError> {
        self.link.settle()
    }
}
