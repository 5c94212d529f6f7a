// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that took no interrupt.

use super::{Machinery, head};
use tipme_record::records::Overdue;
use tipme_record::{Nanos, RecordKind, RingClass, StackId};

impl Machinery {
    /// The timer of a CPU that came so late at `us`, and what it found.
    pub fn overdue(&mut self, us: u64, cpu: u32, late: u64, tid: u32, found: u32) -> &mut Self {
        let head = head(us, tid, Overdue::SIZE, RecordKind::Overdue);
        let record = Overdue { head, nanos: Nanos(late * 1_000), found, stack: StackId(0) };
        self.push(us, cpu, RingClass::Rare, &record, &[])
    }
}
