// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that can go wrong, and what does not.

mod clean;
mod pairs;
mod resources;
mod waits;

use super::fault::Fault;

/// By what they are about: waiting, resources, two at once, nothing.
const FAULTS: &[&[Fault]] = &[waits::FAULTS, resources::FAULTS, pairs::FAULTS, clean::FAULTS];

/// All faults and clean runs, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_plain() {
        let names: Vec<&str> = all().map(|fault| fault.name).collect();
        let plain =
            |name: &&str| name.chars().all(|letter| letter.is_ascii_lowercase() || "-0123456789".contains(letter));
        assert!(names.iter().all(plain), "{names:?}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }

    #[test]
    fn each_has_an_application_and_at_most_two_causes() {
        for fault in all() {
            assert!(!fault.apps.is_empty() && fault.kinds.len() <= 2, "{}", fault.name);
            assert!(fault.kinds.iter().all(|kinds| !kinds.is_empty()), "{}", fault.name);
        }
    }
}
