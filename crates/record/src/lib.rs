// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declarations of all records of the flight recorder.
//!
//! The kernel programs write these bytes, the incident file holds them unchanged, and the analysis
//! reads them. One declaration in [`records`] yields the Rust type, the C structure that the kernel
//! programs are compiled with, and the column table for tools.
//!
//! All integers are little-endian, and all times are CLOCK_MONOTONIC nanoseconds. A record starts
//! with a [`Head`]; `head.size` counts the whole record in bytes, including its tail.

#![warn(unreachable_pub)]

#[cfg(target_endian = "big")]
compile_error!(
    "incident files are little-endian and are read in place; big-endian hosts are not supported"
);

mod calls;
mod chunk;
mod cut;
mod declare;
mod header;
pub mod incident;
mod named;
pub mod packed;
mod private;
pub mod proc_text;
pub mod records;
mod rewrite;
mod scrub;
pub mod session_programs;
pub mod text;
mod units;
mod unpack;
pub mod wayland;
mod whereabouts;
pub mod x11;

pub use calls::SystemCall;
pub use chunk::{CHUNK_BYTES, ChunkEntry, ChunkHead, RingClass, entries};
pub use cut::{cut, cut_chunk};
pub use declare::{CType, Column, Table};
pub use header::c_header;
pub use private::Concealer;
pub use records::{Head, RecordKind, TABLES};
pub use scrub::{ScrubReport, scrub};
pub use units::{Cpu, Device, Nanos, Pid, StackId, Tid};
pub use unpack::unpacked;
