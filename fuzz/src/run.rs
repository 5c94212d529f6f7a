// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many mutations of a target's seeds, and their results.

use crate::mutation::mutate;
use crate::{TARGETS, Target};
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Results of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub count: u64,
    /// Inputs of which at least a part was valid.
    pub understood: u64,
    /// Inputs that caused a panic.
    pub panics: Vec<Vec<u8>>,
    /// Maximum time of an input, and its number.
    pub slowest: (Duration, u64),
    /// Memory of this process after the first tenth of the inputs and after the last one, in bytes.
    pub memory: (u64, u64),
}

/// Runs a target with its unmodified seeds, and with `count` mutations from number `first` on.
pub fn run(target: &Target, first: u64, count: u64) -> Outcome {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    let mut outcome = Outcome::default();
    seeds.iter().for_each(|seed| outcome.try_one(target, seed, 0));
    for number in first..first + count {
        outcome.try_one(target, &input(target, &seeds, number), number);
        if number == first + count / 10 {
            outcome.memory.0 = resident();
        }
    }
    outcome.memory.1 = resident();
    outcome
}

/// Returns the mutation with this number, which depends only on the target, its seeds and the
/// number.
fn input(target: &Target, seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let place = TARGETS.iter().position(|one| one.name == target.name).unwrap_or_default() as u64;
    let mut random = Rng::with_seed(number << 8 | place);
    let mut bytes = seeds[random.usize(..seeds.len())].clone();
    mutate(&mut bytes, &mut random);
    bytes
}

impl Outcome {
    fn try_one(&mut self, target: &Target, bytes: &[u8], number: u64) {
        let begun = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| (target.check)(bytes))) {
            Ok(understood) => self.understood += u64::from(understood),
            Err(_) => self.panics.push(bytes.to_vec()),
        }
        self.slowest = self.slowest.max((begun.elapsed(), number));
        self.count += 1;
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        * 1024
}
