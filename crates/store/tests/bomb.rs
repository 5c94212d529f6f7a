// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory use for a small file that claims much content, in a process of its own.

use std::io::Read;
use tipme_record::incident::Incident;
use tipme_store::{decode, encode};

/// Returns `length` zeros, compressed.
fn packed(length: u64) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    std::io::copy(&mut std::io::repeat(0).take(length), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

/// Returns a file of one section with a head that states these lengths.
fn bomb(raw_len: u64, stored_len: u64, packed: &[u8]) -> Vec<u8> {
    let mut head: Vec<u8> = [3u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
    head.extend([raw_len, stored_len].map(u64::to_le_bytes).concat());
    head.extend(crc32fast::hash(packed).to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    [&encode(&Incident::default()).unwrap(), &head, packed].concat()
}

#[test]
fn a_small_file_takes_little_memory_whatever_it_claims() {
    let packed = packed(1 << 30);
    for stored_len in [packed.len() as u64, 1 << 29] {
        let bytes = bomb(1 << 30, stored_len, &packed);
        assert!(bytes.len() < 200_000, "{} bytes", bytes.len());
        let before = peak_kib();
        decode(&bytes).expect_err("nothing in it is to be believed");
        let growth = peak_kib() - before;
        assert!(growth < 160 << 10, "{growth} KiB");
    }
}

/// Returns the peak resident memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
