// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kind of wait of a blocked thread, from its stack, system call and file.
//!
//! Several signs may point to different kinds; the order of [`Waited`] decides: a thread that waits
//! for the disk inside `fsync` waits for the `fsync`, and one that polls sockets waits for events.

use crate::decode::names::Names;
use crate::timeline::contention::Contention;
use crate::timeline::threads::Span;
pub(crate) use crate::timeline::wait_functions::Waited;
use crate::timeline::wait_functions::stack_kind;
use std::collections::HashMap;
use tipme_record::records::Wait;
use tipme_record::{Nanos, StackId, SystemCall, Tid};

/// Key that distinguishes the waits of one thread: the system call, and the object it waits on.
pub(crate) type Signature = (Option<SystemCall>, u64);

/// System calls that determine the kind of wait.
fn usual_kind(call: SystemCall) -> Waited {
    use SystemCall as Call;
    match call {
        Call::msync
        | Call::fsync
        | Call::fdatasync
        | Call::sync
        | Call::sync_file_range
        | Call::syncfs => Waited::Fsync,
        Call::io_getevents | Call::io_pgetevents => Waited::Disk,
        Call::flock => Waited::FileLock,
        Call::futex | Call::futex_waitv => Waited::Futex,
        Call::vfork | Call::wait4 | Call::waitid => Waited::Child,
        Call::nanosleep | Call::clock_nanosleep => Waited::Sleep,
        call if is_event_call(call) => Waited::Events,
        _ => Waited::Unknown,
    }
}

/// Returns `true` for the calls that event loops use.
fn is_event_call(call: SystemCall) -> bool {
    use SystemCall as Call;
    matches!(
        call,
        Call::poll
            | Call::select
            | Call::pause
            | Call::rt_sigtimedwait
            | Call::rt_sigsuspend
            | Call::epoll_wait
            | Call::pselect6
            | Call::ppoll
            | Call::epoll_pwait
            | Call::io_uring_enter
            | Call::epoll_pwait2
    )
}

/// Mask for the operation without the flags for private memory and the clock.
const FUTEX_OPERATION: u64 = 0x7f;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_WAITERS: u32 = 0x8000_0000;
const FUTEX_OWNER: u32 = 0x3fff_ffff;
/// Maximum thread id of Linux (PID_MAX_LIMIT).
const OWNER_MAX: u32 = 4_194_304;
/// Lock word of a held and contended lock in the C library, GLib and Rust.
const LOCKED: u32 = 2;
const FUTEX_PRIVATE: u64 = 0x80;
/// Mask for a pair of adjacent words, between which the C library's conditions alternate.
const FUTEX_PAIR: u64 = !0xf;
/// Operations F_SETLKW and F_OFD_SETLKW of fcntl.
const SET_LOCK_WAIT: [u64; 2] = [7, 38];
pub(crate) const PIPE_FILES: u32 = 0x5049_5045;
const TERMINAL_FILES: u32 = 0x1cd1;
/// Magic numbers of remote file systems: NFS, SMB (three), Ceph, AFS (two), 9p.
const REMOTE_FILES: [u32; 8] =
    [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x5346_414f, 0x6b41_4653, 0x0102_1997];
pub(crate) const TYPE_BITS: u32 = 0o170_000;
pub(crate) const TYPE_FIFO: u32 = 0o010_000;
const TYPE_CHARACTER: u32 = 0o020_000;

/// Bits of a kernel task state in the records.
const STATE_UNINTERRUPTIBLE: u16 = 2;
const STATE_TRACED: u16 = 8;
const STATE_STOPPED: u16 = 4 | STATE_TRACED;
const STATE_NO_LOAD: u16 = 0x400;
const STATE_FROZEN: u16 = 0x4000;
const STATE_IO_WAIT: u16 = 0x8000;

/// Maximum distance to the nearest recorded wait of the thread, which gives the kind of an
/// uninterruptible wait without a record.
const NEIGHBOUR: Nanos = Nanos::from_millis(100);

/// Maximum number of records searched on each side for such a neighbour.
const NEIGHBOURS_MAX: usize = 16;

/// Maximum difference between two records of the same wait.
const TOLERANCE: Nanos = Nanos(50_000);

/// Maximum number of polls of a file in a window; a file polled more often belongs to an event
/// loop.
const LONE_MAX: usize = 2;

/// Context of a waker: a task, and the interrupt of a timer.
const IN_TASK: u16 = 0;
pub(crate) const HARD_INTERRUPT: u16 = 2;

/// Time limits of a poll, select or epoll_wait, as recorded.
pub(crate) const UNLIMITED: u16 = 1;
pub(crate) const LIMITED: u16 = 2;

/// Context of a waker in a softirq, as in segments: packets arrive there.
pub(crate) const SOFTIRQ: u8 = 1;

/// Wait records of an incident, with their meaning.
#[derive(Debug, Default)]
pub struct Waits {
    sorted: Vec<Wait>,
    by_stack: HashMap<StackId, Waited>,
    contention: Contention,
}

impl Waits {
    pub fn new(mut waits: Vec<Wait>, names: &Names, contention: Contention) -> Waits {
        waits.sort_by_key(|wait| (wait.head.tid, wait.head.ts));
        let by_stack: HashMap<_, _> =
            names.stacks().map(|(id, _)| (id, stack_kind(names.kernel_functions(id)))).collect();
        let restarted =
            waits.iter_mut().filter(|wait| wait.call() == Some(SystemCall::restart_syscall));
        restarted.for_each(|wait| {
            wait.syscall = by_stack.get(&wait.stack).map_or(wait.syscall, restarted_call)
        });
        Waits { sorted: waits, by_stack, contention }
    }

    /// Returns the record of a blocked segment: the one with the same wakeup, or the same begin.
    pub fn find(&self, span: &Span) -> Option<&Wait> {
        let from = (span.tid, span.end.before(TOLERANCE));
        let first = self.sorted.partition_point(|wait| (wait.head.tid, wait.head.ts) < from);
        let wait = self.sorted.get(first).filter(|wait| wait.head.tid == span.tid)?;
        let same_end = wait.head.ts <= span.end.after(TOLERANCE);
        (same_end || near(wait.start, span.start)).then_some(wait)
    }

    /// Returns the kind of wait of a blocked segment.
    pub fn kind(&self, span: &Span) -> Waited {
        let state = state_kind(span.segment.place);
        let wait = self.find(span);
        if state == Waited::Unknown
            && self.contention.covers(span)
            && wait.is_none_or(|wait| self.kind_of(wait) != Waited::Thaw)
        {
            return Waited::KernelLock;
        }
        wait.or_else(|| self.neighbour(span)).map_or(state, |wait| self.kind_of(wait).min(state))
    }

    /// Returns the nearest recorded uninterruptible wait of the same thread, for I/O if this one
    /// is. Only some short waits have a record.
    fn neighbour(&self, span: &Span) -> Option<&Wait> {
        let state = span.segment.place;
        if may_be_idle(state) {
            return None;
        }
        let waits = self.of_thread(span.tid);
        let (before, after) = waits.split_at(waits.partition_point(|wait| wait.head.ts < span.end));
        let before = before.iter().rev().take(NEIGHBOURS_MAX);
        let near = before.chain(after.iter().take(NEIGHBOURS_MAX));
        let alike = near.filter(|wait| {
            !may_be_idle(wait.state) && waits_for_io(wait.state) == waits_for_io(state)
        });
        let nearest = alike
            .map(|wait| (wait.head.ts.0.abs_diff(span.end.0), wait))
            .min_by_key(|(distance, _)| *distance);
        nearest.filter(|(distance, _)| *distance <= NEIGHBOUR.0).map(|(_, wait)| wait)
    }

    /// Returns the kind of wait of a record.
    pub(crate) fn kind_of(&self, wait: &Wait) -> Waited {
        if self.is_lone_timeout(wait) || is_condition(wait) && wait.context == HARD_INTERRUPT {
            return Waited::Sleep;
        }
        let stack = self.by_stack.get(&wait.stack).copied().unwrap_or(Waited::Unknown);
        let kind = stack.min(call_kind(wait)).min(file_kind(wait)).min(state_kind(wait.state));
        let of_disk =
            matches!(kind, Waited::Fsync | Waited::PageIn | Waited::Disk | Waited::Unknown);
        if of_disk && REMOTE_FILES.contains(&wait.magic) { Waited::Network } else { kind }
    }

    /// Returns `true` if a thread polled a single file or waited for a signal until a timeout, and
    /// does so only rarely: an event loop repeats its wait, so this was a sleep in the middle of
    /// the work.
    fn is_lone_timeout(&self, wait: &Wait) -> bool {
        if !has_timeout(wait) || wait.context == IN_TASK || !is_lone(wait) {
            return false;
        }
        let waits = self.of_thread(wait.head.tid).iter();
        let alike = waits.filter(|one| one.syscall == wait.syscall && one.args[0] == wait.args[0]);
        alike.take(LONE_MAX + 1).count() <= LONE_MAX
    }

    /// Returns `true` for a wait for unspecified further work, which is no cause by itself.
    ///
    /// Short waits without a record count if the thread was interruptible and waited for no I/O.
    pub(crate) fn is_idle(&self, span: &Span) -> bool {
        match self.kind(span) {
            Waited::Events => true,
            Waited::Unknown => may_be_idle(span.segment.place) && self.find(span).is_none(),
            _ => false,
        }
    }

    /// Returns `true` for a wait for a condition or semaphore in user space, as opposed to a lock.
    pub(crate) fn is_for_condition(&self, span: &Span) -> bool {
        self.find(span).is_some_and(is_condition)
    }

    /// Returns `true` if the wait may have timed out, judging by the first arguments of its call,
    /// or has no record.
    pub(crate) fn may_time_out(&self, span: &Span) -> bool {
        self.find(span).is_none_or(|wait| match self.kind_of(wait) {
            Waited::Events => match wait.limit {
                UNLIMITED => false,
                LIMITED => true,
                _ => !is_poll(wait) || has_timeout(wait),
            },
            kind => matches!(kind, Waited::Futex | Waited::Sleep),
        })
    }

    /// Returns all records of one thread, by time.
    pub(crate) fn of_thread(&self, tid: Tid) -> &[Wait] {
        let first = self.sorted.partition_point(|wait| wait.head.tid < tid);
        let last = self.sorted.partition_point(|wait| wait.head.tid <= tid);
        self.sorted.get(first..last).unwrap_or_default()
    }
}

/// Returns the system call that a stopped thread resumes, with the same arguments.
fn restarted_call(kind: &Waited) -> i32 {
    let call = match kind {
        Waited::Events => SystemCall::poll,
        Waited::Futex => SystemCall::futex,
        Waited::Sleep => SystemCall::clock_nanosleep,
        _ => SystemCall::restart_syscall,
    };
    call as i32
}

/// Returns `true` for an interruptible state, or the kernel's own idle state: uninterruptible, but
/// not counted as load.
fn may_be_idle(state: u16) -> bool {
    state & STATE_UNINTERRUPTIBLE == 0 || state & STATE_NO_LOAD != 0
}

/// Returns `true` for the state of a thread in an I/O wait.
pub(crate) fn waits_for_io(state: u16) -> bool {
    state & STATE_IO_WAIT != 0
}

fn near(a: Nanos, b: Nanos) -> bool {
    a.0.abs_diff(b.0) <= TOLERANCE.0
}

/// Returns `true` if the cgroup freezer held the thread.
pub(crate) fn is_frozen(wait: &Wait) -> bool {
    wait.state & STATE_FROZEN != 0
}

/// Returns `true` if a debugger held the thread.
pub(crate) fn is_traced(wait: &Wait) -> bool {
    wait.state & STATE_TRACED != 0
}

fn state_kind(state: u16) -> Waited {
    if waits_for_io(state) {
        Waited::Disk
    } else if state & (STATE_STOPPED | STATE_FROZEN) != 0 {
        Waited::Stopped
    } else {
        Waited::Unknown
    }
}

fn call_kind(wait: &Wait) -> Waited {
    if sleeps_without_files(wait) {
        return Waited::Sleep;
    }
    match wait.call() {
        Some(SystemCall::fcntl) if SET_LOCK_WAIT.contains(&wait.args[1]) => Waited::FileLock,
        call => call.map_or(Waited::Unknown, usual_kind),
    }
}

/// Recognizes `select` and `poll` without files, the portable ways to sleep.
fn sleeps_without_files(wait: &Wait) -> bool {
    wait.call().is_some_and(selects) && wait.args[0] as u32 == 0
        || is_poll(wait) && wait.args[1] as u32 == 0
}

/// Classifies by the file of a call. A regular file alone does not indicate the disk: its reader
/// may wait for a lock, for memory or for a thaw, and a wait for the disk is an I/O wait.
fn file_kind(wait: &Wait) -> Waited {
    // No particular process owes a connection.
    if polls(wait) || accepts(wait) {
        return Waited::Events;
    }
    if writes_to_terminal(wait) {
        return Waited::Peer;
    }
    match (wait.family, wait.magic, wait.mode & TYPE_BITS) {
        (2 | 10, _, _) => Waited::Network,
        (1, _, _) | (_, PIPE_FILES, _) | (_, _, TYPE_FIFO) => Waited::Peer,
        (16, _, _) | (_, TERMINAL_FILES, _) => Waited::Events,
        _ => Waited::Unknown,
    }
}

/// Returns `true` for a wait on a condition or semaphore in user space.
///
/// The C library waits for them with a bit set. GLib's conditions wait like locks, but on a
/// counter: a held and contended lock has the value [`LOCKED`], or its owner with a bit for
/// waiters.
pub(crate) fn is_condition(wait: &Wait) -> bool {
    let (operation, value) = (wait.args[1] & FUTEX_OPERATION, wait.args[2] as u32);
    let has_owner = value & FUTEX_WAITERS != 0 && value & FUTEX_OWNER <= OWNER_MAX;
    let counts = value != LOCKED && !has_owner;
    is_futex(wait) && (operation == FUTEX_WAIT_BITSET || operation == FUTEX_WAIT && counts)
}

/// Returns `true` for a wait on a futex private to the process.
pub(crate) fn is_private_futex(wait: &Wait) -> bool {
    is_futex(wait) && wait.args[1] & FUTEX_PRIVATE != 0
}

/// Returns `true` for a wait on a futex that processes may share.
pub(crate) fn is_shared_futex(wait: &Wait) -> bool {
    is_futex(wait) && wait.args[1] & FUTEX_PRIVATE == 0
}

/// Returns `true` for a wait for a client to connect.
pub(crate) fn accepts(wait: &Wait) -> bool {
    matches!(wait.call(), Some(SystemCall::accept | SystemCall::accept4))
}

/// Returns `true` for a variant of `select`.
pub(crate) fn selects(call: SystemCall) -> bool {
    matches!(call, SystemCall::select | SystemCall::pselect6)
}

fn is_poll(wait: &Wait) -> bool {
    matches!(wait.call(), Some(SystemCall::poll | SystemCall::ppoll))
}

pub(crate) fn is_futex(wait: &Wait) -> bool {
    wait.call() == Some(SystemCall::futex)
}

/// Returns `true` for a wait in the call that submits requests to a ring and waits for their
/// completion.
pub(crate) fn submits(wait: &Wait) -> bool {
    wait.call() == Some(SystemCall::io_uring_enter)
}

/// Returns `true` for a wait that only a signal ends.
pub(crate) fn awaits_signal(wait: &Wait) -> bool {
    use SystemCall::{pause, rt_sigsuspend, rt_sigtimedwait};
    matches!(wait.call(), Some(pause | rt_sigtimedwait | rt_sigsuspend))
}

/// Returns `true` for a wait that ends when the data of all programs is on the disk.
pub(crate) fn syncs_all(wait: &Wait) -> bool {
    matches!(wait.call(), Some(SystemCall::sync | SystemCall::umount2 | SystemCall::syncfs))
}

/// Returns `true` for a wait in a call that event loops use.
pub(crate) fn polls(wait: &Wait) -> bool {
    wait.call().is_some_and(is_event_call)
}

/// Returns `true` for a wait until a terminal accepts output.
pub(crate) fn writes_to_terminal(wait: &Wait) -> bool {
    matches!(wait.call(), Some(SystemCall::write | SystemCall::writev))
        && wait.magic == TERMINAL_FILES
}

/// Returns `true` for a call that reads a known file.
pub(crate) fn reads(wait: &Wait) -> bool {
    matches!(wait.call(), Some(SystemCall::read | SystemCall::readv))
        && (wait.mode != 0 || wait.magic != 0)
}

/// Returns `true` for a terminal, by the type bits of its mode and its file system.
pub(crate) fn is_terminal_file(mode: u32, magic: u32) -> bool {
    mode & TYPE_BITS == TYPE_CHARACTER || magic == TERMINAL_FILES
}

/// Returns `true` for a call by which programs sleep between retries.
pub(crate) fn naps(wait: &Wait) -> bool {
    matches!(wait.call(), Some(SystemCall::nanosleep | SystemCall::clock_nanosleep)) || polls(wait)
}

/// Returns `true` for a `poll` of a single file, or a wait for signals.
pub(crate) fn is_lone(wait: &Wait) -> bool {
    is_poll(wait) && wait.args[1] as u32 == 1 || wait.call() == Some(SystemCall::rt_sigtimedwait)
}

/// Returns `true` if the wait ends by itself: a `poll` or a wait for signals with a timeout, in
/// milliseconds or at an address.
pub(crate) fn has_timeout(wait: &Wait) -> bool {
    match wait.call() {
        Some(SystemCall::poll) => wait.args[2] as i32 > 0,
        Some(SystemCall::ppoll | SystemCall::rt_sigtimedwait) => wait.args[2] != 0,
        _ => false,
    }
}

/// Returns `true` for a `select` that timed out or that a device ended.
pub(crate) fn is_over(wait: &Wait) -> bool {
    wait.call().is_some_and(selects) && wait.context != IN_TASK
}

/// Returns the key that distinguishes a wait from the others of its thread. `file` is the inode of
/// the only polled file, if it is known.
pub(crate) fn signature(wait: &Wait, file: Option<u64>) -> Signature {
    use SystemCall::{epoll_pwait, epoll_pwait2, epoll_wait, futex, poll, select};
    match wait.call() {
        Some(futex) => (Some(futex), wait.args[0] & FUTEX_PAIR),
        Some(_) if is_poll(wait) && is_lone(wait) => (Some(poll), file.unwrap_or(0).max(1)),
        Some(_) if is_poll(wait) => (Some(poll), 0),
        Some(epoll_wait | epoll_pwait | epoll_pwait2) => (Some(epoll_wait), wait.args[0]),
        // Address of its file set, mostly on the stack: another address means another place in the
        // program.
        Some(call) if selects(call) => (Some(select), wait.args[1]),
        other => (other, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::threads::{Segment, ThreadState};
    use tipme_record::records::Lock;
    use tipme_record::{Head, Pid};
    use zerocopy::FromZeros;

    fn io_wait(ts: u64, syscall: i32) -> Wait {
        let mut wait = Wait::new_zeroed();
        (wait.head.tid, wait.head.ts, wait.start) =
            (Tid(7), Nanos::from_millis(ts), Nanos::from_millis(ts));
        (wait.pid, wait.syscall, wait.state) = (Pid(7), syscall, STATE_IO_WAIT | 2);
        wait
    }

    fn blocked(start: u64, end: u64, place: u16) -> Span {
        let (start, end) = (Nanos::from_millis(start), Nanos::from_millis(end));
        let segment =
            Segment { start, waker: Tid(0), place, state: ThreadState::Blocked, context: 2 };
        Span { tid: Tid(7), index: 0, start, end, segment }
    }

    #[test]
    fn an_io_wait_without_a_record_is_like_its_neighbours() {
        let waits = Waits::new(
            vec![io_wait(100, 74), io_wait(300, 0)],
            &Names::default(),
            Contention::default(),
        );
        for (start, state, expected) in [
            (150, STATE_IO_WAIT | 2, Waited::Fsync),
            (280, STATE_IO_WAIT | 2, Waited::Disk),
            (150, 2, Waited::Unknown),
            (410, STATE_IO_WAIT | 2, Waited::Disk),
            (20, STATE_IO_WAIT | 2, Waited::Fsync),
        ] {
            let span = blocked(start, start + 1, state);
            assert_eq!(waits.kind(&span), expected, "{state:#x} at {start} ms");
        }
    }

    #[test]
    fn a_counter_is_a_condition_and_a_held_lock_is_none() {
        for (operation, value, expected) in [
            (FUTEX_WAIT_BITSET, 0, true),
            (FUTEX_WAIT, 0, true),
            (FUTEX_WAIT, 7, true),
            (FUTEX_WAIT, 2, false),
            (FUTEX_WAIT, 0x8000_0123, false),
            (6, 0, false),
        ] {
            let mut wait = Wait::new_zeroed();
            (wait.syscall, wait.args[1], wait.args[2]) =
                (SystemCall::futex as i32, operation | FUTEX_PRIVATE, value);
            assert_eq!(is_condition(&wait), expected, "operation {operation}, value {value:#x}");
        }
    }

    #[test]
    fn a_local_file_is_the_disk_only_in_an_io_wait() {
        let mut wait = io_wait(1, 0);
        wait.mode = 0o100_000;
        let waits = Waits::new(Vec::new(), &Names::default(), Contention::default());
        assert_eq!(waits.kind_of(&wait), Waited::Disk);
        wait.state = 2;
        assert_eq!(waits.kind_of(&wait), Waited::Unknown);
        wait.magic = REMOTE_FILES[0];
        assert_eq!(waits.kind_of(&wait), Waited::Network);
    }

    /// Kind of a wait in `write` from 100 to 200 ms, which the kernel reports as a contended lock,
    /// with these functions on its stack.
    fn contended(functions: &[&str]) -> Waited {
        let head =
            Head { ts: Nanos::from_millis(200), tid: Tid(7), size: 0, kind: 0, generation: 0 };
        let mut wait = io_wait(200, 1);
        (wait.start, wait.state, wait.mode, wait.stack) =
            (Nanos::from_millis(100), 2, 0o100_000, StackId(1));
        let mut lock = Lock::new_zeroed();
        (lock.head, lock.nanos) = (head, Nanos::from_millis(100));
        let mut waits = Waits::new(vec![wait], &Names::default(), Contention::new(vec![lock]));
        waits.by_stack.insert(StackId(1), stack_kind(functions.iter().copied()));
        waits.kind(&blocked(100, 200, 2))
    }

    #[test]
    fn a_contended_lock_is_a_lock_unless_a_freeze_holds_it() {
        assert_eq!(contended(&["ext4_file_write_iter", "vfs_write"]), Waited::KernelLock);
        assert_eq!(contended(&["percpu_rwsem_wait", "vfs_write"]), Waited::Thaw);
    }
}
