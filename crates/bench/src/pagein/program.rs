// SPDX-License-Identifier: MIT OR Apache-2.0
//! Program with the working set: it has a window, walks through its buffer after each key, and
//! draws.

use super::options::{Pagein, WORDS};
use crate::cpu_work::{cpu_time, run_queue_delay};
use crate::driver::BenchStage;
use crate::intervals::StampBuffer;
use crate::pages::MappedPages;
use crate::process::major_faults;
use crate::worker::{WorkerLauncher, number, word};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tipme_desktop::echo::EchoWindow;
use tipme_desktop::{DisplayTarget, clock};
use tipme_record::Nanos;

/// Maximum time of an exchange with the display; the display's own pages may be evicted too.
const SERVER_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum wait for a key; the end of the benchmark ends this program earlier.
const KEY_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// Times and faults of a walk through a part of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Walk {
    /// Time in which the program neither ran nor waited for a CPU: the wait for its pages.
    pub waited: Nanos,
    /// Total time.
    pub time: Nanos,
    /// Major page faults.
    pub faults: u64,
}

impl Walk {
    /// Touches some pages.
    fn through(buffer: &MappedPages, pages: impl Iterator<Item = usize>) -> Walk {
        let own = [std::process::id()];
        let (faults, in_queue) = (major_faults(&own), run_queue_delay());
        let (begun, worked) = (clock::now(), cpu_time());
        pages.for_each(|page| {
            black_box(buffer.touch(page));
        });
        let (worked, time) = (cpu_time().saturating_sub(worked), clock::now().since(begun));
        let busy = worked + run_queue_delay().saturating_sub(in_queue);
        let waited = Nanos(time.0.saturating_sub(busy.as_nanos() as u64));
        Walk { waited, time, faults: major_faults(&own).saturating_sub(faults) }
    }

    fn note(self, stamp_buffer: &StampBuffer) {
        // If the buffer is full, the reader misses the record.
        for word in [self.waited.0, self.time.0, self.faults] {
            stamp_buffer.stamp(word);
        }
    }
}

/// Returns the complete records, in the order of the keys.
pub(super) fn walks(stamp_buffer: &StampBuffer) -> Vec<Walk> {
    let words = stamp_buffer.stamps();
    let records = words.chunks_exact(WORDS);
    records
        .map(|record| Walk { waited: Nanos(record[0]), time: Nanos(record[1]), faults: record[2] })
        .collect()
}

/// Returns the command that starts the program.
pub(super) fn command(
    options: &Pagein,
    launcher: &WorkerLauncher,
    stage: &dyn BenchStage,
    stamp_buffer: &StampBuffer,
) -> Result<Command> {
    let target = stage.target()?;
    let authority = target.authority.context("the display has no authority file")?;
    let (display, bytes, keys) = (target.display, options.working_set, options.keys_per_lap);
    let numbers = [display.to_string(), bytes.to_string(), keys.to_string()].map(OsString::from);
    let paths = [authority.into_os_string(), stamp_buffer.path().into_os_string()];
    let words: Vec<OsString> =
        [OsString::from("pagein")].into_iter().chain(numbers).chain(paths).collect();
    launcher.command(Some(&stage.folder().join("pagein")), &words)
}

/// `pagein DISPLAY BYTES KEYS AUTHORITY STAMPS`: fills a buffer, opens a window, and walks through
/// a part of the buffer after each key, all of it in KEYS keys. Records each walk in the stamp
/// buffer once it is answered.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (keys, authority) = (number::<usize>(words, 2)?, word(words, 3)?);
    let stamp_buffer = StampBuffer::open(Path::new(word(words, 4)?))?;
    let mut buffer = MappedPages::of_small_pages(number(words, 1)?)?;
    (0..buffer.pages()).for_each(|page| buffer.fill(page));
    let target = DisplayTarget {
        authority: Some(authority.into()),
        timeout: SERVER_TIMEOUT,
        ..DisplayTarget::new(number(words, 0)?)
    };
    let mut window = EchoWindow::open(&target)?;
    let part = buffer.pages().div_ceil(keys.max(1));
    let mut at = 0;
    while let Some(received) = window.receive(KEY_TIMEOUT)? {
        let walk = Walk::through(&buffer, (at..at + part).map(|page| page % buffer.pages()));
        at = (at + part) % buffer.pages();
        window.answer(received)?;
        walk.note(&stamp_buffer);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_through_what_is_there_hardly_waits() {
        let mut buffer = MappedPages::of_small_pages(4 << 20).expect("memory");
        (0..buffer.pages()).for_each(|page| buffer.fill(page));
        let stamp_buffer = StampBuffer::make(10).expect("memory");
        let walk = Walk::through(&buffer, 0..buffer.pages());
        assert!(walk.time > Nanos(0) && walk.waited <= walk.time, "{walk:?}");
        walk.note(&stamp_buffer);
        Walk::default().note(&stamp_buffer);
        assert!(stamp_buffer.stamp(7), "a record that is not complete");
        assert_eq!(walks(&stamp_buffer), [walk, Walk::default()]);
    }
}
