// SPDX-License-Identifier: MIT OR Apache-2.0
//! Amounts of memory as users write them: `64M`, `64MiB`, `1G`.

/// Parses a number of bytes with or without a unit; at most 4 GiB.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        unit => return Err(format!("invalid unit of memory {unit:?}; use K, M or G")),
    };
    let count: u64 = digits.parse().map_err(|_| format!("invalid number {digits:?}"))?;
    count
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes <= 4 << 30)
        .ok_or_else(|| "at most 4G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("4096"), Ok(4096));
        assert!(size("64X").is_err() && size("M").is_err() && size("99999999G").is_err());
    }
}
