// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of the running kernel, read by a kernel program of five instructions, since `/proc/kcore`
//! may be absent.

use std::ffi::CStr;
use std::io;
use std::ops::Range;

/// Number of bytes per run of the program.
const PIECE: usize = 1 << 15;

const MAP_CREATE: i64 = 0;
const MAP_LOOKUP: i64 = 1;
const PROG_LOAD: i64 = 5;
const PROG_RUN: i64 = 10;
const ARRAY: u32 = 2;
/// `BPF_PROG_TYPE_SYSCALL`: run on request and attached to nothing.
const CALLED: u32 = 31;
const SLEEPABLE: u32 = 1 << 4;
const PROBE_READ_KERNEL: i32 = 113;
const LICENSE: &CStr = c"GPL";

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgRun {
    program: u32,
    result: u32,
    data_sizes: [u32; 2],
    data: [u64; 2],
    repeat: u32,
    duration: u32,
    context_size: u32,
    context_size_out: u32,
    context: u64,
    context_out: u64,
}

#[repr(C)]
#[derive(Default)]
struct MapLookup {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// File descriptors of the loaded program and its map, open until the process ends.
pub struct KernelMemory {
    program: u32,
    map: u32,
}

impl KernelMemory {
    /// Loads the program.
    pub fn open() -> io::Result<KernelMemory> {
        let (key_size, value_size) = (4, PIECE as u32);
        let mut create = MapCreate { kind: ARRAY, key_size, value_size, max_entries: 1, flags: 0 };
        let map = bpf(MAP_CREATE, &mut create)?;
        let code = [
            instruction(0x79, 0x13, 0),            // r3 = *(u64 *)context
            instruction(0x18, 0x21, map as i32),   // r1 = the map's value
            instruction(0, 0, 0),                  // its second half: offset 0
            instruction(0xb7, 0x02, PIECE as i32), // r2 = its length
            instruction(0x85, 0, PROBE_READ_KERNEL),
            instruction(0x95, 0, 0),
        ];
        let mut load = ProgLoad {
            kind: CALLED,
            instructions: code.len() as u32,
            code: code.as_ptr().addr() as u64,
            license: LICENSE.as_ptr().addr() as u64,
            flags: SLEEPABLE,
            ..ProgLoad::default()
        };
        Ok(KernelMemory { program: bpf(PROG_LOAD, &mut load)?, map })
    }

    /// Returns the bytes of a range of addresses.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for at in range.clone().step_by(PIECE) {
            bytes.extend(self.piece(at)?);
        }
        bytes.truncate((range.end - range.start) as usize);
        Ok(bytes)
    }

    fn piece(&self, at: u64) -> io::Result<Vec<u8>> {
        let context = (&raw const at).addr() as u64;
        let mut run =
            ProgRun { program: self.program, context_size: 8, context, ..ProgRun::default() };
        bpf(PROG_RUN, &mut run)?;
        if run.result != 0 {
            return Err(io::Error::from_raw_os_error(-(run.result as i32)));
        }
        let (key, mut bytes) = (0_u32, vec![0; PIECE]);
        let (key, value) =
            ((&raw const key).addr() as u64, bytes.as_mut_ptr().expose_provenance() as u64);
        bpf(MAP_LOOKUP, &mut MapLookup { map: self.map, key, value, ..MapLookup::default() })?;
        Ok(bytes)
    }
}

/// Encodes an instruction without an offset; `registers` has the source above the destination.
fn instruction(operation: u8, registers: u8, immediate: i32) -> u64 {
    u64::from(operation) | u64::from(registers) << 8 | u64::from(immediate as u32) << 32
}

fn bpf<T>(command: i64, attributes: &mut T) -> io::Result<u32> {
    // SAFETY: the structure begins as the kernel's union does for this command, and what it points
    // to outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as u32) }
}
