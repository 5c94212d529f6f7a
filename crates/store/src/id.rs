// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incident ids.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) const PIN_ENDING: &str = ".pin";
pub(crate) const ENDING: &str = ".tipme";
pub(crate) const PARTIAL_ENDING: &str = ".tipme.partial";
/// Maximum length of an incident id, in bytes; a file name has room for its ending besides.
const MAX_ID_BYTES: usize = 128;

/// Returns the id of an incident marked `realtime_ns` nanoseconds after 1970 UTC, such as
/// `20000229T235959.042Z`: UTC to the millisecond, so ids sort by time.
pub fn id_at(realtime_ns: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(realtime_ns.into())
        .expect("64 bits of nanoseconds end in 2554");
    time.strftime("%Y%m%dT%H%M%S.%3fZ").to_string()
}

/// Returns the id of an incident marked `age` ago.
pub fn id_ago(age: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    id_at(now.saturating_sub(age).as_nanos() as u64)
}

/// Returns `true` if an id is a plain file name: no path, no hidden file.
pub(crate) fn is_plain_id(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && !id.starts_with('.')
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Returns the name of the file that pins an incident.
pub(crate) fn pin_name(id: &str) -> String {
    format!("{id}{PIN_ENDING}")
}

#[cfg(test)]
mod tests {
    use super::id_at;

    /// Expected values from `date -u -d @SECONDS`.
    #[test]
    fn ids_are_utc_times() {
        for (realtime_ns, id) in [
            (42_999_999, "19700101T000000.042Z"),
            (951_868_799_042_999_999, "20000229T235959.042Z"),
            (951_868_800_042_999_999, "20000301T000000.042Z"),
            (1_735_689_599_042_999_999, "20241231T235959.042Z"),
            (4_107_542_400_042_999_999, "21000301T000000.042Z"),
            (u64::MAX, "25540721T233433.709Z"),
        ] {
            assert_eq!(id_at(realtime_ns), id);
        }
    }
}
