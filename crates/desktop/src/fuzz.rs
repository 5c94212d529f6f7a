// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entry for fuzzing: bytes that a display, or a window of any client, sends.

use crate::attention;
use crate::auth;
use crate::framing::Framing;
use crate::plain::plain;
use x11rb::x11_utils::TryParse as _;

/// Reads properties, packets in pieces, an authority file and text to be shown; whether there was a property. It must
/// not panic.
pub fn exercise(bytes: &[u8]) -> bool {
    let reply = x11rb::protocol::xproto::GetPropertyReply::try_parse(bytes);
    let understood = reply.is_ok_and(|(reply, _)| attention::read_any(&reply));
    let mut framing = Framing::default();
    for piece in bytes.chunks(1 + bytes.len() % 13) {
        framing.mend(&mut piece.to_vec());
    }
    drop(auth::cookies(&auth::parse(bytes), 0));
    drop(plain(&String::from_utf8_lossy(bytes), 99));
    understood
}
