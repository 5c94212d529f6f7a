// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work items and timers by function: the cause of activity of a kernel thread, an interrupt or a
//! softirq.

use crate::decode::names::Names;
use crate::timeline::interrupts::Source;
use tipme_record::records::Deferred;
use tipme_record::{Cpu, Nanos, Tid};

/// Values of the field `what` of a record.
const WORK: u32 = 0;
const TIMER: u32 = 1;
const HRTIMER: u32 = 2;

/// Softirq vectors of timers.
const TIMER_VECTOR: u32 = 1;
const HRTIMER_VECTOR: u32 = 8;

/// One call of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Call {
    /// Thread of a work item, CPU of a timer.
    place: u32,
    start: Nanos,
    end: Nanos,
    what: u32,
    function: String,
}

/// Recorded work items and timers.
#[derive(Debug, Default)]
pub struct DeferredCalls {
    /// By thread and start.
    works: Vec<Call>,
    /// By CPU and start.
    timers: Vec<Call>,
}

/// Part of a thread's time, with the function of the work item that ran in it.
pub(crate) type WorkTile<'a> = (Option<&'a str>, Nanos, Nanos);

impl DeferredCalls {
    pub fn new(records: &[(Cpu, Deferred)], names: &Names) -> DeferredCalls {
        let calls = records.iter().filter_map(|(cpu, record)| call(*cpu, record, names));
        let (mut works, mut timers): (Vec<Call>, Vec<Call>) =
            calls.partition(|call| call.what == WORK);
        for calls in [&mut works, &mut timers] {
            calls.sort_by_key(|call| (call.place, call.start, call.end));
        }
        DeferredCalls { works, timers }
    }

    /// Tiles `lo..hi` of a thread with its work items and the gaps between them.
    pub(crate) fn tiles(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Vec<WorkTile<'_>> {
        let (mut at, mut tiles) = (lo, Vec::new());
        for call in within(&self.works, tid.0, lo, hi) {
            let (start, end) = (call.start.max(at), call.end.min(hi).max(at));
            tiles.push((None, at, start));
            tiles.push((Some(call.function.as_str()), start, end));
            at = end;
        }
        tiles.push((None, at, hi));
        tiles.retain(|(_, lo, hi)| lo < hi);
        tiles
    }

    /// Returns the timer function that an interrupt or softirq ran for at least half of `lo..hi`.
    pub(crate) fn timer(&self, cpu: Cpu, source: Source, lo: Nanos, hi: Nanos) -> Option<&str> {
        let what = match (source.soft, source.number) {
            (true, TIMER_VECTOR) => TIMER,
            (true, HRTIMER_VECTOR) | (false, _) => HRTIMER,
            _ => return None,
        };
        let calls = within(&self.timers, cpu.0, lo, hi).filter(|call| call.what == what);
        let timed = calls.map(|call| (call.end.min(hi).since(call.start.max(lo)).0, call));
        let (length, longest) = timed.max_by_key(|(length, _)| *length)?;
        (2 * length >= hi.since(lo).0).then_some(longest.function.as_str())
    }
}

/// Returns `None` if the function has no known name.
fn call(cpu: Cpu, record: &Deferred, names: &Names) -> Option<Call> {
    let function = names.kernel_functions(record.function).next()?.to_owned();
    let place = if record.what == WORK { record.head.tid.0 } else { cpu.0 };
    let start = record.head.ts.before(record.nanos);
    Some(Call { place, start, end: record.head.ts, what: record.what, function })
}

/// Returns the calls at a place that overlap `lo..hi`. Few calls overlap each other, so the search
/// may start by their ends.
fn within(calls: &[Call], place: u32, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &Call> {
    let first = calls.partition_point(|call| (call.place, call.end) <= (place, lo));
    let rest = calls.get(first..).unwrap_or_default().iter();
    rest.take_while(move |call| call.place == place && call.start < hi)
        .filter(move |call| call.end > lo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::{Head, StackId};

    /// Returns symbol names for functions one and two, as the recorder writes them.
    fn names() -> Names {
        let (mut stacks, mut symbols) = (Vec::new(), Vec::new());
        for (id, name) in [(1u32, "one_work"), (2, "two_timer")] {
            stacks.extend(id.to_le_bytes());
            stacks.extend(1u32.to_le_bytes());
            stacks.extend((0x1000 + u64::from(id)).to_le_bytes());
            symbols.extend(0u32.to_le_bytes());
            symbols.extend((name.len() as u16).to_le_bytes());
            symbols.extend(0u16.to_le_bytes());
            symbols.extend((0x1000 + u64::from(id)).to_le_bytes());
            symbols.extend(name.as_bytes());
            symbols.resize(symbols.len().next_multiple_of(8), 0);
        }
        Names::read(&stacks, &symbols)
    }

    fn record(
        cpu: u32,
        tid: u32,
        start: u64,
        end: u64,
        what: u32,
        function: u32,
    ) -> (Cpu, Deferred) {
        let head = Head { ts: Nanos(end), tid: Tid(tid), size: 32, kind: 35, generation: 0 };
        (Cpu(cpu), Deferred { head, nanos: Nanos(end - start), function: StackId(function), what })
    }

    #[test]
    fn the_time_of_a_worker_is_that_of_its_items() {
        let calls = DeferredCalls::new(
            &[
                record(0, 7, 100, 200, WORK, 1),
                record(1, 7, 300, 400, WORK, 1),
                record(0, 8, 0, 900, WORK, 2),
            ],
            &names(),
        );
        let tiles: Vec<_> = calls
            .tiles(Tid(7), Nanos(50), Nanos(350))
            .into_iter()
            .map(|(name, lo, hi)| (name, lo.0, hi.0))
            .collect();
        let one = Some("one_work");
        assert_eq!(tiles, [(None, 50, 100), (one, 100, 200), (None, 200, 300), (one, 300, 350)]);
        assert_eq!(calls.tiles(Tid(9), Nanos(50), Nanos(350)), [(None, Nanos(50), Nanos(350))]);
    }

    #[test]
    fn a_timer_that_took_most_of_an_interrupt_names_it() {
        let calls = DeferredCalls::new(
            &[
                record(0, 3, 100, 180, HRTIMER, 2),
                record(0, 3, 300, 320, TIMER, 1),
                record(0, 3, 10, 20, WORK, 9),
            ],
            &names(),
        );
        for (cpu, number, soft, (lo, hi), expected) in [
            (0, 0xffff_fff0, false, (90, 190), Some("two_timer")),
            (0, 0xffff_fff0, false, (0, 400), None),
            (0, 1, true, (290, 330), Some("one_work")),
            (0, 3, true, (290, 330), None),
            (1, 1, true, (290, 330), None),
        ] {
            let found = calls.timer(Cpu(cpu), Source { number, soft }, Nanos(lo), Nanos(hi));
            assert_eq!(found, expected, "{number} on CPU {cpu} in {lo}..{hi}");
        }
    }
}
