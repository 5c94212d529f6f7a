// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a diagnosis grows by a limited number of bytes per record.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::busy::busy;
use tipme_analysis::{DiagnoseOptions, diagnose};

/// Allocated bytes, and their peak.
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        let now = NOW.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum number of bytes per record for a diagnosis, without the 24 bytes of the record itself.
const BYTES_MAX: usize = 100;

/// Returns the peak allocation of a diagnosis of this number of records, without the incident.
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
