// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of activities and waits of threads.

use crate::explain::chain::{ChainPiece, Doing};
use crate::timeline::recording::Recording;
use crate::timeline::waits::{Waited, naps, writes_to_terminal};
use std::net::{IpAddr, SocketAddr};
use tipme_record::records::Wait;
use tipme_record::{Nanos, Pid, Tid};

/// Returns the state of a piece as named in JSON.
pub(crate) fn state_name(doing: &Doing) -> &'static str {
    match doing {
        Doing::Ran | Doing::Served(_) | Doing::Interrupted(_) => "running",
        Doing::Queued(_) => "runnable",
        Doing::Waited(..) => "blocked",
        Doing::Unknown => "unknown",
    }
}

/// Describes the activity of a piece.
pub(crate) fn doing_text(recording: &Recording, piece: &ChainPiece) -> String {
    match piece.doing {
        Doing::Ran => "ran".to_owned(),
        Doing::Served(place) => {
            let client =
                recording.messages.stream(place.stream).map_or(Pid(0), |stream| stream.client);
            format!("served requests of {}", process_text(recording, client, piece.lo))
        }
        Doing::Queued(_) if recording.throttled(piece.tid, piece.lo, piece.hi).is_some() => {
            "was throttled by the CPU quota of its group".to_owned()
        }
        Doing::Queued(Some(Tid(0))) => "was runnable while its CPU was idle".to_owned(),
        Doing::Queued(Some(by)) => {
            format!("was runnable while {} ran", thread_text(recording, by, piece.lo))
        }
        Doing::Queued(None) => "was runnable".to_owned(),
        Doing::Interrupted(source) => {
            format!("was interrupted by {}", source.name(&recording.meta.irq_names))
        }
        Doing::Waited(waited, wait) => file_text(recording, waited, wait.as_ref()),
        Doing::Unknown => "was not recorded".to_owned(),
    }
}

/// Describes a wait, with the file if its path is known.
fn file_text(recording: &Recording, waited: Waited, wait: Option<&Wait>) -> String {
    if waited.is_unnamed() {
        return unnamed_wait_text(recording, waited, wait);
    }
    let text = wait_text(waited, wait);
    match (waited, wait.and_then(|wait| recording.file(wait))) {
        (Waited::PageIn, Some(path)) => format!("waited for the page-in of {path}"),
        (Waited::Disk | Waited::DirtyLimit | Waited::Fsync | Waited::FileLock, Some(path)) => {
            format!("{text} of {path}")
        }
        _ => text,
    }
}

/// Describes a wait that has no name of its own by system call, file and kernel function: `waited
/// in openat of /a (dma_fence_wait)`.
pub(crate) fn unnamed_wait_text(
    recording: &Recording,
    waited: Waited,
    wait: Option<&Wait>,
) -> String {
    let text = wait_text(waited, wait);
    let file = wait
        .and_then(|wait| recording.file(wait))
        .map(|path| format!(" of {path}"))
        .unwrap_or_default();
    let function =
        wait.and_then(|wait| frames(recording, wait).into_iter().find(|name| !is_generic(name)));
    let function = function.map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{text}{file}{function}")
}

/// Returns `true` for generic wait helpers of the kernel: their callers describe the wait better.
fn is_generic(name: &str) -> bool {
    const GENERIC: [&str; 6] = [
        "wait_for_completion",
        "__wait_for_common",
        "do_wait_for_common",
        "wait_on_bit",
        "__wait_on_bit",
        "out_of_line_wait",
    ];
    GENERIC.iter().any(|prefix| name.starts_with(prefix))
}

/// Describes a wait, as in `slept in clock_nanosleep`.
pub(crate) fn wait_text(waited: Waited, wait: Option<&Wait>) -> String {
    let call = wait.and_then(|wait| match wait.call() {
        None if wait.syscall < 0 => None,
        None => Some(format!(" in system call {}", wait.syscall)),
        Some(call) => Some(format!(" in {call}")),
    });
    let call = call.unwrap_or_default();
    let what = match waited {
        Waited::Stopped if wait.is_some_and(writes_to_terminal) => {
            return "waited to write to its terminal".to_owned();
        }
        Waited::Stopped => return "was stopped".to_owned(),
        Waited::Thaw => "waited for a frozen file system",
        Waited::KernelLock => "waited for a kernel lock",
        Waited::SwapIn => "waited for a page from swap",
        Waited::Reclaim => "waited for memory to be freed",
        Waited::DirtyLimit => "waited for dirty pages to be written back",
        Waited::Fsync => "waited for data to reach the disk",
        Waited::PageIn => "waited for a page of a file",
        Waited::Disk => "waited for the disk",
        Waited::FileLock if wait.is_some_and(naps) => {
            return "slept between attempts to lock a file".to_owned();
        }
        Waited::FileLock => "waited for a file lock",
        Waited::Futex => "waited for a lock",
        Waited::Child => "waited for a child",
        Waited::Device => "waited for a device",
        Waited::Kernel => "waited for the kernel",
        Waited::Sleep => "slept",
        Waited::Network => "waited for the network",
        Waited::Peer => "waited for another process",
        Waited::Events => "waited for events",
        Waited::Unknown => "waited",
    };
    format!("{what}{call}")
}

/// Formats a process as `xterm (pid 12)`.
pub(crate) fn process_text(recording: &Recording, pid: Pid, at: Nanos) -> String {
    format!("{} (pid {pid})", recording.tasks.comm(pid, at))
}

/// Formats the process of a thread, with the thread name if it differs.
pub(crate) fn thread_text(recording: &Recording, tid: Tid, at: Nanos) -> String {
    let pid = recording.tasks.pid(tid, at);
    let process = process_text(recording, pid, at);
    let name = recording.tasks.thread_comm(tid, at);
    if pid.0 == tid.0 || name == recording.tasks.comm(pid, at) {
        process
    } else {
        format!("thread {name} of {process}")
    }
}

/// Returns the most telling functions of a wait's stack: the first few above the scheduler.
pub(crate) fn frames(recording: &Recording, wait: &Wait) -> Vec<String> {
    let functions = recording
        .names
        .kernel_functions(wait.stack)
        .skip_while(|name| SCHEDULER.iter().any(|prefix| name.starts_with(prefix)))
        .take(STACK_SHOWN);
    functions.map(str::to_owned).collect()
}

const SCHEDULER: [&str; 6] =
    ["__schedule", "schedule", "preempt_schedule", "io_schedule", "__cond_resched", "bpf_"];
const STACK_SHOWN: usize = 4;

/// Formats `10.0.0.1:443` or `[2001:db8::1]:443`.
pub(crate) fn address_text(address: Option<IpAddr>, port: u16) -> String {
    match address {
        None if port == 0 => "an unknown host".to_owned(),
        None => format!("an unknown host, port {port}"),
        Some(address) => SocketAddr::new(address, port).to_string(),
    }
}

/// Formats a duration for display: `2.31 s`, `14 ms`, `0.32 ms`.
pub(crate) fn span_text(span: Nanos) -> String {
    let ms = span.millis();
    match ms {
        999.5.. => format!("{:.2} s", ms / 1_000.0),
        9.95.. => format!("{ms:.0} ms"),
        1.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

/// Formats a number with separators: `1,412`.
pub(crate) fn count_text(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// Formats a number of bytes for display: `1.2 GiB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1_024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1_024.0;
    }
    format!("{value:.1} TiB")
}

/// Formats nanoseconds since 1970 as UTC time: `2026-01-31T12:00:00Z`.
pub(crate) fn time_text(realtime_ns: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(realtime_ns.into())
        .expect("64 bits of nanoseconds end in 2554");
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_for_people() {
        assert_eq!(span_text(Nanos(2_310_000_000)), "2.31 s");
        assert_eq!(span_text(Nanos(14_200_000)), "14 ms");
        assert_eq!(span_text(Nanos(320_000)), "0.32 ms");
        assert_eq!(count_text(1_412), "1,412");
        assert_eq!(count_text(12), "12");
        assert_eq!(bytes_text(1_288_490_189), "1.2 GiB");
        assert_eq!(bytes_text(512), "512 B");
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(time_text(0), "1970-01-01T00:00:00Z");
        assert_eq!(time_text(951_782_400_000_000_000), "2000-02-29T00:00:00Z");
        assert_eq!(time_text(1_769_860_800_000_000_000), "2026-01-31T12:00:00Z");
    }
}
