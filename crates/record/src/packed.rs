// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler records in one word.
//!
//! The reader of a chunk already knows most of the 24 bytes of a switch, wakeup or migration: the
//! thread on the CPU, its priority, and the approximate time. The rest is a word of eight bytes,
//! written by a single store. A CPU writes the full record if that knowledge is wrong or a value
//! does not fit, and at the start of each chunk. So a chunk can be read on its own, and only the
//! last [`STEP_BITS`] bits of the time are lost, which full scheduler records lack too: all times
//! are rounded down alike, so the order on each CPU is preserved.
//!
//! [`LAYOUT`] lists the fields of a word for both sides. Those of one kind do not overlap; unused
//! bits are 0. No word of a full record looks like a packed one: the highest bit is 0 in a time,
//! and where it is 1 in a priority, the kind is 0.

use crate::records::RecordKind;
use crate::units::{Nanos, Tid};

/// Binary logarithm of the resolution of scheduler times in nanoseconds.
pub(crate) const STEP_BITS: u32 = 5;

/// Lowest priority that a word can hold.
pub(crate) const PRIO_LEAST: u8 = 12;

/// Bytes of a packed record.
pub const WORD_BYTES: usize = size_of::<u64>();

/// A field of a packed record: its lowest bit, and the number of bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    pub name: &'static str,
    pub at: u32,
    pub count: u32,
    pub doc: &'static str,
}

impl Bits {
    const fn new(name: &'static str, at: u32, count: u32, doc: &'static str) -> Bits {
        Bits { name, at, count, doc }
    }

    pub(crate) fn mask(self) -> u64 {
        (1 << self.count) - 1
    }

    pub(crate) fn of(self, word: u64) -> u64 {
        (word >> self.at) & self.mask()
    }
}

pub(crate) const TID: Bits =
    Bits::new("tid", 0, 22, "Switch: `next`. Waking, migrate: `head.tid`.");
pub(crate) const PRIO: Bits =
    Bits::new("prio", 22, 7, "Switch: `next_prio`. Waking: `prio`. Less 12.");
pub(crate) const STATE: Bits = Bits::new(
    "state",
    29,
    9,
    "Switch: bits 0 to 2, 7 to 10, 13 and 15 of `prev_state`; the others are 0.",
);
pub(crate) const CONTEXT: Bits = Bits::new("context", 29, 2, "Waking: `context`.");
pub(crate) const TARGET: Bits = Bits::new("target", 31, 7, "Waking: `target_cpu`.");
pub(crate) const FROM: Bits = Bits::new("from", 22, 7, "Migrate: `from`.");
pub(crate) const TO: Bits = Bits::new("to", 29, 7, "Migrate: `to`.");
pub(crate) const TIME: Bits = Bits::new("time", 38, 18, "Low bits of the time, in steps of 32 ns.");
pub(crate) const GENERATION: Bits =
    Bits::new("generation", 56, 5, "Low bits of the chunk's `taken`.");
pub(crate) const KIND: Bits = Bits::new("kind", 61, 2, "1 switch, 2 waking, 3 migrate.");
pub(crate) const PACKED: Bits = Bits::new("packed", 63, 1, "1");

/// Fields of a packed record.
pub const LAYOUT: [Bits; 11] =
    [TID, PRIO, STATE, CONTEXT, TARGET, FROM, TO, TIME, GENERATION, KIND, PACKED];

/// Bits of a thread's state that a word holds, and their shift to the right.
pub(crate) const STATE_PARTS: [(u16, u32); 4] =
    [(0x0007, 0), (0x0780, 4), (0x2000, 6), (0x8000, 7)];

/// Returns the C definitions for the kernel programs.
pub(crate) fn c_packed() -> String {
    let mut text =
        format!("\n#define PACKED_STEP_BITS {STEP_BITS}\n#define PACKED_PRIO_LEAST {PRIO_LEAST}\n");
    for Bits { name, at, count, .. } in LAYOUT {
        let name = name.to_uppercase();
        text += &format!("#define PACKED_{name} {at}\n#define PACKED_{name}_BITS {count}\n");
    }
    let states = STATE_PARTS.iter().fold(0, |all, (mask, _)| all | mask);
    let parts = STATE_PARTS
        .map(|(mask, shift)| format!("((__u64)((state) & {mask:#x}) >> {shift})"))
        .join(" | ");
    text + &format!("#define PACKED_STATES {states:#x}\n#define PACK_STATE(state) ({parts})\n")
}

/// A packed record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PackedWord {
    pub(crate) bits: u64,
    pub(crate) kind: RecordKind,
}

impl PackedWord {
    /// Reads a word if it is a packed record of a chunk in its use number `taken`.
    #[inline]
    pub(crate) fn first(bytes: &[u8], taken: u64) -> Option<PackedWord> {
        let bits = u64::from_le_bytes(*bytes.first_chunk()?);
        let valid = PACKED.of(bits) == 1 && GENERATION.of(bits) == taken & GENERATION.mask();
        if valid {
            RecordKind::from_number(KIND.of(bits) as u8).map(|kind| PackedWord { bits, kind })
        } else {
            None
        }
    }

    pub(crate) fn tid(self) -> Tid {
        Tid(TID.of(self.bits) as u32)
    }

    pub(crate) fn prio(self) -> u8 {
        PRIO.of(self.bits) as u8 + PRIO_LEAST
    }

    pub(crate) fn state(self) -> u16 {
        let packed = STATE.of(self.bits) as u16;
        STATE_PARTS.iter().fold(0, |state, (mask, shift)| state | ((packed << shift) & mask))
    }

    /// Returns the first time at or after `base` with these low bits.
    pub(crate) fn time(self, base: Nanos) -> Nanos {
        let steps = base.0 >> STEP_BITS;
        let further = TIME.of(self.bits).wrapping_sub(steps) & TIME.mask();
        Nanos((steps + further) << STEP_BITS)
    }
}
