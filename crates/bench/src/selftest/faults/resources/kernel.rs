// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel itself is busy for somebody, or holds a lock for somebody.

use super::shortage::{Shortage, ShortageEffects, order, shortfall};
use crate::cpus::allowed_cpus;
use crate::selftest::disk::{Format, PROGRAMS, PrivateDisk};
use crate::selftest::fault::Fault;
use crate::selftest::site::{START_TIMEOUT, Site, text};
use crate::selftest::workers::round_picoseconds;
use crate::worker;
use anyhow::{Context, Result};
use std::ffi::OsString;

pub(super) const SOFTIRQ: Fault = Fault {
    name: "softirq-load",
    about: "the application computes on the CPU that receives a flood of packets",
    kinds: &[&["interrupt", "cpu-competition"]],
    programs: &["unshare", "sh", "mount", "ip"],
    pinned: true,
    prepare: |site| Ok(shortfall(site, Flooded { picoseconds: round_picoseconds() })),
    ..Fault::OURS
};

pub(super) const MEMORY_MAP: Fault = Fault {
    name: "mmap-lock",
    about: "a thread of the application fills much memory, while another one wants to map a page",
    kinds: &[&["kernel-lock"]],
    prepare: |site| Ok(shortfall(site, MemoryMap)),
    ..Fault::OURS
};

pub(super) const INODE: Fault = Fault {
    name: "inode-lock",
    about: "the application appends to a file that another process writes in large portions",
    kinds: &[&["kernel-lock", "disk-queue"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, Inode { disk: PrivateDisk::make(&site.folder, Format::Plain)? })),
    ..Fault::OURS
};

/// Sockets that get each packet, and how long packets are sent, in milliseconds.
const SOCKETS: &str = "256";
const FLOOD_MS: &str = "7000";
/// Brings up a loopback interface of its own whose packets are received on the CPUs of mask 0.
const ENTER: &str = r#"
    mount -t sysfs sysfs /sys
    ip link set lo up
    echo "$0" > /sys/class/net/lo/queues/rx-0/rps_cpus
    exec "$@""#;

/// What a round of work takes while nothing is wrong.
struct Flooded {
    picoseconds: u64,
}

impl Shortage for Flooded {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let words = ["unshare", "--net", "--mount", "sh", "-euc", ENTER, &mask(site.cpu)].map(OsString::from);
        let flood = site.command("packet-flood", &["flood", SOCKETS, FLOOD_MS])?;
        let other = other_cpu(site.cpu).context("this needs two CPUs")?;
        let job = worker::start("packet-flood", worker::behind(&words, &flood)?, Some(other), START_TIMEOUT)?.process;
        let mut effects = ShortageEffects::with(job, order(site, "rounds", &[&self.picoseconds.to_string()]));
        effects.names.push("softirq network receive".to_string());
        Ok(effects)
    }
}

/// A set of one CPU as the kernel reads it: groups of 32 bits, the highest first.
fn mask(cpu: usize) -> String {
    format!("{:x}{}", 1u32 << (cpu % 32), ",00000000".repeat(cpu / 32))
}

/// A CPU that this process may use, besides one.
fn other_cpu(cpu: usize) -> Option<usize> {
    allowed_cpus().ok()?.into_iter().find(|other| *other != cpu)
}

/// Mebibytes that the other thread fills at a time.
const FILLED_MIB: &str = "256";

/// Nobody but the application is needed.
struct MemoryMap;

impl Shortage for MemoryMap {
    fn begin(&mut self, site: &Site, app: u32) -> Result<ShortageEffects> {
        let order = order(site, "remap", &[FILLED_MIB]);
        Ok(ShortageEffects { orders: vec![order], culprits: site.family(app)?, ..ShortageEffects::default() })
    }
}

const LOG: &str = "log";
/// Mebibytes of one write.
const PORTION_MIB: &str = "192";

/// The disk with the file.
struct Inode {
    disk: PrivateDisk,
}

impl Shortage for Inode {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        self.disk.write(LOG, b"begin\n", 1)?;
        let log = text(&self.disk.outside(LOG));
        let job = site.start("log-compactor", &["rewriter", &log, PORTION_MIB], None)?.process;
        Ok(ShortageEffects::with(job, order(site, "append", &[&log])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_reads_them() {
        assert_eq!(mask(1), "2");
        assert_eq!(mask(31), "80000000");
        assert_eq!(mask(33), "2,00000000");
    }
}
