// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colour classes of bars.

use crate::model::CauseKind;
use crate::timeline::waits::Waited;

/// Activity of a thread, cause of a share of the interval, or owner of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Look {
    Running,
    Ready,
    Disk,
    Memory,
    Lock,
    Peer,
    Server,
    Network,
    Stopped,
    Sleep,
    Idle,
    Interrupt,
    Unknown,
    /// Application that the user waited for, or one of its descendants.
    App,
    /// Job that the first finding names.
    Culprit,
    /// Any other process.
    Other,
    Kernel,
    Input,
    /// Input that the verdict explains.
    ThisInput,
    ToClient,
    FromClient,
}

impl Look {
    /// All looks in order of their numbers: a name for style sheets, and a description.
    pub const ALL: [(Look, &str, &str); 21] = [
        (Look::Running, "running", "computing on a CPU"),
        (Look::Ready, "ready", "ready, but waiting for a CPU"),
        (Look::Disk, "disk", "waiting for a disk"),
        (Look::Memory, "memory", "waiting for memory"),
        (Look::Lock, "lock", "waiting for a lock"),
        (Look::Peer, "peer", "waiting for another process"),
        (Look::Server, "server", "display server"),
        (Look::Network, "network", "waiting for the network"),
        (Look::Stopped, "stopped", "stopped"),
        (Look::Sleep, "sleep", "sleeping by itself"),
        (Look::Idle, "idle", "nothing to do"),
        (Look::Interrupt, "interrupt", "interrupts"),
        (Look::Unknown, "unknown", "not explained"),
        (Look::App, "app", "the application"),
        (Look::Culprit, "culprit", "the cause"),
        (Look::Other, "other", "other processes"),
        (Look::Kernel, "kernel", "kernel"),
        (Look::Input, "input", "other inputs"),
        (Look::ThisInput, "this", "this input"),
        (Look::ToClient, "to", "to the application"),
        (Look::FromClient, "from", "from the application"),
    ];

    /// Returns the name for style sheets.
    pub fn name(self) -> &'static str {
        Look::ALL[self as usize].1
    }

    /// Returns the look of a share of the interval with this cause.
    pub fn of_kind(kind: CauseKind) -> Look {
        match kind {
            CauseKind::OwnComputation => Look::Running,
            CauseKind::CpuCompetition | CauseKind::CpuThrottled => Look::Ready,
            CauseKind::PageIn
            | CauseKind::SwapIn
            | CauseKind::DiskQueue
            | CauseKind::IoHeldBack
            | CauseKind::Fsync => Look::Disk,
            CauseKind::Reclaim => Look::Memory,
            CauseKind::LockWait | CauseKind::KernelLock => Look::Lock,
            CauseKind::PeerWait | CauseKind::ChildWait => Look::Peer,
            CauseKind::ServerBusy | CauseKind::ServerGrab => Look::Server,
            CauseKind::NetworkWait => Look::Network,
            CauseKind::Stopped => Look::Stopped,
            CauseKind::TimerSleep => Look::Sleep,
            CauseKind::Interrupt => Look::Interrupt,
            CauseKind::KernelWait | CauseKind::Stall | CauseKind::Unattributed => Look::Unknown,
        }
    }

    /// Returns the look of a wait.
    pub(crate) fn of_wait(waited: Waited) -> Look {
        match waited {
            Waited::Disk | Waited::PageIn | Waited::SwapIn | Waited::DirtyLimit | Waited::Fsync => {
                Look::Disk
            }
            Waited::Reclaim => Look::Memory,
            Waited::FileLock | Waited::Futex | Waited::KernelLock | Waited::Thaw => Look::Lock,
            Waited::Child | Waited::Peer => Look::Peer,
            Waited::Network => Look::Network,
            Waited::Stopped => Look::Stopped,
            Waited::Sleep => Look::Sleep,
            Waited::Events => Look::Idle,
            Waited::Device | Waited::Kernel | Waited::Unknown => Look::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_stand_at_their_numbers() {
        assert!(Look::ALL.iter().enumerate().all(|(at, (look, ..))| *look as usize == at));
    }
}
