// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things lie in the memory of processes: that is random, and stands between a bug and its use. An incident needs
//! to know only which addresses are the same.
//!
//! Each address becomes another number, the same wherever it stands in the incident. Its last four bits stay: nobody
//! chooses them at random, and by them the words of one condition variable are told to lie side by side.

use crate::incident::{Incident, Locks, Section};
use crate::records::{Sample, Wait};
use crate::rewrite;
use std::mem::offset_of;

/// Below this no program has memory: descriptors, flags, and short times.
const SMALL: u64 = 1 << 16;
/// Negative numbers of 32 and of 64 bits that are as small, which stand for times without end.
const NEGATIVE: [std::ops::Range<u64>; 2] = [0xffff_0000..1 << 32, 0xffff_ffff_ffff_0000..u64::MAX];
/// From here on it is the kernel's, or the number that stands for an address of it.
const KERNEL: u64 = 1 << 63;
/// Bits of a disguise: those of a user's address but bit 31, so that it is no negative number of 32 bits.
const DISGUISE: u64 = 0x7fff_7fff_fff0;
/// In front of the name and the module of a function: process, their two lengths, address.
const SYMBOL_HEAD: usize = 16;

/// What stands for an address.
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
            // Nothing but the kernel's own threads has such arguments as the kernel's addresses.
            let hidden = if argument >= KERNEL { SMALL } else { disguised(argument, disguise) };
            rewrite::put(record, offset_of!(Wait, args) + 8 * index, &hidden.to_le_bytes());
        }
    }
}

/// Disguises the address that a sample has.
pub(crate) fn conceal_sample(record: &mut [u8], disguise: &dyn Fn(u64) -> u64) {
    disguise_at(record, offset_of!(Sample, ip), disguise);
}

/// Disguises all addresses that stacks and functions have in the memory of processes.
pub(crate) fn conceal_functions(incident: &mut Incident, disguise: &dyn Fn(u64) -> u64) {
    for (section, bytes) in &mut incident.sections {
        match section {
            Section::Stacks => conceal_stacks(bytes, disguise),
            Section::Symbols => conceal_symbols(bytes, disguise),
            // Addresses in records and locks are disguised where those are edited.
            Section::Sched | Section::Rare | Section::Exits | Section::Tasks | Section::Inputs | Section::Locks => {}
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

/// Disguises the addresses of the locks that threads waited for, of those threads that are said.
pub(crate) fn conceal_locks(locks: &mut Locks, whose: impl Fn(u32) -> bool, disguise: &dyn Fn(u64) -> u64) {
    for lock in locks.futexes.iter_mut().filter(|lock| whose(lock.tid)) {
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

fn conceal_symbols(bytes: &mut [u8], disguise: &dyn Fn(u64) -> u64) {
    let mut at = 0;
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<SYMBOL_HEAD>()) {
        let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let end = at + SYMBOL_HEAD + (length(4) + length(6)).next_multiple_of(8);
        disguise_at(bytes, at + 8, disguise);
        at = end;
    }
}
