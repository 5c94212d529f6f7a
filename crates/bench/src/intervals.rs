// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common parts of the papers' benchmarks of periodic work: a process that records time stamps, a
//! load beside it, and a recorder.

mod cleanup;
mod explain;
mod figures;
mod stamp_buffer;
mod table;

use crate::interrupt::InterruptFlag;
use crate::kernel_text::schedstat;
use crate::process::ProcessGroup;
use crate::progress::ProgressListener;
use crate::worker::{self, Ready, WorkerLauncher, number, say_ready, word};
use anyhow::{Result, ensure};
pub(crate) use cleanup::{Cleanup, PREFIX, run as run_cleanup};
pub(crate) use explain::Explainer;
pub use figures::{LoadIntervals, Longest, MeasuredLoad};
pub(crate) use stamp_buffer::{STAMPS_MAX, StampBuffer};
use std::ffi::OsString;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{Duration, Instant};
use tipme_desktop::clock;
use tipme_measure::Intervals;

/// Maximum time to wait until a program is running.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time for the last interval of the measuring process, before it is aborted.
pub const GRACE: Duration = Duration::from_secs(15);
/// Interval between checks for new stamps.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between lines of progress.
const NEWS: Duration = Duration::from_secs(5);
/// Length from which an interval is reported at once.
const SECOND: u64 = 1_000_000_000;

/// Limits of the measurement of a load: it ends once there are enough intervals or enough time has
/// passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub intervals: usize,
    pub time: Duration,
}

/// The measuring process and its stamps.
pub(crate) struct Stamping {
    process: ProcessGroup,
    stamp_buffer: StampBuffer,
}

impl Stamping {
    /// Starts a worker program. Appends stamp buffer, number of intervals and milliseconds to its
    /// words.
    pub(crate) fn start(
        workers: &NamedWorkers<'_>,
        name: &str,
        words: &[&str],
        bounds: Bounds,
        cpu: Option<usize>,
    ) -> Result<Stamping> {
        ensure!(bounds.intervals < STAMPS_MAX, "at most {} intervals", STAMPS_MAX - 1);
        let stamp_buffer = StampBuffer::make(bounds.intervals + 1)?;
        let (path, count) =
            (stamp_buffer.path().display().to_string(), bounds.intervals.to_string());
        let millis = bounds.time.as_millis().to_string();
        let all: Vec<&str> = words.iter().copied().chain([&*path, &*count, &*millis]).collect();
        Ok(Stamping { process: workers.start(name, &all, cpu)?.process, stamp_buffer })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Starts the measurement, waits until it has all its intervals, and returns them.
    pub(crate) fn follow(
        mut self,
        load: &str,
        expected: Duration,
        bounds: Bounds,
        interrupt: &InterruptFlag,
        progress: &mut dyn ProgressListener,
    ) -> Result<MeasuredLoad> {
        progress.line(&format!("{load}: measuring"));
        let begun = Instant::now();
        let (mut news, mut cpu) = (begun, None);
        self.process.signal(rustix::process::Signal::USR1);
        let cut_off = loop {
            interrupt.check()?;
            cpu = cpu_time(self.process.pid()).or(cpu);
            if self.process.wait(POLL_INTERVAL)?.is_some() {
                break None;
            }
            if begun.elapsed() > bounds.time + GRACE {
                break Some(clock::now().0);
            }
            if news.elapsed() > NEWS {
                news = Instant::now();
                progress.line(&self.news(load, begun, bounds));
            }
        };
        let stamps = self.stamp_buffer.stamps();
        ensure!(
            !stamps.is_empty(),
            "the measuring process ended before it began; see its message above"
        );
        let intervals = Intervals::of(load, expected.as_nanos() as u64, &stamps, cut_off);
        Ok(MeasuredLoad::new(intervals, self.process.pid(), cpu))
    }

    fn news(&self, load: &str, begun: Instant, bounds: Bounds) -> String {
        let stamps = self.stamp_buffer.stamps();
        let longest =
            stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default();
        let open = stamps.last().map_or(0, |last| clock::now().0.saturating_sub(*last));
        let hangs = if open > SECOND {
            format!(", waiting for {} ms now", open / 1_000_000)
        } else {
            String::new()
        };
        format!(
            "{load}: {} s of at most {}, {} intervals, the longest {} ms{hangs}",
            begun.elapsed().as_secs(),
            bounds.time.as_secs(),
            stamps.len().saturating_sub(1),
            longest / 1_000_000
        )
    }
}

/// Returns the CPU time of a process's first thread so far, in nanoseconds.
fn cpu_time(pid: u32) -> Option<u64> {
    schedstat(&pid.to_string()).map(|(ran, _)| ran.as_nanos() as u64)
}

/// Folder in which worker programs are started under names of their own.
pub(crate) struct NamedWorkers<'a> {
    pub folder: &'a Path,
    pub launcher: &'a WorkerLauncher,
}

impl NamedWorkers<'_> {
    /// Starts a worker program as a process called `name`, and waits until it is in place.
    pub(crate) fn start(&self, name: &str, words: &[&str], cpu: Option<usize>) -> Result<Ready> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let alias = self.folder.join(name);
        // An earlier program of this name may have left its link.
        let _ = std::fs::remove_file(&alias);
        worker::start(name, self.launcher.command(Some(&alias), &words)?, cpu, TIMEOUT)
    }
}

/// The measuring process's side: its last three words, and the wait for the start.
pub(crate) struct ProcessStamps {
    stamp_buffer: StampBuffer,
    intervals: usize,
    time: Duration,
}

impl ProcessStamps {
    /// Reads the words that [`Stamping::start`] appends after `at` others, reports `ready`, and
    /// waits for the start signal.
    pub(crate) fn begin(words: &[&str], at: usize) -> Result<ProcessStamps> {
        let stamp_buffer = StampBuffer::open(Path::new(word(words, at)?))?;
        let intervals = number(words, at + 1)?;
        let time = Duration::from_millis(number(words, at + 2)?);
        wait_for_signal()?;
        Ok(ProcessStamps { stamp_buffer, intervals, time })
    }

    /// Does the work and records stamps, until there are enough intervals or the time is over.
    pub(crate) fn repeat(&self, mut work: impl FnMut(usize)) {
        let begun = clock::now();
        self.stamp_buffer.stamp(begun.0);
        for round in 0..self.intervals {
            work(round);
            let now = clock::now();
            if !self.stamp_buffer.stamp(now.0) || now.since(begun).0 >= self.time.as_nanos() as u64
            {
                return;
            }
        }
    }
}

/// Blocks SIGUSR1 before it reports `ready`, so that none is missed, and waits for it.
fn wait_for_signal() -> Result<()> {
    // SAFETY: a set of signals is plain data, for which zeroes are fine before sigemptyset fills
    // it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: all three calls are given pointers to locals that live until they return; the mask is
    // that of this thread, which is the only one.
    let error = unsafe {
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::sigprocmask(libc::SIG_BLOCK, &set, null_mut())
    };
    ensure!(error == 0, "cannot block a signal: {}", std::io::Error::last_os_error());
    say_ready("")?;
    let mut taken = 0;
    // SAFETY: both pointers are to locals that live until the call returns.
    let error = unsafe { libc::sigwait(&set, &mut taken) };
    ensure!(error == 0, "cannot wait for a signal");
    Ok(())
}
