// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times of incidents, which their ids tell in UTC, as the clock on the wall shows them.

/// `2026-01-31 13:00:00` where the machine is one hour ahead of `20260131T120000.000Z`; the id where it tells no time.
pub fn local(id: &str) -> String {
    let time = seconds(id).and_then(|seconds| {
        // SAFETY: all of these are numbers, or null.
        let mut time: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both point to values of this frame, and are not kept.
        let converted = unsafe { libc::localtime_r(&seconds, &mut time) };
        (!converted.is_null()).then_some(time)
    });
    time.map_or_else(
        || id.to_owned(),
        |time| {
            let (year, month) = (time.tm_year + 1900, time.tm_mon + 1);
            let (day, hour, minute, second) = (time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        },
    )
}

/// Seconds since 1970 of an id that tells a time.
fn seconds(id: &str) -> Option<libc::time_t> {
    let number = |range: std::ops::Range<usize>| id.get(range)?.parse::<i32>().ok();
    if id.as_bytes().get(8) != Some(&b'T') {
        return None;
    }
    // SAFETY: all of these are numbers, or null.
    let mut time: libc::tm = unsafe { std::mem::zeroed() };
    (time.tm_year, time.tm_mon, time.tm_mday) = (number(0..4)? - 1900, number(4..6)? - 1, number(6..8)?);
    (time.tm_hour, time.tm_min, time.tm_sec) = (number(9..11)?, number(11..13)?, number(13..15)?);
    // SAFETY: it points to a value of this frame, and is not kept.
    Some(unsafe { libc::timegm(&mut time) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_seconds() {
        assert_eq!(seconds("20000229T235959.042Z"), Some(951_868_799));
        assert_eq!(seconds("20241231T235959.042Z"), Some(1_735_689_599));
        for other in ["one", "", "20241231X235959", "2024é231T235959.042Z"] {
            assert_eq!(seconds(other), None, "{other}");
            assert_eq!(local(other), other);
        }
    }
}
