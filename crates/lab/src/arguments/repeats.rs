// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often something is measured.

/// One to a hundred times.
pub fn repeats(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=100).contains(count)).ok_or_else(|| "a number from 1 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_have_bounds() {
        assert_eq!(repeats("5"), Ok(5));
        assert!(["0", "101", "-1", "some"].into_iter().all(|text| repeats(text).is_err()));
    }
}
