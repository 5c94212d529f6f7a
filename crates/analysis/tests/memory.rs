// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a diagnosis grows with the records, by so many bytes for each of them.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::busy::busy;
use tipme_analysis::{DiagnoseOptions, diagnose};

/// What is allocated, and the most that ever was.
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        let now = NOW.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes for each record of a diagnosis, at most. The records themselves, of 24 bytes, are not among them.
const BYTES_MAX: usize = 100;

/// The most that a diagnosis of so many records allocates at a time, besides the incident.
fn peak(records: usize) -> usize {
    let incident = busy(records as u64);
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    diagnose(&incident, &DiagnoseOptions::default()).expect("the scene is well formed");
    PEAK.load(Ordering::Relaxed) - before
}

#[test]
fn each_record_takes_few_bytes() {
    let (few, many) = (100_000, 400_000);
    let each = peak(many).saturating_sub(peak(few)) / (many - few);
    assert!(each <= BYTES_MAX, "{each} bytes for each record");
}
