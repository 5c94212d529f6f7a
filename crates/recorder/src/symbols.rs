// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the functions that stacks point into, looked up when an incident is sealed: later the
//! processes are gone, and on another machine so are their programs.

mod placeless;

use blazesym::symbolize::source::{Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use placeless::Placeless;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
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

/// Sections with names, and without addresses of the kernel.
pub(crate) struct Named {
    pub(crate) symbols: Vec<u8>,
    pub(crate) stacks: Vec<u8>,
    pub(crate) rare: Vec<u8>,
    pub(crate) tasks: Vec<u8>,
}

/// Names what stacks and samples point into, and takes the kernel's addresses out of all sections.
pub(crate) fn name(stacks: &[u8], mut rare: Vec<u8>, mut tasks: Vec<u8>) -> Named {
    let stacks = parse_stacks(stacks);
    let mut symbols = Vec::new();
    let ips = stacks.values().flatten().copied().chain(samples(&rare).map(|sample| sample.ip));
    let kernel = Placeless::of(ips.filter(|ip| *ip >= KERNEL).collect(), &stacks);
    kernel.push_to(&mut symbols);
    for (pid, addresses) in user_addresses(&stacks, &rare) {
        name_user(&mut symbols, pid, addresses.into_iter().take(ADDRESSES).collect());
    }
    kernel.clean_chunks(&mut rare);
    kernel.clean_loose(&mut tasks);
    Named { symbols, stacks: kernel.stacks(), rare, tasks }
}

fn parse_stacks(mut bytes: &[u8]) -> HashMap<StackId, Vec<u64>> {
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
fn user_addresses(stacks: &HashMap<StackId, Vec<u64>>, rare: &[u8]) -> Vec<(u32, BTreeSet<u64>)> {
    let mut sampled: BTreeMap<u32, (usize, BTreeSet<u64>)> = BTreeMap::new();
    for sample in samples(rare) {
        let (count, addresses) = sampled.entry(sample.pid.0).or_default();
        *count += 1;
        let frames = stacks.get(&sample.user_stack).map_or(&[][..], Vec::as_slice);
        addresses.extend(frames.iter().take(FRAMES).copied().filter(|ip| *ip < KERNEL));
    }
    let mut most: Vec<_> = sampled.into_iter().collect();
    most.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    most.into_iter().take(PROCESSES).map(|(pid, (_, addresses))| (pid, addresses)).collect()
}

fn name_user(out: &mut Vec<u8>, pid: u32, addresses: Vec<u64>) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if maps.is_empty() {
        return;
    }
    let source = Source::Process(Process::new(pid.into()));
    let symbolizer = Symbolizer::new();
    let named = symbolizer.symbolize(&source, Input::AbsAddr(&addresses)).unwrap_or_default();
    let mut named = named.into_iter();
    for ip in addresses {
        let module = module_of(&maps, ip).unwrap_or_default();
        match named.next() {
            Some(Symbolized::Sym(symbol)) => {
                let module = symbol.module.as_deref().and_then(OsStr::to_str).map_or(module, base_name);
                push(out, pid, ip, &symbol.name, module);
            }
            _ if !module.is_empty() => push(out, pid, ip, "", module),
            _ => {}
        }
    }
}

/// The file name of the mapping that contains the address.
fn module_of(maps: &str, ip: u64) -> Option<&str> {
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.is_some_and(|(start, end)| {
            let parse = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            parse(start) <= ip && ip < parse(end)
        })
    })?;
    line.split_whitespace().nth(5).map(base_name)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
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

/// The first `bytes` bytes of a text, or a few less so that no character is cut in two.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_names_its_file() {
        let maps = "55e0-55f0 r-xp 00000000 fe:00 12 /usr/bin/cat\n7f00-7f10 rw-p 00000000 00:00 0\n";
        assert_eq!(module_of(maps, 0x55e8), Some("cat"));
        assert_eq!(module_of(maps, 0x7f01), None);
        assert_eq!(module_of(maps, 0x1), None);
    }

    #[test]
    fn own_function_is_named() {
        let mut out = Vec::new();
        name_user(&mut out, std::process::id(), vec![own_function_is_named as *const () as u64]);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains("own_function_is_named"), "{text}");
    }

    #[test]
    fn damaged_stacks_are_read_up_to_the_damage() {
        let mut bytes = vec![7, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([8, 0, 0, 0, 255, 255, 255, 255]);
        assert_eq!(parse_stacks(&bytes), HashMap::from([(StackId(7), vec![9])]));
    }
}
