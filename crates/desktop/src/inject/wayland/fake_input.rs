// SPDX-License-Identifier: MIT OR Apache-2.0
//! A keyboard by the interface `org_kde_kwin_fake_input`, which KWin has for programs that it trusts.

use crate::clock;
use crate::compositor::{Heard, Link};
use crate::error::Error;
use crate::inject::device::Device;
use protocol::org_kde_kwin_fake_input::OrgKdeKwinFakeInput;
use tipme_record::Nanos;
use wayland_client::delegate_noop;

/// The interface as Rust, made of its description when this is built.
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

delegate_noop!(Heard: ignore OrgKdeKwinFakeInput);

/// The version that has keys.
const VERSION: u32 = 4;

/// The interface, where KWin offers it to this program, with keys.
pub(super) fn offered(link: &mut Link) -> Option<OrgKdeKwinFakeInput> {
    link.bind(VERSION).filter(|input| wayland_client::Proxy::version(input) == VERSION)
}

/// KWin's keyboard for others.
pub(super) struct FakeInput {
    link: Link,
    input: OrgKdeKwinFakeInput,
}

impl FakeInput {
    /// Says who types and why, and waits until KWin has heard it.
    pub(super) fn authenticate(mut link: Link, input: OrgKdeKwinFakeInput) -> Result<FakeInput, Error> {
        input.authenticate("tipme".to_owned(), "types at a program that is measured".to_owned());
        link.settle()?;
        Ok(FakeInput { link, input })
    }
}

impl Device for FakeInput {
    fn display(&self) -> String {
        self.link.name().to_owned()
    }

    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, Error> {
        let at = clock::now();
        self.input.keyboard_key(code.into(), pressed.into());
        self.link.flush()?;
        Ok(at)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.link.settle()
    }
}
