// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds-checked reading of sections: truncated data ends the walk.

use tipme_record::text::is_unseen;
use tipme_record::{CHUNK_BYTES, ChunkEntry, ChunkHead, Head, RecordKind};
use zerocopy::FromBytes;

/// Position in the bytes of a section. Each read advances it, or returns `None` at the end.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// Returns the next `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// Returns the next `length` bytes, or as many as are left.
    pub(crate) fn take_up_to(&mut self, length: usize) -> &'a [u8] {
        self.take(length.min(self.rest.len())).unwrap_or_default()
    }

    /// Returns the next `length` bytes and skips the padding after them to a multiple of eight.
    pub(crate) fn take_padded(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.take(length)?;
        let padding = length.next_multiple_of(8) - length;
        self.take(padding.min(self.rest.len()))?;
        Some(taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Returns the complete chunks of a section with their heads, in the order in which they were
/// opened.
pub(crate) fn chunks(section: &[u8]) -> Vec<(ChunkHead, &[u8])> {
    let mut chunks: Vec<_> = section
        .chunks_exact(CHUNK_BYTES)
        .filter_map(|chunk| Some((ChunkHead::read_from_prefix(chunk).ok()?.0, chunk)))
        .collect();
    chunks.sort_by_key(|(head, _)| head.opened);
    chunks
}

/// Walks consecutive records that have no chunks around them.
pub(crate) fn loose_records(section: &[u8]) -> impl Iterator<Item = ChunkEntry<'_>> {
    let mut cursor = Cursor::new(section);
    std::iter::from_fn(move || {
        let (head, _) = Head::read_from_prefix(cursor.rest).ok()?;
        let kind = RecordKind::from_number(head.kind)?;
        let size = usize::from(head.size);
        if size < kind.size() {
            return None;
        }
        cursor.take(size).map(|bytes| ChunkEntry { head, kind, bytes })
    })
}

/// Returns printable text from untrusted bytes: up to the first NUL, without control characters.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    clean(&String::from_utf8_lossy(&bytes[..end]))
}

/// Joins a NUL-separated command line into one line of text; reads at most 4,096 bytes.
pub(crate) fn command_line(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(4_096)];
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| clean(&String::from_utf8_lossy(word))).collect::<Vec<_>>().join(" ")
}

/// Returns the text on one line, without characters that could control a terminal.
pub fn clean(text: &str) -> String {
    let harmless = text.chars().map(|c| match c {
        '\n' | '\t' => ' ',
        c if c.is_control() || is_unseen(c) => '?',
        c => c,
    });
    harmless.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_skipped_and_may_be_missing_at_the_end() {
        let mut cursor = Cursor::new(b"abc\0\0\0\0\0de");
        assert_eq!(cursor.take_padded(3), Some(&b"abc"[..]));
        assert_eq!(cursor.take_padded(2), Some(&b"de"[..]));
        assert_eq!(cursor.u16(), None);
    }

    #[test]
    fn text_cannot_steer_a_terminal() {
        assert_eq!(printable(b"a\x1b[2Jb\0rest"), "a?[2Jb");
        assert_eq!(command_line(b"make\0-j8\0\0"), "make -j8");
    }

    #[test]
    fn text_is_what_it_looks_like() {
        assert_eq!(clean("a\u{202e}b\tc\u{e0100}"), "a?b c?");
        assert_eq!(clean("größe 名前 עברית"), "größe 名前 עברית");
    }
}
