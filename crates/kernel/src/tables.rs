// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables beside the rings: stacks, command lines, and the walk over all tasks.

use crate::load::Kernel;
use crate::skeleton::types::in_flight;
use anyhow::{Context, Result};
use libbpf_rs::{Iter, MapCore, MapFlags};
use std::io::Read;
use tipme_record::records::Block;
use tipme_record::{Device, Head, Nanos, Pid, RecordKind, Tid};
use zerocopy::IntoBytes;

/// Size of the head of a stack or command line in its table: count, unused.
const HEAD: usize = 8;

/// Maximum bytes of a command line; the rest is cut.
const CMDLINE_BYTES: usize = 240;

/// Initial buffer of a walk, so that the kernel can return a page or more at a time.
const WALK_BYTES: usize = 1 << 18;

/// Command line of one process, NUL-separated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLine {
    pub pid: Pid,
    pub text: Vec<u8>,
}

impl Kernel<'_> {
    /// Walks at most `threads_max` live threads. Returns the bytes of task records, each followed
    /// by a wait record if it is blocked, and the number of threads left out.
    pub fn walk(&mut self, threads_max: u32) -> Result<(Vec<u8>, u64)> {
        let mut bytes = Vec::with_capacity(WALK_BYTES);
        self.make_room(threads_max);
        let before = self.left_out();
        let mut walk = Iter::new(&self.walk).context("cannot begin the walk over all tasks")?;
        walk.read_to_end(&mut bytes).context("cannot walk over all tasks")?;
        Ok((bytes, self.left_out() - before))
    }

    fn make_room(&mut self, threads: u32) {
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            let room = &raw mut bss.walk_room;
            // SAFETY: the field is mapped memory, and only the walk, which has not begun, also
            // changes it.
            unsafe { room.write_volatile(threads) }
        }
    }

    fn left_out(&self) -> u64 {
        self.volatile(|bss| &raw const bss.walk_left_out)
    }

    /// Returns the bytes of a record for each block request in flight at `now`.
    pub fn requests(&self, now: Nanos) -> Vec<u8> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Vec::new() };
        // SAFETY: the table is mapped as long as `self` lives; the kernel writes to it meanwhile,
        // so an entry may be half old and half new, which costs one wrong request at most.
        let slots = bss.in_flight.iter().map(|slot| unsafe { std::ptr::read_volatile(slot) });
        let flying = slots.filter(|slot| slot.request != 0 && slot.inserted <= now.0);
        flying.flat_map(|slot| block(&slot, now).as_bytes().to_vec()).collect()
    }

    /// Returns the stack table: for each stack its id, the number of frames, and the instruction
    /// pointers, leaf first.
    pub fn stacks(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (key, value) in rows(&self.skeleton.maps.stacks)? {
            let frames = count(&value).min((value.len().saturating_sub(HEAD)) / 8);
            out.extend_from_slice(&key);
            out.extend_from_slice(&(frames as u32).to_le_bytes());
            out.extend_from_slice(&value[HEAD..HEAD + 8 * frames]);
        }
        Ok(out)
    }

    /// Returns the command lines of live processes: those seen at exec, and those passed in at the
    /// start.
    pub fn command_lines(&self) -> Result<Vec<CommandLine>> {
        let lines = rows(&self.skeleton.maps.cmdlines)?.into_iter().filter_map(|(key, value)| {
            let pid = Pid(u32::from_le_bytes(key.try_into().ok()?));
            let text = value.get(HEAD..HEAD + count(&value))?.to_vec();
            Some(CommandLine { pid, text })
        });
        Ok(lines.collect())
    }

    /// Passes in the command line of a process that was started before the recording.
    pub fn remember_command_line(&self, line: &CommandLine) -> Result<()> {
        let text = &line.text[..line.text.len().min(CMDLINE_BYTES)];
        let mut value = vec![0u8; self.skeleton.maps.cmdlines.value_size() as usize];
        value[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        value[HEAD..HEAD + text.len()].copy_from_slice(text);
        self.skeleton
            .maps
            .cmdlines
            .update(&line.pid.0.to_le_bytes(), &value, MapFlags::NO_EXIST)
            .or_else(|error| {
                // The process has executed another program meanwhile; the kernel's entry is newer.
                if error.kind() == libbpf_rs::ErrorKind::AlreadyExists {
                    Ok(())
                } else {
                    Err(error.into())
                }
            })
    }
}

fn block(slot: &in_flight, now: Nanos) -> Block {
    let size = Block::SIZE as u16;
    Block {
        head: Head {
            ts: now,
            tid: Tid(slot.tid),
            size,
            kind: RecordKind::Block as u8,
            generation: 0,
        },
        inserted: Nanos(slot.inserted),
        issued: Nanos(slot.issued),
        sector: slot.sector,
        bytes: slot.bytes,
        device: Device(slot.device),
        op: slot.op,
        done: 0,
    }
}

fn count(value: &[u8]) -> usize {
    value.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

/// Returns all rows of a hash table. A row replaced during the read may be missing or duplicated.
fn rows(map: &impl MapCore) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let batch = map
        .lookup_batch(1024, MapFlags::ANY, MapFlags::ANY)
        .context("cannot read a table of the kernel")?;
    Ok(batch.collect())
}
