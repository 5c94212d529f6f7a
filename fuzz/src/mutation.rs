// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutation of bytes by a sequence that is the same everywhere.

use fastrand::Rng;

/// Boundary values: ends of ranges, and the values just beyond them.
const EDGES: [u64; 8] =
    [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff];
/// Boundary values in text.
const WORDS: [&str; 10] = [
    "null",
    "-1",
    "18446744073709551616",
    "1e309",
    "\"\"",
    "[[[[[[[[",
    "\\u0000",
    "{}",
    "\n",
    "\u{202e}",
];

/// Changes one to eight places: near the beginning as often as anywhere, since most decisions
/// depend on it.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) {
    let more = if random.usize(..2) == 0 { 0 } else { random.usize(..8) };
    for _ in 0..=more {
        if bytes.is_empty() {
            bytes.push(random.u8(..));
        }
        let end = if random.usize(..2) == 0 { bytes.len().min(512) } else { bytes.len() };
        let at = random.usize(..end);
        change(bytes, at, random);
    }
}

fn change(bytes: &mut Vec<u8>, at: usize, random: &mut Rng) {
    match random.usize(..11) {
        8.. => change_number(bytes, at, random),
        0 => bytes[at] ^= 1 << random.usize(..8),
        1 => bytes[at] = random.u8(..),
        2 => {
            let edge = EDGES[random.usize(..EDGES.len())].to_le_bytes();
            let at = at & !(if random.usize(..2) == 0 { 3 } else { 7 });
            let length = edge.len().min(bytes.len() - at);
            bytes[at..at + length].copy_from_slice(&edge[..length]);
        }
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..(at + 1 + random.usize(..40)).min(bytes.len()))),
        5 => {
            let from = random.usize(..bytes.len());
            let piece: Vec<u8> =
                bytes[from..].iter().copied().take(1 + random.usize(..64)).collect();
            bytes.splice(at..at, piece);
        }
        6 => drop(bytes.splice(at..at, WORDS[random.usize(..WORDS.len())].bytes())),
        _ => {
            let length = (1 + random.usize(..16)).min(bytes.len() - at);
            let word = WORDS[random.usize(..WORDS.len())].bytes();
            bytes.splice(at..at + length, word);
        }
    }
}

/// Replaces the next number in a text, if there is one nearby.
fn change_number(bytes: &mut Vec<u8>, at: usize, random: &mut Rng) {
    let Some(begin) =
        bytes[at..].iter().take(64).position(u8::is_ascii_digit).map(|found| at + found)
    else {
        return;
    };
    let length = bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let edge = EDGES[random.usize(..EDGES.len())];
    let number = if random.usize(..2) == 0 { edge } else { random.u64(..) >> random.usize(..64) };
    bytes.splice(begin..begin + length, number.to_string().into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutated(seed: u64) -> Vec<u8> {
        let (mut bytes, mut random) = (vec![7; 100], Rng::with_seed(seed));
        mutate(&mut bytes, &mut random);
        bytes
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
        assert_eq!(mutated(1), mutated(1));
        let different: std::collections::BTreeSet<Vec<u8>> = (0..100).map(mutated).collect();
        assert!(different.len() > 80, "{}", different.len());
    }
}
