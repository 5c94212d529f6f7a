// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzing entry point: bytes from a display, or from a window of any client.

use crate::attention;
use crate::auth;
use crate::framing::Framing;
use crate::plain::plain;
use x11rb::x11_utils::TryParse as _;

/// Parses properties, packets in pieces, an authority file and text for display; returns `true` if
/// there was a property. Must not panic.
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
