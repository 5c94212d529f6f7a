// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers that a seed decides, the same on every machine.

/// A generator (SplitMix64): good enough for pauses and for drawing samples.
pub struct Generator(u64);

impl Generator {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// The next number, of all that there are.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The next number from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// How often each of so many is drawn in as many draws with replacement.
    pub(crate) fn draw(&mut self, count: usize) -> Vec<u32> {
        let mut drawn = vec![0; count];
        for _ in 0..count {
            let index = (u128::from(self.number()) * count as u128) >> 64;
            drawn[index as usize] += 1;
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_all_numbers() {
        let mut generator = Generator::new(0);
        assert_eq!([generator.number(), generator.number()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&generator.share())));
        assert_eq!(generator.draw(7).into_iter().sum::<u32>(), 7);
    }
}
