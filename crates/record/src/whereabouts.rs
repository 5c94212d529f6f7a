// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disguise of addresses in processes: address space randomization hinders exploits, and an
//! incident only needs to know which addresses are equal.
//!
//! Each address becomes another number, the same everywhere in the incident. Its last four bits
//! stay: they are not random, and they show that the words of one condition variable are adjacent.

use crate::incident::{Incident, Locks, Section};
use crate::records::{Sample, Wait};
use crate::rewrite;
use std::mem::offset_of;

/// Lower bound of program memory; smaller values are descriptors, flags and short times.
const SMALL: u64 = 1 << 16;
/// Small negative numbers of 32 and 64 bits, which stand for infinite times.
const NEGATIVE: [std::ops::Range<u64>; 2] = [0xffff_0000..1 << 32, 0xffff_ffff_ffff_0000..u64::MAX];
/// Lower bound of kernel addresses, and of the numbers that replace them.
const KERNEL: u64 = 1 << 63;
/// Bits of a disguise: those of a user address except bit 31, so that it is no negative 32-bit
/// number.
const DISGUISE: u64 = 0x7fff_7fff_fff0;
/// Bytes before the name and the module of a function: process, both lengths, address.
pub(crate) const SYMBOL_HEAD: usize = 16;

/// Returns the replacement of an address.
fn disguised(address: u64, disguise: &dyn Fn(u64) -> u64) -> u64 {
    let plain = !(SMALL..KERNEL).contains(&address);
    if plain { address } else { (disguise(address >> 4) & DISGUISE).max(SMALL) | (address & 0xf) }
}

fn disguise_at(bytes: &mut [u8], at: usize, disguise: &dyn Fn(u64) -> u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut::<8>()) {
        *place = disguised(u64::from_le_bytes(*place), disguise).to_le_bytes();
    }
}

/// Disguises the addresses among the arguments of a system call.
pub(crate) fn conceal_arguments(record: &mut [u8], disguise: &dyn Fn(u64) -> u64) {
    let Some(wait) = Wait::read(record) else { return };
    for (index, argument) in wait.args.into_iter().enumerate() {
        if !NEGATIVE.iter().any(|range| range.contains(&argument)) && argument != u64::MAX {
            // Only kernel threads have kernel addresses as arguments.
            let hidden = if argument >= KERNEL { SMALL } else { disguised(argument, disguise) };
            rewrite::put(record, offset_of!(Wait, args) + 8 * index, &hidden.to_le_bytes());
        }
    }
}

/// Disguises the address in a sample.
pub(crate) fn conceal_sample(record: &mut [u8], disguise: &dyn Fn(u64) -> u64) {
    disguise_at(record, offset_of!(Sample, ip), disguise);
}

/// Disguises all user addresses in stacks and symbols.
pub(crate) fn conceal_functions(incident: &mut Incident, disguise: &dyn Fn(u64) -> u64) {
    for (section, bytes) in &mut incident.sections {
        match section {
            Section::Stacks => conceal_stacks(bytes, disguise),
            Section::Symbols => conceal_symbols(bytes, disguise),
            // Addresses in records and locks are disguised where those are edited.
            Section::Sched
            | Section::Rare
            | Section::Exits
            | Section::Tasks
            | Section::Inputs
            | Section::Locks => {}
            Section::Meta
            | Section::Cmdlines
            | Section::Displays
            | Section::Samples
            | Section::Losses
            | Section::Cost
            | Section::Words
            | Section::Groups
            | Section::Files
            | Section::Baselines
            | Section::Ports => {}
        }
    }
}

/// Disguises the lock addresses of the selected waiting threads.
pub(crate) fn conceal_locks(
    locks: &mut Locks,
    is_selected: impl Fn(u32) -> bool,
    disguise: &dyn Fn(u64) -> u64,
) {
    for lock in locks.futexes.iter_mut().filter(|lock| is_selected(lock.tid)) {
        lock.address = disguised(lock.address, disguise);
    }
}

fn conceal_stacks(bytes: &mut [u8], disguise: &dyn Fn(u64) -> u64) {
    let mut at = 0;
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let frames = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let end = at + 8 + frames * 8;
        (at + 8..end.min(bytes.len())).step_by(8).for_each(|at| disguise_at(bytes, at, disguise));
        at = end;
    }
}

/// Returns the lengths of a symbol's name and module, and of both with padding.
pub(crate) fn symbol_texts(head: &[u8; SYMBOL_HEAD]) -> (usize, usize, usize) {
    let [name, module] = [4, 6].map(|at| usize::from(u16::from_le_bytes([head[at], head[at + 1]])));
    (name, module, (name + module).next_multiple_of(8))
}

fn conceal_symbols(bytes: &mut [u8], disguise: &dyn Fn(u64) -> u64) {
    let mut at = 0;
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<SYMBOL_HEAD>()) {
        let end = at + SYMBOL_HEAD + symbol_texts(head).2;
        disguise_at(bytes, at + 8, disguise);
        at = end;
    }
}
