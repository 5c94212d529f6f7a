// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of the kernel, from its BTF: a function with the type of a slot in an operation table may
//! be called through it.

use std::collections::{BTreeMap, BTreeSet};

const HEADER: usize = 24;
const PATH: &str = "/sys/kernel/btf/vmlinux";

mod kind {
    pub const INT: u32 = 1;
    pub const POINTER: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const FORWARD: u32 = 7;
    pub const FUNCTION: u32 = 12;
    pub const PROTOTYPE: u32 = 13;
    pub const VARIABLE: u32 = 14;
    pub const SECTION: u32 = 15;
    pub const DECLARATION_TAG: u32 = 17;
    pub const ENUM64: u32 = 19;
    /// Typedefs, qualifiers and tags.
    pub const MODIFIERS: [u32; 5] = [8, 9, 10, 11, 18];
}

/// A type; `members` has name and type of each member or parameter.
struct Type {
    kind: u32,
    name: String,
    /// Number of another type, or a size.
    other: usize,
    members: Vec<(String, usize)>,
}

/// All types of the kernel, by number.
pub struct Types(Vec<Type>);

impl Types {
    /// Reads the types of the running kernel.
    pub fn read() -> std::io::Result<Types> {
        let bytes = std::fs::read(PATH)?;
        let [types, length, strings] = [8, 12, 16].map(|at| HEADER + word(&bytes, at));
        let strings = &bytes[strings..];
        let (mut all, mut at) = (vec![empty()], types);
        while at < types + length - HEADER {
            let (info, head) = (word(&bytes, at + 4), at);
            let (kind, count) = ((info >> 24 & 0x1f) as u32, info & 0xffff);
            at += 12;
            let (size, name_at, type_at) = item(kind);
            let items = (at..at + size * count).step_by(size.max(1));
            let named = matches!(kind, kind::STRUCT | kind::UNION | kind::PROTOTYPE);
            let members = items
                .filter(|_| named)
                .map(|at| (name(strings, word(&bytes, at + name_at)), word(&bytes, at + type_at)));
            let members = members.collect();
            all.push(Type {
                kind,
                name: name(strings, word(&bytes, head)),
                other: word(&bytes, head + 8),
                members,
            });
            at += size * count + tail(kind);
        }
        Ok(Types(all))
    }

    /// Returns the functions that have the type of a slot in one of these structures. Slots without
    /// a structure among their parameters, which too many functions fit, and `ioctl` slots are left
    /// out.
    pub fn callees(&self, tables: &[&str]) -> BTreeMap<&str, BTreeSet<String>> {
        let mut slots: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let structures =
            self.0.iter().filter(|t| t.kind == kind::STRUCT && tables.contains(&t.name.as_str()));
        for (table, (slot, member)) in
            structures.flat_map(|t| t.members.iter().map(move |member| (&t.name, member)))
        {
            let spelled = self.spelled(*member);
            if spelled.starts_with("*(") && spelled.contains("*struct") && !slot.contains("ioctl") {
                slots.entry(spelled).or_default().insert(format!("{table}.{slot}"));
            }
        }
        let functions = self.0.iter().filter(|t| t.kind == kind::FUNCTION);
        let callees = functions.filter_map(|f| {
            Some((f.name.as_str(), slots.get(&format!("*{}", self.spelled(f.other)))?))
        });
        callees.map(|(name, slots)| (name, slots.clone())).collect()
    }

    /// Spells a type without parameter names and qualifiers.
    fn spelled(&self, number: usize) -> String {
        let t = &self.0[number];
        match t.kind {
            0 => "void".to_owned(),
            modifier if kind::MODIFIERS.contains(&modifier) => self.spelled(t.other),
            kind::POINTER => format!("*{}", self.spelled(t.other)),
            kind::PROTOTYPE => {
                let parameters: Vec<String> =
                    t.members.iter().map(|(_, t)| self.spelled(*t)).collect();
                format!("({}){}", parameters.join(","), self.spelled(t.other))
            }
            kind::STRUCT | kind::UNION | kind::FORWARD => format!("struct {}", t.name),
            _ => t.name.clone(),
        }
    }
}

fn empty() -> Type {
    Type { kind: 0, name: String::new(), other: 0, members: Vec::new() }
}

/// Returns the size of a type's items, and the offsets of name and type in one.
fn item(kind: u32) -> (usize, usize, usize) {
    match kind {
        kind::STRUCT | kind::UNION => (12, 0, 4),
        kind::PROTOTYPE => (8, 0, 4),
        kind::ENUM => (8, 0, 4),
        kind::SECTION | kind::ENUM64 => (12, 0, 4),
        _ => (0, 0, 0),
    }
}

/// Returns the size of what follows a type without items.
fn tail(kind: u32) -> usize {
    match kind {
        kind::INT | kind::VARIABLE | kind::DECLARATION_TAG => 4,
        kind::ARRAY => 12,
        _ => 0,
    }
}

fn name(strings: &[u8], at: usize) -> String {
    let name = strings[at..].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}
