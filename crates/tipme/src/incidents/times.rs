// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of incidents: ids contain UTC, output uses local time.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Returns `2026-01-31 13:00:00` for `20260131T120000.000Z` if local time is one hour ahead; the id
/// itself if it contains no time.
pub fn local(id: &str) -> String {
    match time(id) {
        Some(time) => {
            TimeZone::system().to_datetime(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        None => id.to_owned(),
    }
}

/// Returns the last midnight in seconds since 1970.
pub fn morning() -> Option<i64> {
    let zone = TimeZone::system();
    let today = zone.to_datetime(Timestamp::now()).date();
    zone.to_timestamp(today.at(0, 0, 0, 0)).ok().map(Timestamp::as_second)
}

/// Returns the time in an id, in whole seconds since 1970.
pub fn seconds(id: &str) -> Option<i64> {
    time(id).map(Timestamp::as_second)
}

/// Returns the time in an id, with a resolution of one second.
fn time(id: &str) -> Option<Timestamp> {
    let utc = DateTime::strptime("%Y%m%dT%H%M%S", id.get(..15)?).ok()?;
    TimeZone::UTC.to_timestamp(utc).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_contain_times() {
        assert_eq!(seconds("20000229T235959.042Z"), Some(951_868_799));
        assert_eq!(seconds("20241231T235959.042Z"), Some(1_735_689_599));
        for other in ["one", "", "20241231X235959", "20241331T235959", "2024é231T235959.042Z"] {
            assert_eq!(seconds(other), None, "{other}");
            assert_eq!(local(other), other);
        }
    }
}
