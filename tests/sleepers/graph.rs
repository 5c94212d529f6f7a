// SPDX-License-Identifier: MIT OR Apache-2.0
//! Call graph of the kernel, read from its instructions.

use crate::memory::KernelMemory;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// First address of a function.
pub type Address = u64;

/// The functions of the kernel's image, and the direct calls and jumps from one to another.
pub struct Graph {
    names: BTreeMap<Address, String>,
    /// Addresses by name: static functions may share one.
    places: BTreeMap<String, Vec<Address>>,
    calls: BTreeMap<Address, BTreeSet<Address>>,
}

/// Reached functions, each with the first caller.
pub type Reached = BTreeMap<Address, Option<Address>>;

impl Graph {
    /// Reads the running kernel; needs root.
    pub fn read() -> std::io::Result<Graph> {
        let symbols = std::fs::read_to_string("/proc/kallsyms")?;
        let symbols: Vec<(u64, &str)> = symbols.lines().filter_map(symbol).collect();
        let place =
            |name: &str| symbols.iter().find(|(_, known)| *known == name).map_or(0, |(at, _)| *at);
        let (from, until) = (place("_stext"), place("_etext"));
        let text = KernelMemory::open()?.read(from..until)?;
        let mut names: BTreeMap<Address, String> = BTreeMap::new();
        for (at, name) in symbols.into_iter().filter(|(at, _)| (from..until).contains(at)) {
            names.entry(at).or_insert_with(|| name.to_owned());
        }
        let mut places: BTreeMap<String, Vec<Address>> = BTreeMap::new();
        names.iter().for_each(|(at, name)| places.entry(name.clone()).or_default().push(*at));
        let mut graph = Graph { names, places, calls: BTreeMap::new() };
        graph.calls = graph.branches(&text, from);
        Ok(graph)
    }

    /// Finds calls and jumps with a 32-bit distance to the first byte of a function. Every byte may
    /// start an instruction: about one in a hundred thousand matches by accident.
    fn branches(&self, text: &[u8], from: Address) -> BTreeMap<Address, BTreeSet<Address>> {
        let mut calls: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for at in 0..text.len() {
            let Some(length) = length(&text[at..]) else { continue };
            let Some(distance) =
                text[at..].get(length - 4..length).and_then(|bytes| bytes.first_chunk())
            else {
                break;
            };
            let target = (from + (at + length) as u64)
                .wrapping_add_signed(i64::from(i32::from_le_bytes(*distance)));
            if self.names.contains_key(&target) {
                let (caller, target) = (self.function(from + at as u64), self.whole(target));
                calls.entry(caller).or_default().insert(target);
            }
        }
        calls
    }

    fn function(&self, at: Address) -> Address {
        self.names.range(..=at).next_back().map_or(0, |(start, _)| self.whole(*start))
    }

    /// Returns the function that a `.cold` part belongs to.
    fn whole(&self, at: Address) -> Address {
        let whole = self.name(at).strip_suffix(".cold").and_then(|name| self.places.get(name));
        whole.and_then(|places| places.first()).copied().unwrap_or(at)
    }

    /// Counts the functions.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the callers on the path to a function, the nearest first.
    pub fn way(&self, reached: &Reached, at: Address) -> Vec<String> {
        let way = std::iter::successors(Some(at), |at| reached.get(at).copied().flatten());
        way.skip(1).map(|at| self.name(at).to_owned()).collect()
    }

    /// Returns the name of a function.
    pub fn name(&self, at: Address) -> &str {
        self.names.get(&at).map_or("", String::as_str)
    }

    /// Returns the functions of a name.
    pub fn places(&self, name: &str) -> &[Address] {
        self.places.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the functions between two symbols.
    pub fn between(&self, from: &str, until: &str) -> BTreeSet<Address> {
        let [from, until] =
            [from, until].map(|name| self.places(name).first().copied().unwrap_or_default());
        self.names.range(from..until).map(|(at, _)| *at).collect()
    }

    /// Returns the callees of a function.
    pub fn calls(&self, at: Address) -> impl Iterator<Item = Address> {
        self.calls.get(&at).into_iter().flatten().copied()
    }

    /// Walks along the calls, but not beyond functions for which `ends` holds.
    pub fn reach(&self, roots: &BTreeSet<Address>, ends: impl Fn(Address) -> bool) -> Reached {
        let mut reached: Reached = roots.iter().map(|root| (*root, None)).collect();
        let mut next: VecDeque<Address> = roots.iter().copied().collect();
        while let Some(at) = next.pop_front() {
            for callee in self.calls(at).filter(|_| !ends(at)) {
                if let Entry::Vacant(place) = reached.entry(callee) {
                    place.insert(Some(at));
                    next.push_back(callee);
                }
            }
        }
        reached
    }
}

/// Parses address and name of a function; `None` for data and padding.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let (at, kind, name) = (words.next()?, words.next()?, words.next()?);
    let is_function = matches!(kind, "T" | "t" | "W" | "w") && !name.starts_with("__pfx_");
    is_function.then_some((u64::from_str_radix(at, 16).ok()?, name))
}

/// Returns the length of a call, a jump or a conditional jump.
fn length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0xe8 | 0xe9, ..] => Some(5),
        [0x0f, 0x80..=0x8f, ..] => Some(6),
        _ => None,
    }
}
