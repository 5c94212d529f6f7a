// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the functions that stacks point into, looked up when an incident is sealed: later the
//! processes are gone, and on another machine so are their programs.
//!
//! Nobody's programs are opened here: that is done by a process with the rights of the user who marked, which is told
//! what the kernel says of mappings, and answers names. Only what is mapped is looked at, and only regular files, or
//! the kernel's own code in every process: no table is read that a program wrote of functions that it compiled
//! itself (`/tmp/perf-PID.map`).

mod elf;
mod modules;
mod namer;
mod names;
mod placeless;

pub(crate) use modules::Modules;
pub use namer::{NAMER_FILES, name, own_memory};
use names::KERNEL;

use placeless::Placeless;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use tipme_record::records::Sample;
use tipme_record::{CHUNK_BYTES, RecordKind, StackId, entries};

/// Processes whose functions are named: those with the most samples.
const PROCESSES: usize = 24;
/// Addresses named per process.
const ADDRESSES: usize = 512;
/// Frames of a user stack that are named, from the leaf.
const FRAMES: usize = 8;

/// Stacks by their ids.
pub(crate) type Stacks = HashMap<StackId, Vec<u64>>;

/// Sections with the names of the kernel's functions, and without its addresses.
pub(crate) struct NamedSections {
    pub(crate) symbols: Vec<u8>,
    pub(crate) stacks: Vec<u8>,
    pub(crate) rare: Vec<u8>,
    pub(crate) tasks: Vec<u8>,
}

/// Names what stacks and samples point into in the kernel, by its table of functions, and takes its addresses out of
/// all sections.
pub(crate) fn name_kernel(
    stacks: &Stacks,
    mut rare: Vec<u8>,
    mut tasks: Vec<u8>,
    table: Option<File>,
) -> NamedSections {
    let mut symbols = Vec::new();
    let ips = stacks.values().flatten().copied().chain(samples(&rare).map(|sample| sample.ip));
    let kernel = Placeless::of(table, ips.filter(|ip| *ip >= KERNEL).collect(), stacks);
    kernel.push_to(&mut symbols);
    kernel.clean_chunks(&mut rare);
    kernel.clean_loose(&mut tasks);
    NamedSections { symbols, stacks: kernel.stacks(), rare, tasks }
}

pub(crate) fn parse_stacks(mut bytes: &[u8]) -> Stacks {
    let mut stacks = HashMap::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<8>() {
        let id = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let frames = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some((ips, rest)) = rest.split_at_checked(8 * frames) else { break };
        let (words, _) = ips.as_chunks();
        stacks.insert(StackId(id), words.iter().map(|word| u64::from_le_bytes(*word)).collect());
        bytes = rest;
    }
    stacks
}

fn samples(rare: &[u8]) -> impl Iterator<Item = Sample> {
    let samples = rare.chunks(CHUNK_BYTES).flat_map(entries).filter(|entry| entry.kind == RecordKind::Sample);
    samples.filter_map(|entry| Sample::read(entry.bytes))
}

/// The addresses in user stacks of the processes that were sampled most.
pub(crate) fn user_addresses(stacks: &Stacks, rare: &[u8]) -> Vec<(u32, BTreeSet<u64>)> {
    let mut sampled: BTreeMap<u32, (usize, BTreeSet<u64>)> = BTreeMap::new();
    for sample in samples(rare) {
        let (count, addresses) = sampled.entry(sample.pid.0).or_default();
        *count += 1;
        let frames = stacks.get(&sample.user_stack).map_or(&[][..], Vec::as_slice);
        addresses.extend(frames.iter().take(FRAMES).copied().filter(|ip| *ip < KERNEL));
    }
    let mut most: Vec<_> = sampled.into_iter().collect();
    most.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let named = |addresses: BTreeSet<u64>| addresses.into_iter().take(ADDRESSES).collect();
    most.into_iter().take(PROCESSES).map(|(pid, (_, addresses))| (pid, named(addresses))).collect()
}

/// Hears any answer to what is asked of two functions; whether it is one.
pub(crate) fn hear_any(bytes: &[u8]) -> bool {
    !Modules::sample().hear(bytes).is_empty()
}

/// Names functions at a few places of any image; whether there was one.
pub(crate) fn name_any(bytes: &[u8]) -> bool {
    let Ok(memory) = rustix::fs::memfd_create("image", rustix::fs::MemfdFlags::CLOEXEC) else { return false };
    let file = std::fs::File::from(memory);
    let written = std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).is_ok();
    let names = elf::Image { file: &file, base: 0 }.names(&[0, 0x1000, 0x1080, 0x2000, u64::MAX]);
    written && names.iter().any(Option::is_some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_stacks_are_read_up_to_the_damage() {
        let mut bytes = vec![7, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([8, 0, 0, 0, 255, 255, 255, 255]);
        assert_eq!(parse_stacks(&bytes), HashMap::from([(StackId(7), vec![9])]));
    }
}
