// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about the machine, and about processes older than the recording.

use std::path::Path;
use tipme_kernel::CommandLine;
use tipme_record::Pid;
use tipme_record::incident::Machine;

/// Returns the command lines of all live processes.
pub(crate) fn command_lines() -> Vec<CommandLine> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let text = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        (!text.is_empty()).then_some(CommandLine { pid: Pid(pid), text })
    })
    .collect()
}

/// Describes the machine for the incident.
pub(crate) fn machine() -> Machine {
    let names = rustix::system::uname();
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Machine {
        hostname: names.nodename().to_string_lossy().into_owned(),
        kernel: names.release().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        virtualized: flags.contains(" hypervisor"),
    }
}

/// Returns interrupt numbers with their names, the last column of /proc/interrupts.
pub(crate) fn interrupt_names() -> Vec<(u32, String)> {
    let text = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let named = text.lines().filter_map(|line| {
        let (number, rest) = line.trim_start().split_once(':')?;
        Some((number.parse().ok()?, rest.split_whitespace().last()?.to_owned()))
    });
    named.collect()
}

/// Returns block devices: number in the kernel's encoding, and name.
pub(crate) fn block_devices() -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/sys/class/block") else { return Vec::new() };
    let devices = entries.flatten().filter_map(|entry| {
        let numbers = std::fs::read_to_string(Path::new(&entry.path()).join("dev")).ok()?;
        let (major, minor) = numbers.trim().split_once(':')?;
        let number = (major.parse::<u32>().ok()? << 20) | minor.parse::<u32>().ok()?;
        Some((number, entry.file_name().to_string_lossy().into_owned()))
    });
    devices.collect()
}

/// Returns the nanoseconds since 1970 UTC.
pub(crate) fn realtime_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
