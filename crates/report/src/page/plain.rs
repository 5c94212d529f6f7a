// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kinds of causes are, for people who know nothing of schedulers, and which known fault is like them.

use tipme_analysis::model::Kind;

/// A kind of cause in plain words.
pub struct Plain {
    /// What it is called.
    pub name: &'static str,
    /// What happens then.
    pub what: &'static str,
    /// The fault of `tipme selftest` that shows the same; empty where there is none.
    pub fault: &'static str,
}

const fn plain(name: &'static str, what: &'static str, fault: &'static str) -> Plain {
    Plain { name, what, fault }
}

/// The words for a kind.
pub fn of(kind: Kind) -> Plain {
    match kind {
        Kind::DiskQueue | Kind::PageIn | Kind::SwapIn | Kind::Fsync | Kind::Reclaim => of_storage(kind),
        Kind::LockWait | Kind::KernelLock | Kind::PeerWait | Kind::ChildWait | Kind::NetworkWait => of_others(kind),
        Kind::ServerBusy | Kind::ServerGrab | Kind::Stopped | Kind::TimerSleep => of_standstill(kind),
        _ => of_processor(kind),
    }
}

fn of_storage(kind: Kind) -> Plain {
    match kind {
        Kind::PageIn => plain(
            "Reading a part of a program from disk",
            "Parts of a program or file are fetched from disk when they are first needed, or needed again. Until \
             such a part is there, the program stands still.",
            "page-in-behind-writer",
        ),
        Kind::SwapIn => plain(
            "Reading memory back from swap",
            "Memory ran short, so some of it was moved to disk. It had to be read back before the program could go \
             on.",
            "",
        ),
        Kind::Fsync => plain(
            "Waiting until data is safe on the disk",
            "The program asked the disk to confirm that its data is really stored. That takes until everything that \
             was ahead of it is stored too.",
            "fsync-behind-writeback",
        ),
        Kind::Reclaim => plain(
            "Waiting for memory to be freed",
            "Memory was used up. Before the program got some, the kernel had to take it from others, or held the \
             program back.",
            "memory-hog",
        ),
        _ => plain(
            "Waiting for a disk",
            "A disk does a few things at a time. What is asked of it while it is busy stands in a queue, and \
             whoever asked waits.",
            "disk-queue",
        ),
    }
}

fn of_others(kind: Kind) -> Plain {
    match kind {
        Kind::LockWait => plain(
            "Waiting for a lock",
            "Two threads or programs may not use the same thing at once, so one holds a lock and the other waits \
             until it is released.",
            "file-lock",
        ),
        Kind::KernelLock => plain(
            "Waiting for a lock inside the kernel",
            "Two threads used the same file or the same memory, and the kernel let one after the other.",
            "inode-lock",
        ),
        Kind::ChildWait => plain(
            "Waiting for a program that it had started",
            "The program started another one and did nothing else until that had ended.",
            "child-wait",
        ),
        Kind::NetworkWait => plain(
            "Waiting for the network",
            "The program had asked another computer, or a name server, and waited for the answer.",
            "loopback-service",
        ),
        _ => plain(
            "Waiting for another program",
            "The program had asked another program on this machine and waited for the answer.",
            "slow-helper",
        ),
    }
}

fn of_standstill(kind: Kind) -> Plain {
    match kind {
        Kind::ServerBusy => plain(
            "The display server was busy",
            "All programs share one display server, which passes on keys and draws windows. It was busy with \
             another program.",
            "server-busy",
        ),
        Kind::ServerGrab => plain(
            "The display was reserved by another program",
            "A program can reserve the display for itself. Until it lets go, nobody else is served.",
            "server-grab",
        ),
        Kind::Stopped => plain(
            "Stopped",
            "A program can be halted from outside, as if frozen. It does nothing until it is let go on.",
            "stopped",
        ),
        _ => plain(
            "Sleeping by itself",
            "The program had asked to be woken after some time, and did nothing until then.",
            "own-sleep",
        ),
    }
}

fn of_processor(kind: Kind) -> Plain {
    match kind {
        Kind::CpuCompetition => plain(
            "Waiting for a processor",
            "The program could have gone on, but the processor that it was to run on was busy with others.",
            "fork-storm",
        ),
        Kind::CpuThrottled => plain(
            "Held back by a limit on processor time",
            "The group that the program belongs to may use so much processor time and no more. It had used that up.",
            "cgroup-quota",
        ),
        Kind::OwnComputation => plain(
            "Computing",
            "The program itself was busy all that time: it computed and did not come to what you did.",
            "own-computation",
        ),
        Kind::Interrupt => plain(
            "Devices took the processor",
            "Devices interrupt whatever a processor does. Handling them took so long that the program had to wait.",
            "softirq-load",
        ),
        Kind::Stall => plain(
            "The machine itself stood still",
            "Time passed in which nothing ran that could be recorded: firmware, hardware, or the host of a virtual \
             machine.",
            "",
        ),
        _ => plain("Not explained", "Nothing that was recorded says what this time went to.", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_words_of_its_own() {
        let names: std::collections::BTreeSet<&str> = Kind::CAUSES.iter().map(|kind| of(*kind).name).collect();
        assert_eq!(names.len(), Kind::CAUSES.len());
        assert!(!names.contains(of(Kind::Unattributed).name));
    }
}
