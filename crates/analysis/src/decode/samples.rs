// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of kernel counters by the recorder: time, number of the source, and text.

use crate::decode::bytes::Cursor;
use tipme_record::Nanos;

/// Walks the samples up to the end of the section or the first damage; skips text that is not
/// UTF-8.
pub(crate) fn samples(section: &[u8]) -> impl Iterator<Item = (Nanos, u32, &str)> {
    let mut cursor = Cursor::new(section);
    let samples = std::iter::from_fn(move || {
        let (at, source, length) = (Nanos(cursor.u64()?), cursor.u32()?, cursor.u32()? as usize);
        Some((at, source, cursor.take_padded(length)?))
    });
    samples.filter_map(|(at, source, text)| Some((at, source, std::str::from_utf8(text).ok()?)))
}
