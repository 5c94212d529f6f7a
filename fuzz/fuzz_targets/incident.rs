// SPDX-License-Identifier: MIT OR Apache-2.0
//! The incident file's reader: any bytes end with an incident or an error, and what is read can be scrubbed.
//!
//! Checksums would keep nearly every input out, so each input is read as it is and once more with
//! the checksums made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tipme_record::scrub;
use tipme_store::{HEADER_BYTES, SECTION_HEAD_BYTES, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let _ = decode(bytes);
    if let Ok(incident) = decode(&with_sums(bytes)) {
        let _ = scrub(&incident, &["xterm".to_owned()]);
    }
});

/// A file with an intact header whose sections are these bytes, with right checksums.
fn with_sums(bytes: &[u8]) -> Vec<u8> {
    let mut file = encode(&Default::default()).expect("nothing is within every bound");
    file.extend(bytes);
    let mut at = HEADER_BYTES;
    while let Some(head) = file.get(at..at + SECTION_HEAD_BYTES) {
        let length = u64::from_le_bytes(head[16..24].try_into().expect("eight bytes"));
        let begin = at + SECTION_HEAD_BYTES;
        let end = begin.saturating_add(length as usize).min(file.len());
        let sum = crc32fast::hash(&file[begin..end]);
        file[at + 24..at + 28].copy_from_slice(&sum.to_le_bytes());
        let head_sum = crc32fast::hash(&file[at..at + 28]);
        file[at + 28..at + 32].copy_from_slice(&head_sum.to_le_bytes());
        at = end;
    }
    file
}
