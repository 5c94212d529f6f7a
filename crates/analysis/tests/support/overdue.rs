// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that took no timer interrupt.

use super::{Machinery, head};
use tipme_record::records::Overdue;
use tipme_record::{Nanos, RecordKind, RingClass, StackId};

impl Machinery {
    /// A CPU's timer interrupt at `us` that was `late`, with the thread and the kind of code that
    /// it hit.
    pub fn overdue(&mut self, us: u64, cpu: u32, late: u64, tid: u32, found: u32) -> &mut Self {
        self.overdue_in(us, cpu, late, tid, (found, StackId(0)))
    }

    /// The same for an interrupt that hit a kernel function.
    pub fn overdue_at(
        &mut self,
        us: u64,
        cpu: u32,
        late: u64,
        tid: u32,
        function: &str,
    ) -> &mut Self {
        let entry = "asm_sysvec_apic_timer_interrupt";
        let stack = self.stack(&["sysvec_apic_timer_interrupt", entry, function, "do_syscall_64"]);
        self.overdue_in(us, cpu, late, tid, (0, stack))
    }

    fn overdue_in(
        &mut self,
        us: u64,
        cpu: u32,
        late: u64,
        tid: u32,
        (found, stack): (u32, StackId),
    ) -> &mut Self {
        let head = head(us, tid, Overdue::SIZE, RecordKind::Overdue);
        let record = Overdue { head, nanos: Nanos(late * 1_000), found, stack };
        self.push(us, cpu, RingClass::Rare, &record, &[])
    }
}
