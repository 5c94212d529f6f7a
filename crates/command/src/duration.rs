// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations as users write them: `10s`, `1.5ms`, `100us`.

use std::time::Duration;

/// Maximum duration.
const LONGEST_S: f64 = 86_400.0;

/// Parses a positive duration with its unit: ns, us, ms, s, min or h.
pub fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_alphabetic());
    let seconds = match &text[number.len()..] {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3_600.0,
        "" => return Err("missing unit; write for example 10s, 1ms or 100us".to_owned()),
        unit => return Err(format!("invalid unit of time {unit:?}; use us, ms, s, min or h")),
    };
    let count: f64 = number.parse().map_err(|_| format!("invalid number {number:?}"))?;
    let time = count * seconds;
    if time > 0.0 && time <= LONGEST_S {
        return Ok(Duration::from_secs_f64(time));
    }
    Err("it must be positive and at most a day".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1_500)));
        assert_eq!(duration("100us"), duration("100µs"));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["10", "-1s", "0s", "1 day", "NaNs", "infs", "2d", "25h", "s", ""] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
