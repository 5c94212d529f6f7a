// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may mark: at the socket, and by hot keys of the machine's own keyboards.

use crate::hot_keys::Listener;
use std::io;
use tipme_control::{Caller, Connection, Gate, Said};
use tipme_desktop::chords::Press;
use tipme_desktop::polkit::{self, Answer};

/// A press, who is to hear of it, and who is taken to have pressed.
pub(crate) struct Asker {
    pub(crate) press: Press,
    pub(crate) listener: Listener,
    pub(crate) uid: u32,
}

/// Lets in who connects to the socket.
pub(crate) fn callers(allowed: &[u32]) -> io::Result<Gate<Caller, Connection>> {
    Gate::of(allowed).with_authority(|caller: Caller| said(polkit::of_process(caller.pid, caller.uid)))
}

/// Lets in who presses a hot key.
pub(crate) fn presses(allowed: &[u32]) -> io::Result<Gate<u32, Asker>> {
    Gate::of(allowed).with_authority(|uid| said(polkit::of_seated(uid)))
}

fn said(answer: Answer) -> Said {
    match answer {
        Answer::Yes => Said::Yes,
        Answer::No(why) => Said::No(why),
        Answer::Nothing(why) => Said::Nothing(why),
    }
}
