// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of incidents.

pub(crate) const PIN_ENDING: &str = ".pin";
pub(crate) const ENDING: &str = ".tipme";
pub(crate) const PARTIAL_ENDING: &str = ".tipme.partial";
/// Bytes of an incident's id, at most; endings fit into a file name besides.
const MAX_ID_BYTES: usize = 128;

/// The id of an incident that was marked `realtime_ns` nanoseconds after 1970 UTC, such as
/// `20000229T235959.042Z`: UTC, to the millisecond; ids sort by time.
pub fn id_at(realtime_ns: u64) -> String {
    let millis = realtime_ns / 1_000_000;
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{:03}Z", of_day % 1000)
}

/// Year, month and day of a count of days since 1970, by the proleptic Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last day of a year; 719,468 days lie
/// between 1 March of year 0 and 1970, and 146,097 days make 400 years.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Whether an incident's id can be a file name and nothing else.
pub(crate) fn is_plain_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_ID_BYTES).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(plain)
}

/// The file that pins an incident.
pub(crate) fn pin_name(id: &str) -> String {
    format!("{id}{PIN_ENDING}")
}

#[cfg(test)]
mod tests {
    use super::id_at;

    /// The expectations are from `date -u -d @SECONDS`.
    #[test]
    fn ids_are_utc_times() {
        let id = |seconds: u64| id_at(seconds * 1_000_000_000 + 42_999_999);
        assert_eq!(id(0), "19700101T000000.042Z");
        assert_eq!(id(951_868_799), "20000229T235959.042Z");
        assert_eq!(id(951_868_800), "20000301T000000.042Z");
        assert_eq!(id(1_735_689_599), "20241231T235959.042Z");
        assert_eq!(id(4_107_542_400), "21000301T000000.042Z");
    }

    #[test]
    fn the_last_time_has_an_id() {
        assert_eq!(id_at(u64::MAX), "25540721T233433.709Z");
    }
}
