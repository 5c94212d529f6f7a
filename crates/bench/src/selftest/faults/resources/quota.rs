// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application may have no more of the CPU, however free that is.

use super::shortage::{NOTE, Shortage, ShortageEffects, order, shortfall};
use crate::group::ControlGroup;
use crate::selftest::fault::{Fault, PreparedFault};
use crate::selftest::site::Site;
use crate::selftest::workers::noted;
use anyhow::Result;
use std::path::PathBuf;
use tipme_record::Nanos;

pub(super) const QUOTA: Fault = Fault {
    name: "cgroup-quota",
    about: "the application's control group may have 5 ms of CPU time in each 100 ms",
    kinds: &[&["cpu-throttled"]],
    prepare: |site| quota(site, false),
    ..Fault::OURS
};

pub(super) const QUOTA_WITH_NEIGHBOUR: Fault = Fault {
    name: "quota-with-neighbour",
    about: "the same quota, while another process computes on the same CPU",
    kinds: &[&["cpu-throttled"]],
    pinned: true,
    prepare: |site| quota(site, true),
    ..Fault::OURS
};

/// Of each tenth of a second.
const QUOTA_US: u64 = 5000;
/// CPU time that the application needs for its key, in milliseconds.
const SPENT_MS: &str = "38";
/// How long the neighbour computes, in milliseconds.
const NEIGHBOUR_MS: &str = "9000";

/// The group, and whether somebody else is busy.
struct Quota {
    group: ControlGroup,
    neighbour: bool,
    /// Where the application notes its delay.
    note: PathBuf,
    /// How long the group had been held back when the fault began.
    before: Option<Nanos>,
}

fn quota(site: &Site, neighbour: bool) -> Result<Box<dyn PreparedFault>> {
    let (group, note) = (ControlGroup::with_cpu_quota(QUOTA_US)?, site.folder.join(NOTE));
    Ok(shortfall(site, Quota { group, neighbour, note, before: None }))
}

impl Quota {
    /// How long the group has been held back; unknown where the kernel does not count it.
    fn held_back(&self) -> Option<Nanos> {
        read_held_back(&std::fs::read_to_string(self.group.procs_file().with_file_name("cpu.stat")).ok()?)
    }

    /// Of what delayed the application, its turns on the CPU that the neighbour had do not count: the
    /// kernel knows how long it held the group back. Where that is unknown, the application's note stands.
    fn correct_note(&self) {
        let held_back = self.held_back().zip(self.before).map(|(now, before)| now.since(before));
        if let (Some(held_back), Ok(Some(noted))) = (held_back, noted(&self.note)) {
            let _ = std::fs::write(&self.note, held_back.min(noted).0.to_string());
        }
    }
}

/// Reads the statistics of a group, which count in nanoseconds or in microseconds.
fn read_held_back(statistics: &str) -> Option<Nanos> {
    let number = |line: &str, name: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
    statistics.lines().find_map(|line| {
        number(line, "throttled_time ")
            .or_else(|| number(line, "throttled_usec ").map(|time| time.saturating_mul(1000)))
            .map(Nanos)
    })
}

impl Shortage for Quota {
    fn begin(&mut self, site: &Site, app: u32) -> Result<ShortageEffects> {
        let culprits = site.family(app)?;
        let mut jobs = Vec::new();
        if self.neighbour {
            jobs.push(site.start("encoder", &["neighbour", NEIGHBOUR_MS], Some(site.cpu))?.process);
        }
        for pid in &culprits {
            self.group.take(*pid)?;
        }
        self.before = self.held_back();
        let names = vec![self.group.name().to_string()];
        Ok(ShortageEffects { jobs, orders: vec![order(site, "spend", &[SPENT_MS])], culprits, names })
    }

    fn end(&mut self) -> Vec<u32> {
        if self.neighbour {
            self.correct_note();
        }
        self.group.release();
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_held_back_is_read_in_both_units() {
        let old = read_held_back("nr_periods 3\nnr_throttled 2\nthrottled_time 5000\n");
        let new = read_held_back("usage_usec 9\nnr_throttled 2\nthrottled_usec 5\n");
        assert_eq!((old, new), (Some(Nanos(5000)), Some(Nanos(5000))));
        assert_eq!(read_held_back("nr_periods 3\n"), None);
    }
}
