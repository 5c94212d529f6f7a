// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks and their symbol names.

use crate::decode::bytes::{Cursor, printable};
use std::collections::HashMap;
use tipme_record::{Pid, StackId};

/// Function with the file that contains it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Function {
    pub name: String,
    pub module: String,
}

/// Stack and symbol tables of an incident.
#[derive(Debug, Default)]
pub struct Names {
    stacks: HashMap<StackId, Vec<u64>>,
    functions: HashMap<(Pid, u64), Function>,
}

impl Names {
    /// Reads both sections up to the first damage in each.
    pub fn read(stacks: &[u8], symbols: &[u8]) -> Names {
        let mut names = Names::default();
        let mut cursor = Cursor::new(stacks);
        names.stacks.extend(std::iter::from_fn(|| read_stack(&mut cursor)));
        let mut cursor = Cursor::new(symbols);
        names.functions.extend(std::iter::from_fn(|| read_function(&mut cursor)));
        names
    }

    /// Returns the instruction pointers of a stack, leaf first; empty if the stack is unknown.
    pub fn stack(&self, id: StackId) -> &[u64] {
        self.stacks.get(&id).map_or(&[], Vec::as_slice)
    }

    pub fn stacks(&self) -> impl Iterator<Item = (StackId, &[u64])> {
        self.stacks.iter().map(|(id, ips)| (*id, ips.as_slice()))
    }

    /// Returns the function at `ip` in a process, or in the kernel for pid 0.
    pub fn function(&self, pid: Pid, ip: u64) -> Option<&Function> {
        self.functions.get(&(pid, ip))
    }

    /// Returns the names of the kernel functions of a stack, leaf first, without unnamed frames.
    pub(crate) fn kernel_functions(&self, id: StackId) -> impl Iterator<Item = &str> {
        self.stack(id)
            .iter()
            .filter_map(|ip| self.function(Pid(0), *ip))
            .map(|function| function.name.as_str())
    }
}

fn read_stack(cursor: &mut Cursor<'_>) -> Option<(StackId, Vec<u64>)> {
    let id = StackId(cursor.u32()?);
    let frames = cursor.u32()? as usize;
    let bytes = cursor.take(frames.checked_mul(8)?)?;
    let mut ips = Cursor::new(bytes);
    Some((id, std::iter::from_fn(|| ips.u64()).collect()))
}

fn read_function(cursor: &mut Cursor<'_>) -> Option<((Pid, u64), Function)> {
    let pid = Pid(cursor.u32()?);
    let (name_length, module_length) = (usize::from(cursor.u16()?), usize::from(cursor.u16()?));
    let ip = cursor.u64()?;
    let text = cursor.take_padded(name_length + module_length)?;
    let (name, module) = text.split_at(name_length);
    Some(((pid, ip), Function { name: printable(name), module: printable(module) }))
}
