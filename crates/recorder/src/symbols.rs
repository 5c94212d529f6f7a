// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the functions in stacks, looked up when an incident is sealed: later the processes are
//! gone, and on another machine their programs too.
//!
//! The recorder opens no program itself. A process with the privileges of the incident's owner gets
//! the mappings from the kernel's text, and answers with names. It reads only mapped regular files,
//! and the vDSO; it never reads a table in which a program lists functions that it compiled itself
//! (`/tmp/perf-PID.map`).

mod elf;
mod modules;
mod namer;
mod names;
mod placeless;

pub(crate) use modules::Modules;
pub use namer::{NAMER_FILES, name, own_memory};
use names::KERNEL;

pub(crate) use placeless::Placeless;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_record::records::Sample;
use tipme_record::{RecordKind, StackId, entries};

/// Maximum number of processes with named functions, those with the most samples.
const PROCESSES: usize = 24;
/// Maximum number of addresses named per process.
const ADDRESSES: usize = 512;
/// Maximum number of frames named per user stack, from the leaf.
const FRAMES: usize = 8;

/// Stacks by id.
pub(crate) type Stacks = HashMap<StackId, Vec<u64>>;

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

/// Returns the samples in a chunk.
pub(crate) fn samples(chunk: &[u8]) -> impl Iterator<Item = Sample> {
    entries(chunk)
        .filter(|entry| entry.kind == RecordKind::Sample)
        .filter_map(|entry| Sample::read(entry.bytes))
}

/// User stacks and number of samples by sampled process.
#[derive(Default)]
pub(crate) struct SampledStacks(BTreeMap<u32, (usize, BTreeSet<StackId>)>);

impl SampledStacks {
    /// Adds the samples of a chunk.
    pub(crate) fn see(&mut self, chunk: &[u8]) {
        for sample in samples(chunk) {
            let (count, stacks) = self.0.entry(sample.pid.0).or_default();
            *count += 1;
            stacks.insert(sample.user_stack);
        }
    }

    /// Returns the addresses in the stacks of the most sampled processes.
    pub(crate) fn addresses(self, stacks: &Stacks) -> Vec<(u32, BTreeSet<u64>)> {
        let mut most: Vec<_> = self.0.into_iter().collect();
        most.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let addresses = most.into_iter().take(PROCESSES).map(|(pid, (_, ids))| {
            let frames = ids
                .iter()
                .filter_map(|id| stacks.get(id))
                .flat_map(|frames| frames.iter().take(FRAMES).copied());
            let all: BTreeSet<u64> = frames.filter(|ip| *ip < KERNEL).collect();
            (pid, all.into_iter().take(ADDRESSES).collect())
        });
        addresses.collect()
    }
}

/// Parses an arbitrary answer about two functions; returns `true` if it holds names.
pub(crate) fn read_any_answers(bytes: &[u8]) -> bool {
    !Modules::sample().read_answers(bytes).is_empty()
}

/// Names functions at a few offsets of an arbitrary image; returns `true` if it finds any.
pub(crate) fn name_any(bytes: &[u8]) -> bool {
    let Ok(memory) = rustix::fs::memfd_create("image", rustix::fs::MemfdFlags::CLOEXEC) else {
        return false;
    };
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
