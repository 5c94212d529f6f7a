// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds of a load process: touching pages and computing.

use super::kind::{LoadKind, Pages};
use crate::cpu_work::{cpu_time_of, spin};
use crate::pages::MappedPages;
use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Memory of a process of a small load.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// CPU time of a round.
const ROUND: Duration = Duration::from_millis(1);
/// Minimum share of arithmetic in a round, as a divisor: touching pages can take the rest.
const SPIN_SHARE_MIN: u64 = 20;
/// Sizes of the calibration: rounds of arithmetic, pages to touch, and number of tries. The fastest
/// try counts, since a hypervisor that has to allocate a page delays a try by itself.
const TRIED: u64 = 200_000;
const TRIED_PAGES: usize = 16_384;
const TRIES: usize = 10;
const PAGE_BYTES: usize = 4_096;
static PAGE: [u8; PAGE_BYTES] = [0x5a; PAGE_BYTES];

/// Returns the number of pages in `bytes`.
pub(super) fn pages(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES as u64).max(1)
}

/// Work of this CPU in a millisecond, measured once, so that all loads of a measurement have the
/// same rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed {
    /// Rounds of arithmetic.
    spin_per_ms: u64,
    /// Nanoseconds to touch and release a new page, and to touch a resident one.
    fresh_ns: u64,
    known_ns: u64,
}

impl Speed {
    /// Measures the speed; takes some tenths of a second of CPU time, and 64 MiB meanwhile.
    pub(crate) fn try_out() -> Result<Speed> {
        let tries = (0..TRIES).map(|_| cpu_time_of(|| spin(TRIED)));
        let least = tries.min().unwrap_or_default().as_nanos().max(1) as u64;
        let (mut fresh_ns, mut known_ns) = (u64::MAX, u64::MAX);
        for _ in 0..TRIES {
            let (fresh, known) = touch_ns()?;
            (fresh_ns, known_ns) = (fresh_ns.min(fresh), known_ns.min(known));
        }
        Ok(Speed {
            spin_per_ms: (TRIED * ROUND.as_nanos() as u64 / least).max(1),
            fresh_ns,
            known_ns,
        })
    }

    /// Unknown speed, for questions about a load that does not run.
    pub(crate) const NONE: Speed = Speed { spin_per_ms: 0, fresh_ns: 0, known_ns: 0 };

    /// Returns the arithmetic that fills a round beside touching its pages. Pages that are not
    /// reused are new ones, unless the load has touched all of its memory before it begins.
    pub(super) fn spin(self, kind: LoadKind, pages: Pages) -> u64 {
        let (demand, other_ns) = (
            f64::from(pages.demand),
            if kind.has_touched_all() { self.known_ns } else { self.fresh_ns },
        );
        let touching_ns =
            demand * (pages.reuse * self.known_ns as f64 + (1.0 - pages.reuse) * other_ns as f64);
        let rest = (1.0 - touching_ns / ROUND.as_nanos() as f64).max(1.0 / SPIN_SHARE_MIN as f64);
        ((self.spin_per_ms as f64 * rest) as u64).max(1)
    }
}

/// Pages of each round: a run of consecutive pages that advances by the share that is not reused.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Window {
    pages: usize,
    demand: usize,
    /// Pages by which a round advances; `rest` keeps the fraction.
    step: f64,
    rest: f64,
    start: usize,
}

impl Window {
    /// Limits the pages to those that exist; larger requests are refused earlier.
    pub(super) fn new(pages: usize, wanted: Pages) -> Window {
        let pages = pages.max(1);
        let demand = (wanted.demand as usize).clamp(1, pages);
        Window { pages, demand, step: demand as f64 * (1.0 - wanted.reuse), rest: 0.0, start: 0 }
    }

    /// Returns the pages of the next round, which may wrap around, and `true` if the end was passed
    /// before it.
    pub(super) fn next(&mut self) -> (impl Iterator<Item = usize> + use<>, bool) {
        let (start, pages) = (self.start, self.pages);
        let round = (start..start + self.demand).map(move |page| page % pages);
        let moved = self.step + self.rest;
        self.rest = moved.fract();
        let end = start + moved as usize;
        self.start = end % pages;
        (round, end >= pages)
    }
}

/// Storage of the pages.
pub(super) enum PageStore {
    Memory(MappedPages),
    File(File),
}

/// Memory of one process, and its position in it.
pub(super) struct MemoryWalk {
    store: PageStore,
    window: Window,
    spin: u64,
    bytes: usize,
    /// Pages after the last one are new again, as in a stream.
    streams: bool,
}

impl MemoryWalk {
    /// Allocates the memory, and touches all of it unless it is a stream.
    pub(super) fn begin(
        kind: LoadKind,
        pages: Pages,
        bytes: u64,
        spin: u64,
        folder: Option<&Path>,
    ) -> Result<MemoryWalk> {
        let bytes = (bytes as usize).max(PAGE_BYTES);
        let window = Window::new(bytes / PAGE_BYTES, pages);
        let mut walk = MemoryWalk {
            store: store(bytes, folder)?,
            window,
            spin,
            bytes,
            streams: kind == LoadKind::Stream,
        };
        if let (PageStore::Memory(mapping), true) = (&mut walk.store, kind.has_touched_all()) {
            (0..mapping.pages()).for_each(|page| mapping.fill(page));
        }
        Ok(walk)
    }

    /// Runs one round; returns the number of pages touched.
    pub(super) fn round(&mut self) -> Result<u64> {
        let (pages, passed) = self.window.next();
        let touched = match &mut self.store {
            PageStore::Memory(mapping) => pages.map(|page| mapping.fill(page)).count() as u64,
            PageStore::File(file) => write_pages(file, pages)?,
        };
        if passed && self.streams {
            self.renew()?;
        }
        spin(self.spin);
        Ok(touched)
    }

    /// Releases the passed memory, and continues with new memory.
    fn renew(&mut self) -> Result<()> {
        match &self.store {
            PageStore::File(file) => file.set_len(0).context("cannot empty a file of the load"),
            PageStore::Memory(_) => {
                self.store = store(self.bytes, None)?;
                Ok(())
            }
        }
    }
}

fn store(bytes: usize, folder: Option<&Path>) -> Result<PageStore> {
    match folder {
        None => Ok(PageStore::Memory(MappedPages::of_small_pages(bytes)?)),
        Some(folder) => {
            let file = tempfile::tempfile_in(folder);
            Ok(PageStore::File(
                file.with_context(|| format!("cannot make a file in {}", folder.display()))?,
            ))
        }
    }
}

fn write_pages(file: &File, pages: impl Iterator<Item = usize>) -> Result<u64> {
    let mut touched = 0;
    for page in pages {
        file.write_all_at(&PAGE, (page * PAGE_BYTES) as u64)
            .context("cannot write a file of the load")?;
        touched += 1;
    }
    Ok(touched)
}

/// Measures the CPU time to touch and release a new page, and to touch a resident one, in
/// nanoseconds.
fn touch_ns() -> Result<(u64, u64)> {
    let mut mapping = MappedPages::of_small_pages(TRIED_PAGES * PAGE_BYTES)?;
    let [first, again] =
        [(); 2].map(|()| cpu_time_of(|| (0..TRIED_PAGES).for_each(|page| mapping.fill(page))));
    let fresh = first + cpu_time_of(|| drop(mapping));
    Ok((fresh.as_nanos() as u64 / TRIED_PAGES as u64, again.as_nanos() as u64 / TRIED_PAGES as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(pages: usize, demand: u32, reuse: f64, count: usize) -> Vec<Vec<usize>> {
        let mut window = Window::new(pages, Pages { demand, reuse });
        (0..count).map(|_| window.next().0.collect()).collect()
    }

    /// Returns the share of a round's pages that the previous round had too, over many rounds.
    fn reused(pages: usize, demand: u32, reuse: f64) -> f64 {
        let rounds = rounds(pages, demand, reuse, 1_000);
        let both =
            |pair: &[Vec<usize>]| pair[1].iter().filter(|page| pair[0].contains(page)).count();
        rounds.windows(2).map(both).sum::<usize>() as f64 / (999.0 * f64::from(demand))
    }

    #[test]
    fn demand_and_reuse_are_what_was_asked_for() {
        for reuse in [0.0, 0.3, 0.95, 0.995, 1.0] {
            assert!(
                (reused(10_000, 40, reuse) - reuse).abs() < 0.01,
                "{reuse}: {}",
                reused(10_000, 40, reuse)
            );
        }
        for round in rounds(100, 30, 0.5, 50) {
            let mut different = round.clone();
            different.sort_unstable();
            different.dedup();
            assert_eq!((different.len(), round.iter().all(|page| *page < 100)), (30, true));
        }
    }

    #[test]
    fn without_reuse_every_page_has_its_turn_before_one_comes_again() {
        let mut seen: Vec<usize> = rounds(12, 4, 0.0, 3).concat();
        seen.sort_unstable();
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
        let mut window = Window::new(12, Pages { demand: 4, reuse: 0.0 });
        assert_eq!([0, 1, 2, 3].map(|_| window.next().1), [false, false, true, false]);
    }

    #[test]
    fn a_small_buffer_bounds_the_demand() {
        assert_eq!(rounds(3, 100, 0.0, 1), [vec![0, 1, 2]]);
        assert_eq!(Window::new(0, Pages { demand: 0, reuse: 0.0 }).next().0.count(), 1);
    }

    #[test]
    fn touching_takes_its_share_of_a_round() {
        let speed = Speed { spin_per_ms: 1_000, fresh_ns: 1_000, known_ns: 10 };
        assert_eq!(speed.spin(LoadKind::Stream, Pages { demand: 500, reuse: 0.0 }), 500);
        assert_eq!(speed.spin(LoadKind::Stream, Pages { demand: 100, reuse: 1.0 }), 999);
        assert_eq!(speed.spin(LoadKind::Stream, Pages { demand: 4_000, reuse: 0.0 }), 50);
        assert_eq!(
            speed.spin(LoadKind::Big, Pages { demand: 500, reuse: 0.0 }),
            995,
            "all is touched before"
        );
        let tried = Speed::try_out().expect("memory");
        assert!(tried.spin_per_ms > 1_000, "{tried:?}");
    }

    #[test]
    fn a_stream_goes_through_memory_and_through_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        for folder in [None, Some(folder.path())] {
            let pages = Pages { demand: 4, reuse: 0.0 };
            let mut walk = MemoryWalk::begin(LoadKind::Stream, pages, 8 << 12, 1, folder)
                .expect("memory or a file");
            let touched: u64 = (0..5).map(|_| walk.round().expect("room")).sum();
            assert_eq!(touched, 20);
        }
    }
}
