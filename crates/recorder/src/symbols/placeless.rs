// SPDX-License-Identifier: MIT OR Apache-2.0
//! Position-independent form of kernel addresses.
//!
//! The owner of an incident must not learn the kernel's load address (KASLR), which would help to
//! exploit a bug. So each address becomes the number of a function and an offset into it, which are
//! the same at any load address. Stack ids are derived from addresses, so they are replaced too,
//! and leftovers of earlier uses of chunks are cleared.

use super::Stacks;
use super::names::{KERNEL, push};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::mem::offset_of;
use tipme_record::records::{Deferred, Lock, Message, Overdue, Sample, Wait, WlMessage};
use tipme_record::wayland::WlWord;
use tipme_record::{ChunkHead, Head, RecordKind, StackId, entries};
use zerocopy::FromBytes;

/// Bit set in every replaced kernel address; no user address has it.
const PLACELESS: u64 = 1 << 63;

/// Lowest bit of the function number; the bits below are the offset into the function.
const FUNCTION_SHIFT: u32 = 24;

/// Number of all functions with an unknown name.
const NAMELESS: u64 = 0;

/// Bytes of the kernel's symbol table read at once.
const TABLE_BYTES: usize = 64 * 1024;

/// Replacements of the addresses and stacks of one incident.
pub(crate) struct Placeless {
    /// Functions sorted by name, so that their numbers reveal nothing about their addresses.
    names: Vec<String>,
    numbers: HashMap<u64, u64>,
    /// Stacks sorted by their new content, for the same reason; the id is the index plus one.
    stacks: Vec<Vec<u64>>,
    ids: HashMap<StackId, u32>,
}

impl Placeless {
    /// Finds in the text of /proc/kallsyms the nearest function below each kernel address in
    /// samples and stacks.
    pub(crate) fn new(table: Option<File>, sampled: BTreeSet<u64>, stacks: &Stacks) -> Placeless {
        let all = stacks.values().flatten().copied().chain(sampled);
        let addresses = all.filter(|ip| *ip >= KERNEL).collect();
        match table {
            Some(file) => {
                Placeless::among(BufReader::with_capacity(TABLE_BYTES, file), &addresses, stacks)
            }
            None => Placeless::among(std::io::empty(), &addresses, stacks),
        }
    }

    fn among(table: impl BufRead, addresses: &BTreeSet<u64>, stacks: &Stacks) -> Placeless {
        let below = nearest(table, &addresses.iter().copied().collect::<Vec<u64>>());
        let names: BTreeSet<&str> = below.values().map(|(_, name)| name.as_str()).collect();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut numbers: HashMap<u64, u64> = addresses.iter().map(|ip| (*ip, PLACELESS)).collect();
        for (ip, (start, name)) in &below {
            if let Ok(at) = names.binary_search(name) {
                let offset = (ip - start).min((1 << FUNCTION_SHIFT) - 1);
                numbers.insert(*ip, PLACELESS | ((at as u64 + 1) << FUNCTION_SHIFT) | offset);
            }
        }
        let mut placeless = Placeless { names, numbers, stacks: Vec::new(), ids: HashMap::new() };
        placeless.number_stacks(stacks);
        placeless
    }

    fn number_stacks(&mut self, stacks: &Stacks) {
        let mut ordered: BTreeMap<Vec<u64>, Vec<StackId>> = BTreeMap::new();
        for (id, ips) in stacks {
            ordered.entry(ips.iter().map(|ip| self.number(*ip)).collect()).or_default().push(*id);
        }
        for (index, (content, ids)) in ordered.into_iter().enumerate() {
            self.stacks.push(content);
            self.ids.extend(ids.into_iter().map(|id| (id, index as u32 + 1)));
        }
    }

    fn number(&self, ip: u64) -> u64 {
        if ip < KERNEL { ip } else { self.numbers.get(&ip).copied().unwrap_or(PLACELESS) }
    }

    /// Returns the new id of a stack; 0 for one evicted from the table.
    fn id(&self, id: StackId) -> u32 {
        self.ids.get(&id).copied().unwrap_or(0)
    }

    /// Adds the names of the kernel's functions to the symbol section.
    pub(crate) fn push_to(&self, out: &mut Vec<u8>) {
        for number in self.numbers.values().copied().collect::<BTreeSet<u64>>() {
            let function = (number & !PLACELESS) >> FUNCTION_SHIFT;
            let index = function.checked_sub(NAMELESS + 1);
            let name = index.and_then(|index| self.names.get(index as usize));
            name.into_iter().for_each(|name| push(out, 0, number, name, ""));
        }
    }

    /// Returns the stack section.
    pub(crate) fn stacks(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, ips) in self.stacks.iter().enumerate() {
            out.extend_from_slice(&(index as u32 + 1).to_le_bytes());
            out.extend_from_slice(&(ips.len() as u32).to_le_bytes());
            ips.iter().for_each(|ip| out.extend_from_slice(&ip.to_le_bytes()));
        }
        out
    }

    /// Returns a chunk with cleaned records and nothing else.
    pub(crate) fn cleaned(&self, chunk: &[u8]) -> Vec<u8> {
        let mut clean = vec![0; chunk.len()];
        let head = size_of::<ChunkHead>().min(chunk.len());
        clean[..head].copy_from_slice(&chunk[..head]);
        for entry in entries(chunk) {
            let at = entry.bytes.as_ptr() as usize - chunk.as_ptr() as usize;
            let place = &mut clean[at..at + entry.bytes.len()];
            place.copy_from_slice(entry.bytes);
            self.clean(place);
        }
        clean
    }

    /// Cleans consecutive records.
    pub(crate) fn clean_loose(&self, mut section: &mut [u8]) {
        while let Ok((head, _)) = Head::read_from_prefix(section) {
            let Some((record, rest)) = section.split_at_mut_checked(usize::from(head.size).max(1))
            else {
                return;
            };
            self.clean(record);
            section = rest;
        }
    }

    fn clean(&self, record: &mut [u8]) {
        let Ok((head, _)) = Head::read_from_prefix(record) else { return };
        let stacks: &[usize] = match RecordKind::from_number(head.kind) {
            Some(RecordKind::Sample) => {
                let Some(sample) = Sample::read(record) else { return };
                put(record, offset_of!(Sample, ip), &self.number(sample.ip).to_le_bytes());
                &[offset_of!(Sample, kernel_stack), offset_of!(Sample, user_stack)]
            }
            Some(RecordKind::Wait) => &[offset_of!(Wait, stack)],
            Some(RecordKind::Deferred) => &[offset_of!(Deferred, function)],
            Some(RecordKind::Overdue) => &[offset_of!(Overdue, stack)],
            Some(RecordKind::Lock) => &[offset_of!(Lock, stack)],
            Some(RecordKind::Message) => {
                let Some(message) = Message::read(record) else { return };
                clear_behind(
                    record,
                    Message::SIZE + size_of::<u32>() * usize::from(message.operations),
                );
                &[]
            }
            Some(RecordKind::WlMessage) => {
                let Some(message) = WlMessage::read(record) else { return };
                clear_behind(
                    record,
                    WlMessage::SIZE + WlWord::SIZE * usize::from(message.operations),
                );
                &[]
            }
            _ => &[],
        };
        for at in stacks {
            let Some(id) =
                record.get(*at..).and_then(|place| StackId::read_from_prefix(place).ok())
            else {
                return;
            };
            put(record, *at, &self.id(id.0).to_le_bytes());
        }
    }
}

/// Clears the padding after the words of a message, which an older record left there.
fn clear_behind(record: &mut [u8], end: usize) {
    record.get_mut(end..).into_iter().for_each(|padding| padding.fill(0));
}

fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Returns for each of the sorted addresses the nearest function at or below it, with its start.
///
/// The table has some hundred thousand unsorted lines, so it is read once and not kept. A function
/// only matters for the first address at or after its start: there the one with the greatest start
/// wins, and it holds for all addresses up to the start of another function.
fn nearest(mut table: impl BufRead, addresses: &[u64]) -> HashMap<u64, (u64, String)> {
    let mut best = vec![(0, String::new()); addresses.len()];
    let mut line = String::new();
    while table.read_line(&mut line).is_ok_and(|count| count > 0) {
        if let Some((start, name)) = function(line.trim_end())
            && let Some(slot) = best.get_mut(addresses.partition_point(|ip| *ip < start))
            && start > slot.0
        {
            slot.0 = start;
            slot.1.clear();
            slot.1.push_str(name);
        }
        line.clear();
    }
    let mut below = HashMap::new();
    let mut last = None;
    for (ip, slot) in addresses.iter().zip(best) {
        last = if slot.0 != 0 { Some(slot) } else { last };
        below.extend(last.clone().map(|function| (*ip, function)));
    }
    below
}

/// Parses `ffffffff81000000 T name [module]` if the address is visible and the symbol is code.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split([' ', '\t']);
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    (start != 0 && matches!(kind, "t" | "T" | "w" | "W")).then_some((start, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::{CHUNK_BYTES, Nanos, Pid, Tid};
    use zerocopy::{FromZeros, IntoBytes};

    const TABLE: &str =
        "ffffffff81000000 T zebra\nffffffff81000100 t ant\nffffffff81000180 D no_code\n";
    const IN_ZEBRA: u64 = 0xffff_ffff_8100_0010;
    const IN_ANT: u64 = 0xffff_ffff_8100_0190;
    const BELOW_ALL: u64 = 0xffff_ffff_8000_0000;

    fn placeless(stacks: &[(u32, &[u64])]) -> Placeless {
        let stacks = stacks.iter().map(|(id, ips)| (StackId(*id), ips.to_vec())).collect();
        Placeless::among(TABLE.as_bytes(), &BTreeSet::from([IN_ZEBRA, IN_ANT, BELOW_ALL]), &stacks)
    }

    #[test]
    fn addresses_become_names_without_a_place() {
        let names = placeless(&[]);
        assert_eq!(names.names, ["ant", "zebra"]);
        assert_eq!(names.number(IN_ZEBRA), PLACELESS | (2 << FUNCTION_SHIFT) | 0x10);
        assert_eq!(names.number(IN_ANT), PLACELESS | (1 << FUNCTION_SHIFT) | 0x90);
        assert_eq!((names.number(BELOW_ALL), names.number(IN_ANT + 1)), (PLACELESS, PLACELESS));
        assert_eq!(names.number(0x55e0), 0x55e0);
        let mut out = Vec::new();
        names.push_to(&mut out);
        assert_eq!(out.len(), 2 * 24, "two functions have names");
    }

    #[test]
    fn stacks_are_numbered_by_what_is_in_them() {
        let names = placeless(&[(900, &[IN_ZEBRA]), (7, &[IN_ANT, 0x55e0]), (8, &[])]);
        assert_eq!([900, 7, 8, 9].map(|id| names.id(StackId(id))), [3, 2, 1, 0]);
        let mut wait = Wait::new_zeroed();
        (wait.head.kind, wait.head.size, wait.stack) =
            (Wait::KIND as u8, Wait::SIZE as u16, StackId(900));
        let mut loose = [wait.as_bytes(), wait.as_bytes(), &[1, 2, 3]].concat();
        names.clean_loose(&mut loose);
        let stacks = [0, Wait::SIZE].map(|at| Wait::read(&loose[at..]).map(|wait| wait.stack));
        assert_eq!(stacks, [Some(StackId(3)); 2]);
    }

    #[test]
    fn samples_lose_the_place_of_the_kernel_and_chunks_their_past() {
        let head = ChunkHead { taken: 5, opened: Nanos(1), cpu: 0, class: 1, closed: Nanos(0) };
        let mut chunk = head.as_bytes().to_vec();
        for (ip, generation) in [(IN_ZEBRA, 4), (IN_ZEBRA, 5), (0x55e0, 5), (IN_ZEBRA, 3)] {
            let (size, kind) = (Sample::SIZE as u16, Sample::KIND as u8);
            let head = Head { ts: Nanos(9), tid: Tid(7), size, kind, generation };
            let (pid, kernel_stack, user_stack) = (Pid(7), StackId(7), StackId(0));
            let sample = Sample { head, pid, kernel_stack, user_stack, unused: 0, ip };
            chunk.extend(sample.as_bytes());
        }
        chunk.resize(CHUNK_BYTES, 0xff);
        let chunk = placeless(&[(7, &[IN_ANT])]).cleaned(&chunk);
        let found: Vec<(u64, StackId)> = entries(&chunk)
            .filter_map(|entry| Sample::read(entry.bytes))
            .map(|sample| (sample.ip, sample.kernel_stack))
            .collect();
        let in_zebra = PLACELESS | (2 << FUNCTION_SHIFT) | 0x10;
        assert_eq!(found, [(in_zebra, StackId(1)), (0x55e0, StackId(1))]);
        let (words, _) = chunk.as_chunks::<8>();
        assert!(words.iter().all(|word| u64::from_le_bytes(*word) < KERNEL));
    }
}
