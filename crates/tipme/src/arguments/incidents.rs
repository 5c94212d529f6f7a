// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme incidents`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use tipme_analysis::model::CauseKind;

const SECONDS_OF_DAY: f64 = 86_400.0;
/// Maximum age for `--since`, in days.
const DAYS_MAX: f64 = 36_500.0;

#[derive(Args)]
#[command(after_help = "An incident is named by its id, by the beginning of its id, or by its file. Examples:
  tipme incidents --since 2d --app xterm
  tipme incidents show 20260101T12
  tipme incidents note \"the editor hung while I saved\"
  tipme incidents note 20260101T12 \"it was the backup\"")]
pub struct Incidents {
    #[command(subcommand)]
    pub verb: Option<IncidentsVerb>,
    /// The recorder's folder [default: /var/lib/tipme]
    #[arg(long, value_name = "DIR", global = true)]
    pub state_dir: Option<PathBuf>,
    /// One JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Those of the last time only, such as 90min, 12h or 3d
    #[arg(long, value_name = "TIME", value_parser = past)]
    pub since: Option<Duration>,
    /// Those of this application only
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// Those with a first cause of this kind only, such as disk-queue
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(CauseKind::CAUSES.iter().map(|kind| kind.name())))]
    pub kind: Option<String>,
}

#[derive(Subcommand)]
pub enum IncidentsVerb {
    /// One incident: its file, what was said of it, and its verdict
    Show {
        /// Which one [default: the newest]
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// Tell also where in the kernel something waited
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show one incident as a page in the browser
    Open {
        /// Which one [default: the newest]
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Add words of yours to an incident, the newest where the first word is no ID
    Note {
        /// What was bad, after the id where it is not about the newest
        #[arg(value_name = "[ID] WORDS", required = true)]
        words: Vec<String>,
    },
    /// Remove an incident of yours for good
    Rm {
        /// Which one
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Keep an incident of yours when the folder is full; 20 of them and 512 MiB at most
    Pin {
        /// Which one
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Let a pinned incident go again when the folder is full
    Unpin {
        /// Which one
        #[arg(value_name = "ID")]
        id: String,
    },
    /// The room that incidents take, and who has them
    DiskUsage,
}

/// Parses a duration of up to a hundred years, also in days.
fn past(text: &str) -> Result<Duration, String> {
    let Some(days) = text.strip_suffix('d') else {
        return tipme_command::duration(text).map_err(|_| "write it like 90min, 12h or 3d".to_owned());
    };
    let days: f64 = days.parse().map_err(|_| "write it like 90min, 12h or 3d".to_owned())?;
    let possible = days > 0.0 && days <= DAYS_MAX;
    possible
        .then(|| Duration::from_secs_f64(days * SECONDS_OF_DAY))
        .ok_or_else(|| format!("give more than 0d, and {DAYS_MAX}d at most"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_told_in_days_too() {
        assert_eq!(past("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(past("90min"), Ok(Duration::from_secs(5_400)));
        assert!(["d", "-1d", "0d", "99999d", "NaNd", "3"].into_iter().all(|text| past(text).is_err()));
    }
}
