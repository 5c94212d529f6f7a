// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for locks.

use super::{APP, Machinery, head, tid};
use tipme_record::records::Attempt;
use tipme_record::{Pid, RecordKind, RingClass};
use zerocopy::FromZeros;

pub const FUTEX: i32 = 202;

impl Machinery {
    /// A holder releases the lock for which the application has waited since `from`.
    pub fn get_lock(&mut self, from: u64, until: u64, holder: u32) -> &mut Self {
        self.wake_from(until - 150, holder, 0, 2, 0).switch(until - 100, 0, holder, 0);
        self.wake_from(until, APP, holder, 0, 1).switch(until + 10, 0, 0, 1);
        self.wait(until + 1, APP, from, |wait| {
            (wait.syscall, wait.args, wait.waker) = (FUTEX, [64, 0, 2], tid(holder));
        })
    }

    /// A thread tried to lock a file that another process holds, or acquired the lock (`failures`
    /// 0).
    pub fn attempt(&mut self, us: u64, tid: u32, holder: u32, failures: u32) -> &mut Self {
        let record = record!(Attempt {
            us,
            tid,
            pid: Pid(tid),
            holder: Pid(holder),
            failures: failures,
            inode: 55
        });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }
}
