// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encoding and decoding: round trips, and no damaged file is taken for an intact one.

use crate::support::incident;
use fastrand::Rng;
use proptest::prelude::*;
use tipme_record::incident::{Incident, Section};
use tipme_store::{HEADER_BYTES, ReadError, SECTION_HEAD_BYTES, decode, encode, with_sums};

fn sections() -> impl Strategy<Value = Vec<(Section, Vec<u8>)>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..600),
        (any::<u8>(), 0..100_000usize).prop_map(|(byte, length)| vec![byte; length]),
    ];
    prop::collection::vec((prop::sample::select(&Section::ALL[..]), bytes), 0..6)
}

/// Checks that the sections of a damaged copy are a prefix of the original's and that the damage is
/// recorded.
fn assert_honest(
    original: &Incident,
    copy: Result<Incident, ReadError>,
) -> Result<(), TestCaseError> {
    if let Ok(copy) = copy {
        prop_assert!(!copy.damage.is_empty(), "damage was taken for a whole file");
        prop_assert!(original.sections.starts_with(&copy.sections));
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(sections in sections()) {
        let incident = Incident { sections, damage: vec![] };
        let copy = decode(&encode(&incident)?)?;
        prop_assert_eq!(copy.sections, incident.sections);
        prop_assert_eq!(copy.damage, vec![]);
    }

    #[test]
    fn any_cut_is_noticed(sections in sections(), at in any::<prop::sample::Index>()) {
        let incident = Incident { sections, damage: vec![] };
        let bytes = encode(&incident)?;
        assert_honest(&incident, decode(&bytes[..at.index(bytes.len())]))?;
    }

    #[test]
    fn any_flipped_bit_is_noticed(
        sections in sections(),
        at in any::<prop::sample::Index>(),
        bit in 0u32..8,
    ) {
        let incident = Incident { sections, damage: vec![] };
        let mut bytes = encode(&incident)?;
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        assert_honest(&incident, decode(&bytes))?;
    }

    #[test]
    fn any_bytes_end_with_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = decode(&bytes);
        let whole_header = encode(&Incident::default())?;
        let _ = decode(&[whole_header, bytes].concat());
    }
}

#[test]
fn every_cut_at_a_border_is_noticed() {
    let original = incident("a");
    let bytes = encode(&original).unwrap();
    let mut at = HEADER_BYTES;
    let mut kept = 0;
    while at < bytes.len() {
        match decode(&bytes[..at]) {
            Ok(copy) => assert_eq!((copy.sections.len(), copy.damage.len()), (kept, 1)),
            Err(error) => {
                assert!(kept == 0 && error.to_string().starts_with("nothing in it"), "{error}")
            }
        }
        let stored: [u8; 8] = bytes[at + 16..at + 24].try_into().unwrap();
        at += SECTION_HEAD_BYTES + u64::from_le_bytes(stored) as usize;
        kept += 1;
    }
    assert_eq!(kept, original.sections.len());
}

/// Decodes thousands of mutated inputs as a fuzzer would make them, the same ones in every run.
#[test]
fn mutations_of_a_file_never_panic() {
    let bytes = encode(&incident("a")).unwrap();
    let mut random = Rng::with_seed(0x7195_15ed);
    let (mut partial, mut refused) = (0, 0);
    for _ in 0..5000 {
        let mut copy = bytes.clone();
        for _ in 0..=random.usize(..4) {
            mutate(&mut copy, &mut random);
        }
        for bytes in [with_sums(copy.clone()), copy] {
            match decode(&bytes) {
                Ok(_) => partial += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(partial > 1000 && refused > 100, "{partial} partial, {refused} refused");
}

/// Makes one change: in the heads as often as in the content, since the heads decide.
fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let end = if random.usize(..2) == 0 { bytes.len().min(400) } else { bytes.len() };
    let at = random.usize(..end);
    match random.usize(..5) {
        0 => bytes[at] ^= 1 << random.usize(..8),
        1 => bytes[at] = [0, 0xff, 0x7f, 0x80][random.usize(..4)],
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..(at + 1 + random.usize(..40)).min(bytes.len()))),
        _ => {
            let piece: Vec<u8> = bytes[at..].iter().copied().take(1 + random.usize(..64)).collect();
            bytes.splice(at..at, piece);
        }
    }
}

/// Returns a file with correct checksums in its section head, so that only the bounds can refuse
/// it.
fn with_head(kind: u32, flags: u32, raw_len: u64, stored: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    head.extend(kind.to_le_bytes());
    head.extend(flags.to_le_bytes());
    head.extend(raw_len.to_le_bytes());
    head.extend((stored.len() as u64).to_le_bytes());
    head.extend(crc32fast::hash(stored).to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    [encode(&Incident::default()).unwrap(), head, stored.to_vec()].concat()
}

#[test]
fn bad_sections_are_refused_with_the_reason() {
    let bomb = zstd::encode_all(&vec![0; 50 << 20][..], 1).unwrap();
    for (kind, flags, raw_len, stored, why) in [
        (2, 1, (1 << 30) + 1, &bomb[..], "at byte 64: it claims more than 1 GiB"),
        (
            2,
            1,
            1000,
            &[0; 5000],
            "at byte 64: its stored length cannot belong to its unpacked length",
        ),
        (2, 1, 100_000, &bomb, "sched: it unpacks to a different length than stated"),
        (2, 1, 1 << 30, b"no frame", "sched: it cannot be unpacked: Unknown frame descriptor"),
        (99, 0, 4, b"what", "number 99: this version does not know it; it was left out"),
    ] {
        let file = with_head(kind, flags, raw_len, stored);
        let error = decode(&file).expect_err("this file lies").to_string();
        assert_eq!(error, format!("nothing in it can be read: section {why}"));
    }
}

#[test]
fn a_newer_version_says_so() {
    let mut bytes = encode(&incident("a")).unwrap();
    bytes[8] = 3;
    let mut fixed = bytes[..60].to_vec();
    fixed[12..16].fill(0);
    fixed.extend([0; 4]);
    bytes[60..64].copy_from_slice(&crc32fast::hash(&fixed).to_le_bytes());
    assert_eq!(
        decode(&bytes).expect_err("newer").to_string(),
        "format version 3 is newer than 2, the newest that this tipme reads; use a newer tipme"
    );
}

#[test]
fn an_unsealed_file_says_so() {
    let mut bytes = encode(&incident("a")).unwrap();
    bytes[12] = 1;
    let copy = decode(&bytes).unwrap();
    assert_eq!(
        copy.damage[0].why,
        "the file was never sealed; the recorder was stopped while it wrote"
    );
    assert_eq!(copy.sections, incident("a").sections);
}

#[test]
fn a_section_that_packs_too_well_can_be_read() {
    let mut incident = incident("a");
    incident.push(Section::Sched, vec![0; 100 << 20]);
    let copy = decode(&encode(&incident).unwrap()).unwrap();
    assert_eq!((copy.damage, copy.sections.len()), (vec![], incident.sections.len()));
}
