// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme day`.

use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// Selection of a day, in local time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateChoice {
    Today,
    Yesterday,
    On(jiff::civil::Date),
}

impl FromStr for DateChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DateChoice, String> {
        match text {
            "today" => Ok(DateChoice::Today),
            "yesterday" => Ok(DateChoice::Yesterday),
            _ => text.parse().map(DateChoice::On).map_err(|_| {
                format!("{text:?} is not a day such as today, yesterday or 2026-01-31")
            }),
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Counting is off by default. tipme setup --day enables it in the service, sudo tipme record --day
in a recorder in the foreground; tipme status shows whether it is on. Counts by application and
hour and the times of the longest waits are kept for 32 days, and hold no keys or text; only you
and root can read them. A wait lasts from a press to the drawing that answers it, as long as the
program is busy or has not read the press. Think time is the rest, excluding gaps over 30 s.

Exit codes: 0 figures are shown, 1 nothing was counted on that day, 2 an error.

Examples:
  tipme day
  tipme day --date yesterday
  tipme day --date 2026-01-31 --json
  tipme day -o day.svg
  tipme day --forget")]
pub struct Day {
    /// The recorder's folder [default: /run/tipme and /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Day to show: today, yesterday or a date such as 2026-01-31
    #[arg(long, value_name = "DATE", default_value = "today")]
    pub date: DateChoice,
    /// User (name or id) to show instead of yourself; needs root
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Write the waits by hour and application as an SVG picture instead
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Delete all your counts, for all days
    #[arg(long, conflicts_with_all = ["date", "user", "json", "output"])]
    pub forget: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read() {
        assert_eq!("yesterday".parse(), Ok(DateChoice::Yesterday));
        assert_eq!("2026-01-31".parse(), Ok(DateChoice::On(jiff::civil::date(2026, 1, 31))));
        assert!(
            ["", "2026-02-30", "Today", "1"]
                .into_iter()
                .all(|text| DateChoice::from_str(text).is_err())
        );
    }
}
