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
mod placeless;

pub(crate) use modules::Modules;
pub use namer::{NAMER_FILES, name, own_memory};

use placeless::Placeless;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs::File;
use tipme_record::records::Sample;
use tipme_record::{CHUNK_BYTES, Kind, StackId, entries};

/// Addresses from here on are the kernel's.
const KERNEL: u64 = 0xffff_8000_0000_0000;

/// Processes whose functions are named: those with the most samples.
const PROCESSES: usize = 24;
/// Addresses named per process.
const ADDRESSES: usize = 512;
/// Frames of a user stack that are named, from the leaf.
const FRAMES: usize = 8;

/// Bytes of a name at most.
const NAME_BYTES: usize = 240;
/// How deep the parts of a C++ name may lie in each other; one library function in a thousand goes deeper.
const NESTING: u32 = 48;
/// How often what may stand for `new` may occur in a C++ name: each time can double the time that it takes to read it.
const NEWS: usize = 16;

/// Stacks by their ids.
pub(crate) type Stacks = HashMap<StackId, Vec<u64>>;

/// Sections with the names of the kernel's functions, and without its addresses.
pub(crate) struct Named {
    pub(crate) symbols: Vec<u8>,
    pub(crate) stacks: Vec<u8>,
    pub(crate) rare: Vec<u8>,
    pub(crate) tasks: Vec<u8>,
}

/// Names what stacks and samples point into in the kernel, by its table of functions, and takes its addresses out of all sections.
pub(crate) fn name_kernel(stacks: &Stacks, mut rare: Vec<u8>, mut tasks: Vec<u8>, table: Option<File>) -> Named {
    let mut symbols = Vec::new();
    let ips = stacks.values().flatten().copied().chain(samples(&rare).map(|sample| sample.ip));
    let kernel = Placeless::of(table, ips.filter(|ip| *ip >= KERNEL).collect(), stacks);
    kernel.push_to(&mut symbols);
    kernel.clean_chunks(&mut rare);
    kernel.clean_loose(&mut tasks);
    Named { symbols, stacks: kernel.stacks(), rare, tasks }
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
    let samples = rare.chunks(CHUNK_BYTES).flat_map(entries).filter(|entry| entry.kind == Kind::Sample);
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

/// A name as it is written in the program, where it stands otherwise in the image. A name is cut at its bound
/// while it is written: short ones can stand for very long ones.
fn readable(name: &str) -> String {
    let mut text = Bounded(String::new());
    let news = name.matches("nw").count() + name.matches("na").count();
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(text, "{rust:#}").ok();
    } else if news <= NEWS {
        let options = cpp_demangle::ParseOptions::default().recursion_limit(NESTING);
        if let Ok(symbol) = cpp_demangle::Symbol::new_with_options(name, &options) {
            symbol.structured_demangle(&mut text, &cpp_demangle::DemangleOptions::default()).ok();
        }
    }
    if text.0.is_empty() { name.to_owned() } else { text.0 }
}

/// The first bytes of a text; then an error, which ends the writing.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let fits = cut(text, NAME_BYTES - self.0.len());
        self.0.push_str(fits);
        if fits.len() < text.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

fn push(out: &mut Vec<u8>, pid: u32, ip: u64, name: &str, module: &str) {
    let (name, module) = (cut(name, NAME_BYTES), cut(module, NAME_BYTES));
    out.extend_from_slice(&pid.to_le_bytes());
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(&(module.len() as u16).to_le_bytes());
    out.extend_from_slice(&ip.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(module.as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
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

/// The first `bytes` bytes of a text, or a few less so that no character is cut in two.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_bounded() {
        assert_eq!(readable("main"), "main");
        assert_eq!(readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(
            readable("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        let doubling = |name: String, at| format!("{name}IS{at:X}_S{at:X}_E");
        let long = (0..40).fold("_Z1f1aIS_S_E".to_owned(), doubling);
        for name in [long, format!("_Z1fA{}_i", "nw".repeat(40)), format!("_Z{}", "cvDTnw".repeat(21))] {
            assert!(readable(&name).len() <= NAME_BYTES.max(name.len()));
        }
    }

    #[test]
    fn damaged_stacks_are_read_up_to_the_damage() {
        let mut bytes = vec![7, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([8, 0, 0, 0, 255, 255, 255, 255]);
        assert_eq!(parse_stacks(&bytes), HashMap::from([(StackId(7), vec![9])]));
    }
}
