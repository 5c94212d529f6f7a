// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds on the incidents that a recorder keeps.

use clap::Args;
use clap::builder::RangedI64ValueParser;
use tipme_command::size;
use tipme_store::{FolderBounds, Room};

/// Bounds on kept incidents. The newest always stays; pinned ones do not count.
#[derive(Args)]
pub struct KeepArguments {
    /// Maximum number of incidents; beyond it the oldest incidents of whichever user has the most
    /// are removed
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = count())]
    pub max_incidents: u32,
    /// Maximum size of all incidents, not counting the newest
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub max_size: u64,
    /// Maximum number of incidents of one user; beyond it that user's oldest are removed
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count())]
    pub max_user_incidents: u32,
    /// Maximum size of one user's incidents, not counting the newest
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub max_user_size: u64,
}

impl KeepArguments {
    pub fn bounds(&self) -> FolderBounds {
        FolderBounds {
            all: Room { bytes: self.max_size, count: self.max_incidents as usize },
            user: Room { bytes: self.max_user_size, count: self.max_user_incidents as usize },
        }
    }
}

fn count() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        kept: KeepArguments,
    }

    #[test]
    fn defaults_are_those_of_the_store() {
        assert_eq!(Alone::parse_from(["record"]).kept.bounds(), FolderBounds::default());
    }
}
