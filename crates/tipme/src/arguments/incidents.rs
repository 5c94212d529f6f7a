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
#[command(after_help = "Give an incident by its id, the beginning of its id, or its file.

Examples:
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
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// List only incidents newer than this, such as 90min, 12h or 3d
    #[arg(long, value_name = "TIME", value_parser = past)]
    pub since: Option<Duration>,
    /// List only incidents of this application
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// List only incidents with a first cause of this kind, such as disk-queue
    #[arg(
        long,
        value_name = "KIND",
        value_parser = PossibleValuesParser::new(CauseKind::CAUSES.iter().map(|kind| kind.name()))
    )]
    pub kind: Option<String>,
}

#[derive(Subcommand)]
pub enum IncidentsVerb {
    /// Show an incident: its file, notes and verdict
    Show {
        /// Incident [default: the newest]
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// Also show kernel functions of waits
        #[arg(short, long)]
        verbose: bool,
    },
    /// Open an incident as a page in the browser
    Open {
        /// Incident [default: the newest]
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Add a note to an incident, by default the newest
    Note {
        /// The note, preceded by an id unless it is about the newest incident
        #[arg(value_name = "[ID] WORDS", required = true)]
        words: Vec<String>,
    },
    /// Delete one of your incidents
    Rm {
        /// Incident
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Keep one of your incidents when the folder is full; at most 20 and 512 MiB
    Pin {
        /// Incident
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Allow a pinned incident to be removed when the folder is full
    Unpin {
        /// Incident
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Show the disk space of incidents, by user
    DiskUsage,
}

/// Parses a duration of up to a hundred years, also in days.
fn past(text: &str) -> Result<Duration, String> {
    let Some(days) = text.strip_suffix('d') else {
        return tipme_command::duration(text)
            .map_err(|_| "write it like 90min, 12h or 3d".to_owned());
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
    fn days_are_durations_too() {
        assert_eq!(past("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(past("90min"), Ok(Duration::from_secs(5_400)));
        assert!(
            ["d", "-1d", "0d", "99999d", "NaNd", "3"].into_iter().all(|text| past(text).is_err())
        );
    }
}
