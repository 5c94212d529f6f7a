// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel shares out CPU time by session.

/// True where each session has a share of its own, whatever the niceness of its processes.
pub fn autogroup_enabled() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1")
}
