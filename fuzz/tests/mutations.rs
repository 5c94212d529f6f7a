// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fixed number of mutations of every decoder's seeds: no panic, no memory growth. `make fuzz`
//! tries a hundred thousand of each.

use tipme_fuzz::{TARGETS, Target, run};

/// Numbers of mutations for targets that diagnose, and for those that only parse.
const SLOW: u64 = 500;
const FAST: u64 = 10_000;
/// Memory that a target may keep: tables that are filled once.
const GROWTH_MAX: u64 = 32 << 20;

fn count(target: &Target) -> u64 {
    let slow = ["incident", "diagnosis", "records", "wayland"].contains(&target.name);
    if slow { SLOW } else { FAST }
}

#[test]
fn no_decoder_panics_or_grows() {
    for target in &TARGETS {
        let outcome = run(target, 0, count(target));
        println!("{:12}{} inputs, {} understood", target.name, outcome.count, outcome.understood);
        assert_eq!(
            outcome.panics.len(),
            0,
            "{}: see: make fuzz FUZZ='--target {0} --count 10000'",
            target.name
        );
        assert!(outcome.understood > 0, "{}: not even a seed is understood", target.name);
        let (before, after) = outcome.memory;
        assert!(after < before + GROWTH_MAX, "{}: from {before} to {after} bytes", target.name);
    }
}

#[test]
fn every_target_understands_a_seed_and_names_differ() {
    for target in &TARGETS {
        assert!((target.seeds)().iter().any(|seed| (target.check)(seed)), "{}", target.name);
    }
    let names: std::collections::BTreeSet<&str> =
        TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), TARGETS.len());
}
