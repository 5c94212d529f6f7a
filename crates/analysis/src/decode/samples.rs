// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the recorder read of the kernel's counters: a time, the number of the source, and its text.

use crate::decode::bytes::Cursor;
use tipme_record::Nanos;

/// Walks the samples of the section up to its end or its damage. What is not UTF-8 text is left out.
pub(crate) fn samples(section: &[u8]) -> impl Iterator<Item = (Nanos, u32, &str)> {
    let mut cursor = Cursor::new(section);
    let samples = std::iter::from_fn(move || {
        let (at, source, length) = (Nanos(cursor.u64()?), cursor.u32()?, cursor.u32()? as usize);
        Some((at, source, cursor.take_padded(length)?))
    });
    samples.filter_map(|(at, source, text)| Some((at, source, std::str::from_utf8(text).ok()?)))
}
