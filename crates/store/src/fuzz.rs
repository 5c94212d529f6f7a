// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checksum repair for tests with damaged files.

use crate::layout::{HEADER_BYTES, SECTION_HEAD_BYTES, SectionHead};
use zerocopy::{FromBytes, IntoBytes};

/// Returns the file with correct section checksums, so that damage reaches the deeper layers.
pub fn with_sums(mut file: Vec<u8>) -> Vec<u8> {
    let mut at = HEADER_BYTES;
    while let Some(Ok((head, rest))) = file.get(at..).map(SectionHead::read_from_prefix) {
        let stored = &rest[..rest.len().min(head.stored_len as usize)];
        let end = at + SECTION_HEAD_BYTES + stored.len();
        let head = SectionHead { crc: crc32fast::hash(stored), ..head }.summed();
        file[at..at + SECTION_HEAD_BYTES].copy_from_slice(head.as_bytes());
        at = end;
    }
    file
}
