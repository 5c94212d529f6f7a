// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walk over all threads records as many as it has room for, and counts the others. Needs root.

use tipme_kernel::{Kernel, KernelOptions, Storage};
use tipme_record::{Head, Nanos, RecordKind};
use zerocopy::FromBytes;

/// Number of threads of this process, and room of a short walk.
const THREADS: usize = 40;
const ROOM: u32 = 25;

/// Returns the number of records of a kind.
fn count(mut bytes: &[u8], kind: RecordKind) -> usize {
    let mut found = 0;
    while let Ok((head, _)) = Head::read_from_prefix(bytes) {
        found += usize::from(head.kind == kind as u8);
        bytes = &bytes[usize::from(head.size)..];
    }
    found
}

#[test]
fn threads_that_have_no_room_are_counted() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
    for _ in 0..THREADS {
        let stopped = stopped.clone();
        std::thread::spawn(move || stopped.lock().unwrap().recv().ok());
    }
    let mut storage = Storage::default();
    let (memory, window) = (32 << 20, Nanos(0));
    let options = KernelOptions {
        memory,
        without: Vec::new(),
        display: None,
        window,
        hertz: 99,
        details: Vec::new(),
    };
    let mut kernel = Kernel::arm(&mut storage, &options).unwrap();
    let (all, left_out) = kernel.walk(1 << 20).unwrap();
    assert!(count(&all, RecordKind::Task) > THREADS && left_out == 0, "{left_out} were left out");
    let (some, left_out) = kernel.walk(ROOM).unwrap();
    assert_eq!(count(&some, RecordKind::Task), ROOM as usize);
    assert!(left_out as usize > THREADS - ROOM as usize, "{left_out} were left out");
    drop(stop);
}
