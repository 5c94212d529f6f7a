// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may mark: at the socket, by hot keys of the machine's own keyboards, and whose hitches are marked unasked.

use crate::hot_keys::PressConsole;
use std::io;
use tipme_control::{Caller, Gate, Said};
use tipme_desktop::chords::HotKeyPress;
use tipme_desktop::polkit::{self, Authorization};

/// A press, who is to hear of it, and who is taken to have pressed.
pub(crate) struct AttributedPress {
    pub(crate) press: HotKeyPress,
    pub(crate) listener: PressConsole,
    pub(crate) uid: u32,
}

/// Lets in by the process that asks, or for which something is asked.
pub(crate) fn processes<T>(allowed: &[u32]) -> io::Result<Gate<Caller, T>> {
    Gate::of(allowed).with_authority(|caller: Caller| said(polkit::of_process(caller.pid, caller.uid)))
}

/// Lets in who presses a hot key.
pub(crate) fn presses(allowed: &[u32]) -> io::Result<Gate<u32, AttributedPress>> {
    Gate::of(allowed).with_authority(|uid| said(polkit::of_seated(uid)))
}

fn said(answer: Authorization) -> Said {
    match answer {
        Authorization::Yes => Said::Yes,
        Authorization::No(why) => Said::No(why),
        Authorization::Nothing(why) => Said::Nothing(why),
    }
}
