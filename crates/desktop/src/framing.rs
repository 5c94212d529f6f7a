// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repairs the one kind of packet by which another client could break a connection.
//!
//! Every packet of a server has a sequence number at its third byte, which matches replies to
//! requests; only `KeymapNotify` has key states there. When another client sends such an event to a
//! window, the server passes those bytes on unchanged. x11rb takes them for a sequence number, and
//! finds no reply from then on. It parses the server's own `KeymapNotify` correctly, so this module
//! clears the sent-event bit of this kind.

/// Event code.
const KEYMAP_NOTIFY: u8 = 11;
/// Set in the first byte of an event that a client sent.
const SENT: u8 = 0x80;
/// Kind of the packets that can be longer than events.
const REPLY: u8 = 1;
const GENERIC_EVENT: u8 = 35;
/// Minimum length of a packet in bytes; a longer one has the number of additional units of four
/// bytes.
const LENGTH: usize = 32;
/// Maximum length of a packet in bytes: its reader allocates all of it at once. No expected reply
/// is as long.
const LENGTH_MAX: usize = 1 << 20;
/// Bytes of a packet up to its length field.
const HEADER: usize = 8;

/// Position in the server's packet stream.
#[derive(Default)]
pub(crate) struct Framing {
    /// The server's reply to the connection setup, which is the first packet, is complete.
    greeted: bool,
    header: [u8; HEADER],
    /// Bytes of this packet read so far.
    read: usize,
    /// Length of this packet, known once the header is read.
    length: usize,
}

impl Framing {
    /// Repairs the next bytes from the server; returns `false` if a packet exceeds the maximum
    /// length.
    pub(crate) fn mend(&mut self, bytes: &mut [u8]) -> bool {
        let mut rest = bytes;
        while let Some(first) = rest.first_mut() {
            if self.read == 0 && self.greeted && *first == SENT | KEYMAP_NOTIFY {
                *first = KEYMAP_NOTIFY;
            }
            let taken = self.take(rest);
            rest = &mut rest[taken..];
            if self.length > LENGTH_MAX {
                return false;
            }
        }
        true
    }

    /// Consumes at least one byte of one packet.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let end = if self.read < HEADER { HEADER } else { self.length };
        let taken = bytes.len().min(end - self.read);
        if self.read < HEADER {
            self.header[self.read..self.read + taken].copy_from_slice(&bytes[..taken]);
        }
        self.read += taken;
        if self.read == HEADER {
            self.length = self.packet_length();
        }
        if self.read >= HEADER && self.read == self.length {
            (self.read, self.greeted) = (0, true);
        }
        taken
    }

    fn packet_length(&self) -> usize {
        let [kind, _, _, _, a, b, c, d] = self.header;
        if !self.greeted {
            return HEADER + 4 * usize::from(u16::from_ne_bytes([c, d]));
        }
        let longer = kind == REPLY || kind & !SENT == GENERIC_EVENT;
        LENGTH + if longer { 4 * u32::from_ne_bytes([a, b, c, d]) as usize } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: u8, units: u32, length: usize) -> Vec<u8> {
        let mut packet = vec![SENT | KEYMAP_NOTIFY; length];
        packet[0] = kind;
        packet[4..8].copy_from_slice(&units.to_ne_bytes());
        packet
    }

    /// A setup reply, a reply of 44 bytes, a long event, and two sent events, one of which must be
    /// repaired.
    fn stream() -> Vec<u8> {
        let mut greeting = vec![SENT | KEYMAP_NOTIFY; HEADER + 4 * 5];
        greeting[6..8].copy_from_slice(&5u16.to_ne_bytes());
        let reply = packet(REPLY, 3, LENGTH + 12);
        let event = packet(GENERIC_EVENT, 1, LENGTH + 4);
        [
            greeting,
            reply,
            packet(SENT | KEYMAP_NOTIFY, 9, LENGTH),
            event,
            packet(SENT | 33, 9, LENGTH),
        ]
        .concat()
    }

    #[test]
    fn only_the_first_byte_of_the_one_kind_is_mended() {
        let (before, mut after) = (stream(), stream());
        assert!(Framing::default().mend(&mut after));
        let changed: Vec<usize> =
            (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
        assert_eq!((changed, after[72]), (vec![72], KEYMAP_NOTIFY));
    }

    #[test]
    fn an_announced_packet_beyond_the_bound_is_refused() {
        for units in [LENGTH_MAX as u32 / 4, u32::MAX] {
            let mut framing = Framing::default();
            assert!(framing.mend(&mut [1, 0, 11, 0, 0, 0, 0, 0]));
            let mut header = packet(REPLY, units, HEADER);
            let (begin, end) = header.split_at_mut(HEADER - 1);
            assert!(framing.mend(begin) && !framing.mend(end));
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let mut whole = stream();
        Framing::default().mend(&mut whole);
        for size in 1..whole.len() {
            let (mut framing, mut pieces) = (Framing::default(), stream());
            assert!(pieces.chunks_mut(size).all(|piece| framing.mend(piece)));
            assert_eq!(pieces, whole, "{size}");
        }
    }
}
