// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that a seed decides, for what is typed, for made-up text and for how long something takes.

/// A step of a linear congruential generator.
#[inline(always)]
pub(crate) fn next_random(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// One number after the other.
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// At least 0 and below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = next_random(self.0);
        (self.0 >> 33) % end.max(1)
    }

    /// The index of one of so many.
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }
}

/// Lines of plain text, `bytes` in all, always the same.
pub(crate) fn text(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = ["delta", "river", "stone", "amber", "quiet", "lantern", "orbit", "meadow"];
    let mut out = Vec::with_capacity(bytes + 100);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    while out.len() < bytes {
        out.extend_from_slice(format!("{:08}", out.len()).as_bytes());
        for _ in 0..9 {
            state = next_random(state);
            out.push(b' ');
            out.extend_from_slice(WORDS[(state >> 61) as usize].as_bytes());
        }
        out.push(b'\n');
    }
    out.truncate(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_all_numbers() {
        let numbers = |mut random: Random| [random.below(1_000), random.below(1_000), random.below(1_000)];
        assert_eq!(numbers(Random::new(7)), numbers(Random::new(7)));
        assert_ne!(numbers(Random::new(7)), numbers(Random::new(8)));
        let mut random = Random::new(1);
        assert!((0..1_000).all(|_| random.index(9) < 9) && random.below(0) == 0);
    }

    #[test]
    fn the_text_has_the_size_asked_for() {
        assert_eq!(text(100_000).len(), 100_000);
        assert!(text(200).starts_with(b"00000000 "));
    }
}
