// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declarations of the records. A new column takes one line here.

use crate::declare::{CType, Column, Table, records};
use crate::units::{Cpu, Device, Nanos, Pid, StackId, Tid};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Start of every record. The CPU is in the head of the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Head {
    /// Time of the record.
    pub ts: Nanos,
    /// Thread that the record is about, as each kind specifies.
    pub tid: Tid,
    /// Bytes of the whole record, a multiple of eight.
    pub size: u16,
    /// Number of the [`RecordKind`].
    pub kind: u8,
    /// Low byte of the chunk's `taken`.
    pub generation: u8,
}

records! {
    /// A CPU passes from `head.tid` to `next`.
    switch: Switch = 1 {
        /// The thread that runs from now on; 0 is idle.
        next: Tid,
        /// State of the thread that leaves: 0 runnable, else the kernel's task state bits; bit 15
        /// is I/O wait.
        prev_state: u16,
        /// Kernel priority of the thread that leaves (0 to 99 real-time, 120 nice 0).
        prev_prio: u8,
        /// Kernel priority of the thread that runs.
        next_prio: u8,
    }

    /// `head.tid` is being woken. The CPU of the record is the waker's.
    waking: Waking = 2 {
        /// Current thread at the wakeup; the cause only if `context` is 0.
        waker: Tid,
        /// CPU the wakee last ran on.
        target_cpu: u16,
        /// 0 task, 1 softirq, 2 hard interrupt.
        context: u8,
        /// Kernel priority of the wakee.
        prio: u8,
    }

    /// `head.tid` moves to another CPU's queue.
    migrate: Migrate = 3 {
        from: u16,
        to: u16,
        /// Thread that moved it.
        by: Tid,
    }

    /// `head.tid` creates a task.
    fork: Fork = 10 {
        /// Process of the creating thread.
        parent: Pid,
        child_tid: Tid,
        /// Equal to `child_tid` where a process was made, else a thread.
        child_pid: Pid,
        unused: u32,
    }

    /// Identity of `head.tid` at an exec. The tail is the command line, zero-separated.
    exec: Exec = 11 {
        pid: Pid,
        parent: Pid,
        group: Pid,
        session: Pid,
        /// Start of the process.
        start: Nanos,
        cgroup: u64,
        comm: [u8; 16],
    }

    /// Identity of `head.tid`, which ends. The tail is the command line of the process,
    /// zero-separated.
    exit: Exit = 12 {
        pid: Pid,
        parent: Pid,
        group: Pid,
        session: Pid,
        start: Nanos,
        cgroup: u64,
        comm: [u8; 16],
    }

    /// `head.tid` is named `comm` from now on.
    rename: Rename = 13 {
        comm: [u8; 16],
    }

    /// Identity and state of a task that lives at the mark, from the task walk.
    task: Task = 14 {
        pid: Pid,
        parent: Pid,
        group: Pid,
        session: Pid,
        start: Nanos,
        cgroup: u64,
        comm: [u8; 16],
        /// Kernel task state bits; 0 running or runnable; bit 15 is I/O wait.
        state: u32,
        /// CPU it is on or last was on.
        cpu: Cpu,
        /// CPUs it may use, the first 64.
        affinity: u64,
        prio: u32,
        /// Scheduling policy number.
        policy: u32,
    }

    /// A wait of `head.tid` and its cause, taken at the wakeup from a block of a millisecond or
    /// more, or at the mark if the thread still waits (`waker` is then 0). `head.ts` is the time of
    /// the wakeup or the mark. A shorter wait for I/O has a record if the thread's last one is ten
    /// milliseconds old. Kernel threads that wait for work have none at the wakeup.
    wait: Wait = 15 {
        /// Begin of the block, to about two microseconds.
        start: Nanos,
        pid: Pid,
        waker: Tid,
        /// Kernel stack of the waiting thread.
        stack: StackId,
        /// System call number; -1 in a page fault or kernel thread.
        syscall: i32,
        /// The first three system call arguments.
        args: [u64; 3],
        /// Inode of the file that argument 0 names, if it names one; in a page fault, of the file
        /// that was read.
        inode: u64,
        /// Device of that file's file system.
        device: Device,
        /// Type bits of the inode's mode (S_IFMT); 0 where there is no file.
        mode: u32,
        /// Magic number of the file system.
        magic: u32,
        /// AF_UNIX: process at the other end when it connected.
        peer: Pid,
        /// AF_INET: remote IPv4 address, network order. AF_INET6: the one that the remote address
        /// stands for, 127.0.0.1 where that is the machine itself; 0 where it stands for none, and
        /// `far_end` has it.
        address: u32,
        /// AF_INET and AF_INET6: remote port, host order. A datagram socket without a connection
        /// has the far end that it has sent to last, where nobody has given it a port (kernels from
        /// 6.3 on).
        port: u16,
        /// Socket family; 0 where it is not a socket.
        family: u16,
        /// Kernel task state bits; bit 15 is I/O wait.
        state: u16,
        /// Context of the waker, as in `waking`.
        context: u16,
        /// Type of the socket: 1 stream, 2 datagram; 0 where it is not a socket, or not known.
        socket: u16,
        /// Time limit of a poll, select or epoll_wait: 1 none, 2 given; 0 for other calls.
        limit: u16,
    }

    /// One of the files that `head.tid` polled in the wait with the same thread and time, where
    /// they are four at most.
    polled: Polled = 31 {
        inode: u64,
        /// Same as in `wait`.
        peer: Pid,
        address: u32,
        mode: u32,
        magic: u32,
        port: u16,
        family: u16,
        socket: u16,
        /// State of the socket: 1 connected, 10 accepts connections; 0 if it is not a socket. A
        /// datagram socket without a connection counts as connected if it has sent and has no bound
        /// port; `port` is 0 if the destination is not known.
        state: u8,
        /// Total number of files.
        files: u8,
    }

    /// Remote IPv6 address of a socket in the `wait` or `polled` record with the same thread, time
    /// and port, where it stands for no IPv4 address.
    far_end: FarEnd = 39 {
        /// The first eight bytes, network order.
        network: u64,
        /// The other eight.
        host: u64,
        /// Remote port, host order.
        port: u32,
        unused: u32,
    }

    /// `head.tid` tried to lock a file, without waiting, that somebody else has locked; or it got a
    /// lock on a file that was tried in vain within the last ten seconds.
    attempt: Attempt = 32 {
        inode: u64,
        device: Device,
        pid: Pid,
        /// Process that took the lock which is in the way, where the kernel knows it; it may have
        /// ended since.
        holder: Pid,
        /// Number of failures since the last such record of this thread, at most ten milliseconds
        /// ago; 0 if it got the lock.
        failures: u32,
    }

    /// An interrupt or softirq that took 50 microseconds or more, at its end, on the time of
    /// `head.tid`.
    irq: Irq = 20 {
        nanos: Nanos,
        /// Interrupt number, or softirq vector; 0xfffffff0 the CPU's own timer, 0xfffffff1 a call
        /// by another CPU.
        number: u32,
        /// 0 hard interrupt, 1 softirq.
        soft: u32,
    }

    /// A block request, at its completion, or at the mark if it is still in flight. `head.tid` is
    /// the current thread at its insertion, or at its issue if it bypassed the queue.
    block: Block = 21 {
        /// Time of its insertion into the device's queue.
        inserted: Nanos,
        /// Time at which the driver got it; 0 if it has not.
        issued: Nanos,
        /// First sector, of 512 bytes.
        sector: u64,
        bytes: u32,
        device: Device,
        /// Request operation, the low 8 bits of the kernel's flags: 0 read, 1 write, 2 flush, 3
        /// discard.
        op: u32,
        /// 1 complete, 0 in flight at the mark.
        done: u32,
    }

    /// Memory work begins or ends in `head.tid`.
    reclaim: Reclaim = 22 {
        /// 0 direct reclaim, 1 compaction, 2 throttled for dirty pages, 3 kswapd, 4 reclaim inside
        /// a control group that has reached its limit.
        what: u32,
        /// 0 begin, 1 end; dirty throttling has begins only.
        phase: u32,
        /// Pages reclaimed at the end of reclaim; pause in milliseconds at the begin of dirty
        /// throttling.
        amount: u64,
    }

    /// `head.tid` waited for a kernel lock, 100 microseconds or more; written at the end.
    lock: Lock = 23 {
        nanos: Nanos,
        /// Identity of the lock: a scrambled address.
        lock: u64,
        /// Owner when the wait began, where the lock names one.
        owner: Tid,
        /// The kernel's LCB_F bits: 1 spin, 2 read, 4 write, 8 real-time, 16 per CPU, 32 mutex.
        flags: u32,
        stack: StackId,
        unused: u32,
    }

    /// A work item or a timer of the kernel's took ten microseconds or more, at its end, on the
    /// time of `head.tid`, or at the mark where it is still at it; only with `--detail interrupts`.
    deferred: Deferred = 35 {
        nanos: Nanos,
        /// A stack of one frame: its function.
        function: StackId,
        /// 0 work item, 1 timer, 2 high-resolution timer.
        what: u32,
    }

    /// The hypervisor took 50 microseconds or more of this CPU's time since its last tick, as the
    /// kernel counts it; written at the tick that detects it.
    withdrawn: Withdrawn = 36 {
        nanos: Nanos,
        /// The tick before.
        since: Nanos,
    }

    /// The interrupt of the CPU's own timer came half a millisecond or more after the time that the
    /// timer was set to, on the time of `head.tid`: until then the CPU took no interrupt.
    overdue: Overdue = 37 {
        nanos: Nanos,
        /// Interrupted code: 0 kernel code, 1 kernel code that had just enabled interrupts again, 2
        /// a program.
        found: u32,
        /// The kernel's stack, with the functions of the interrupt.
        stack: StackId,
    }

    /// `head.tid` has to leave its CPU, since a control group around it has used up its quota of
    /// CPU time.
    throttled: Throttled = 38 {
        /// The kernel's number of the innermost such group, the inode of its folder.
        group: u64,
        /// CPU time in each period.
        quota: Nanos,
        period: Nanos,
        pid: Pid,
        unused: u32,
    }

    /// `head.tid` sends a signal that asks a process to end (1, 2, 3, 15), kills it (9), or stops
    /// it or lets it go on (18 to 22).
    signal: Signal = 24 {
        sender: Pid,
        target: Pid,
        number: u32,
        unused: u32,
    }

    /// A sample of the code that `head.tid` executes.
    sample: Sample = 25 {
        pid: Pid,
        kernel_stack: StackId,
        user_stack: StackId,
        unused: u32,
        /// Instruction pointer, user space where the sample hit it; of the kernel as in `Stacks`.
        ip: u64,
    }

    /// Display protocol bytes pass a socket; `head.tid` is the thread that sends or receives.
    /// The tail is `operations` words: byte 0 the request's major opcode or the event code without
    /// its top bit; byte 1 minor opcode, else 0; bytes 2 and 3: see *Words of a message*.
    message: Message = 26 {
        pid: Pid,
        /// Inode of the server's end: one connection.
        connection: u32,
        /// Process that connected.
        client: Pid,
        bytes: u32,
        /// 0 request sent, 1 request received, 2 event or reply sent, 3 event or reply received.
        direction: u8,
        operations: u8,
        /// Bit 0: more messages than `operations`; bit 1: bytes could not be read; bit 2: byte
        /// order is swapped.
        flags: u16,
        /// Number of the display, as in `:99`.
        display: u32,
    }

    /// Wayland protocol bytes pass a socket; `head.tid` is the thread that sends or receives. The
    /// tail is `operations` words of 12 bytes, for those messages that the analysis can make
    /// something of; see *Words of a Wayland message*.
    wl_message: WlMessage = 34 {
        pid: Pid,
        /// Inode of the server's end: one connection.
        connection: u32,
        /// Process that connected.
        client: Pid,
        bytes: u32,
        /// 0 request sent, 1 request received, 2 event sent, 3 event received.
        direction: u8,
        operations: u8,
        /// Bit 0: there may be more than `operations`; bit 1: bytes could not be read.
        flags: u16,
        /// Process that listened for the connection: the compositor, or the process that started
        /// it.
        server: Pid,
    }

    /// Terminal data passes: a writer queues it, or a kernel worker hands it to the reader's side.
    tty: Tty = 28 {
        /// Identity of one direction of a terminal: a scrambled address.
        port: u64,
        /// 0 written by `head.tid`, 1 delivered by the worker `head.tid`.
        stage: u32,
        /// Session that the terminal controls; 0 where it is not known.
        session: Pid,
    }

    /// `head.tid` did something `count` times since its last such record; only with `--detail`.
    tally: Tally = 30 {
        /// 0 made a folio of a file dirty, 1 changed the kernel's count of its process's memory.
        what: u32,
        count: u32,
    }

    /// An input event read from an evdev device: class only, never the key.
    input: Input = 29 {
        /// 0 key, 1 button, 2 motion, 3 scroll.
        class: u16,
        /// 1 pressed, 0 released or moved.
        press: u16,
        /// Number of the device.
        device: u32,
    }

    /// Owner of a process, at the exit of its first thread `head.tid`, or at the mark.
    owner: Owner = 33 {
        pid: Pid,
        /// The real user id.
        uid: u32,
    }
}
