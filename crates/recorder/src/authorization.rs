// SPDX-License-Identifier: MIT OR Apache-2.0
//! Authorization of marks: at the socket, by hot keys on local keyboards, and for automatic marks.

use crate::hot_keys::PressConsole;
use std::io;
use tipme_control::{Caller, Gate, Said};
use tipme_desktop::chords::HotKeyPress;
use tipme_desktop::polkit::{self, Authorization};

/// A press, with the console for the answer and the user it is attributed to.
pub(crate) struct AttributedPress {
    pub(crate) press: HotKeyPress,
    pub(crate) listener: PressConsole,
    pub(crate) uid: u32,
}

/// Returns a gate that authorizes the process that asks, or that a mark is made for.
pub(crate) fn processes<T>(allowed: &[u32]) -> io::Result<Gate<Caller, T>> {
    Gate::new(allowed)
        .with_authority(|caller: Caller| said(polkit::of_process(caller.pid, caller.uid)))
}

/// Returns a gate that authorizes the user of a hot key.
pub(crate) fn presses(allowed: &[u32]) -> io::Result<Gate<u32, AttributedPress>> {
    Gate::new(allowed).with_authority(|uid| said(polkit::of_seated(uid)))
}

fn said(answer: Authorization) -> Said {
    match answer {
        Authorization::Yes => Said::Yes,
        Authorization::No(why) => Said::No(why),
        Authorization::Nothing(why) => Said::Nothing(why),
    }
}
