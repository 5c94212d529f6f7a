// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of the kernel's clocks, queried by system calls: the kernel configuration is not
//! always readable.

use rustix::thread::current_timer_slack;
use std::path::Path;
use tipme_measure::timer::{Clocks, ClocksApart, OfferedClock};

/// All clocks with a number; `true` marks those that results had before all of them were included.
const CLOCKS: [(&str, libc::clockid_t, bool); 11] = [
    ("monotonic", libc::CLOCK_MONOTONIC, true),
    ("realtime", libc::CLOCK_REALTIME, true),
    ("boottime", libc::CLOCK_BOOTTIME, true),
    ("monotonic-coarse", libc::CLOCK_MONOTONIC_COARSE, true),
    ("realtime-coarse", libc::CLOCK_REALTIME_COARSE, false),
    ("monotonic-raw", libc::CLOCK_MONOTONIC_RAW, false),
    ("tai", libc::CLOCK_TAI, false),
    ("realtime-alarm", libc::CLOCK_REALTIME_ALARM, false),
    ("boottime-alarm", libc::CLOCK_BOOTTIME_ALARM, false),
    ("process-cputime", libc::CLOCK_PROCESS_CPUTIME_ID, false),
    ("thread-cputime", libc::CLOCK_THREAD_CPUTIME_ID, false),
];

/// Number of reads per batch, and of batches; the least disturbed batch counts.
const READS: usize = 1_000;
const BATCHES: usize = 20;

/// Maximum number of reads of a clock that only ticks advance.
const READS_MAX: usize = 2_000_000;

const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";
const EVENTS: &str = "/sys/devices/system/clockevents";

/// Returns resolutions, ticks and slack of the calling thread, and the kernel's clock source.
pub fn clocks() -> Clocks {
    let known = CLOCKS.iter().filter(|(.., before)| *before);
    let resolutions =
        known.filter_map(|(name, id, _)| Some(((*name).to_owned(), resolution(*id)?)));
    let [source, sources] = ["current_clocksource", "available_clocksource"]
        .map(|file| std::fs::read_to_string(Path::new(SOURCES).join(file)).unwrap_or_default());
    Clocks {
        hz: resolution(libc::CLOCK_MONOTONIC_COARSE).and_then(hz),
        resolutions_ns: resolutions.collect(),
        // Without high-resolution timers the kernel reports a whole tick.
        high_resolution: resolution(libc::CLOCK_MONOTONIC) == Some(1),
        slack_ns: current_timer_slack().ok(),
        source: source.split_whitespace().next().map(str::to_owned),
        sources: sources.split_whitespace().map(str::to_owned).collect(),
        event_devices: event_devices(Path::new(EVENTS)),
        clocks: CLOCKS.iter().map(|(name, id, _)| figures(name, *id, resolution(*id))).collect(),
    }
}

fn resolution(id: libc::clockid_t) -> Option<u64> {
    get(id, libc::clock_getres)
}

/// Derives the tick rate from the coarse clock, which advances at ticks.
fn hz(tick_ns: u64) -> Option<u64> {
    (tick_ns > 1_000).then(|| (1_000_000_000 + tick_ns / 2) / tick_ns)
}

/// Returns the timer interrupt device of each CPU, as `clockevent0` and `lapic-deadline`.
fn event_devices(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let devices = entries.filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("current_device")).ok()?;
        let device = text.split_whitespace().next()?.to_owned();
        Some((entry.file_name().to_string_lossy().into_owned(), device))
    });
    let mut devices: Vec<(String, String)> = devices.collect();
    devices.sort();
    devices
}

type ClockCall = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// Calls a clock function; returns nanoseconds, or `None` if there is no such clock.
fn get(id: libc::clockid_t, call: ClockCall) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls take a number and fill the structure that is passed.
    let result = unsafe { call(id, &raw mut time) };
    let seconds_ns = time.tv_sec.unsigned_abs().wrapping_mul(1_000_000_000);
    (result == 0).then(|| seconds_ns.wrapping_add(time.tv_nsec.unsigned_abs()))
}

/// Measures a clock by repeated reads.
fn figures(name: &str, id: libc::clockid_t, resolution_ns: Option<u64>) -> OfferedClock {
    let is_there = get(id, libc::clock_gettime).is_some();
    OfferedClock {
        name: name.to_owned(),
        resolution_ns: resolution_ns.filter(|_| is_there),
        step_ns: step(id),
        read_ns: is_there
            .then(|| (0..BATCHES).map(|_| read_cost(id)).fold(f64::INFINITY, f64::min)),
    }
}

/// Returns the smallest step between two reads; `None` if the clock does not move.
fn step(id: libc::clockid_t) -> Option<u64> {
    let (mut last, mut step, mut reads) = (get(id, libc::clock_gettime)?, None, 0);
    while reads < READS * BATCHES || step.is_none() && reads < READS_MAX {
        let this = get(id, libc::clock_gettime)?;
        let moved = Some(this.wrapping_sub(last)).filter(|moved| *moved > 0);
        step = step.into_iter().chain(moved).min();
        last = this;
        reads += 1;
    }
    step
}

/// Returns the mean time of a read in one batch.
fn read_cost(id: libc::clockid_t) -> f64 {
    let begin = monotonic();
    for _ in 0..READS {
        std::hint::black_box(get(id, libc::clock_gettime));
    }
    monotonic().wrapping_sub(begin) as f64 / READS as f64
}

fn monotonic() -> u64 {
    get(libc::CLOCK_MONOTONIC, libc::clock_gettime).unwrap_or_default()
}

/// Readings of several clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockWatch {
    raw: u64,
    monotonic: u64,
    realtime: u64,
    boottime: u64,
    cycles: u64,
}

impl ClockWatch {
    pub(super) fn begin() -> ClockWatch {
        let [raw, monotonic, realtime, boottime] = [
            libc::CLOCK_MONOTONIC_RAW,
            libc::CLOCK_MONOTONIC,
            libc::CLOCK_REALTIME,
            libc::CLOCK_BOOTTIME,
        ]
        .map(|id| get(id, libc::clock_gettime).unwrap_or_default());
        ClockWatch { raw, monotonic, realtime, boottime, cycles: cycles() }
    }

    /// Returns the drift between the clocks since then.
    pub(super) fn end(self) -> ClocksApart {
        let now = ClockWatch::begin();
        let raw = now.raw.wrapping_sub(self.raw) as i64;
        let monotonic = now.monotonic.wrapping_sub(self.monotonic) as i64;
        let realtime = now.realtime.wrapping_sub(self.realtime) as i64;
        let boottime = now.boottime.wrapping_sub(self.boottime) as i64;
        let cycles = now.cycles.wrapping_sub(self.cycles) as i64;
        ClocksApart {
            seconds: raw as f64 / 1e9,
            tsc_mhz: (cycles > 0 && raw > 0).then(|| cycles as f64 * 1e3 / raw as f64),
            slewed_ppm: if raw > 0 { (monotonic - raw) as f64 * 1e6 / raw as f64 } else { 0.0 },
            suspended_ms: (boottime - monotonic) as f64 / 1e6,
            set_ms: (realtime - monotonic) as f64 / 1e6,
        }
    }
}

/// Reads the time-stamp counter; 0 if programs cannot read one.
#[cfg(target_arch = "x86_64")]
fn cycles() -> u64 {
    // SAFETY: the instruction reads a counter and nothing else.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Always 0 on this architecture.
#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_to_whole_numbers_a_second() {
        assert_eq!(
            (hz(4_000_000), hz(3_333_333), hz(1_000_250)),
            (Some(250), Some(300), Some(1_000))
        );
        assert_eq!(hz(1), None);
    }

    #[test]
    fn the_clocks_of_this_kernel_are_read() {
        let clocks = clocks();
        assert!(clocks.hz.is_some_and(|hz| (24..=10_000).contains(&hz)), "{clocks:?}");
        assert!(
            clocks.resolutions_ns.len() == 4
                && clocks.resolutions_ns.iter().all(|(_, step)| *step > 0),
            "{clocks:?}"
        );
        assert!(clocks.source.is_some_and(|source| clocks.sources.contains(&source)));
        let [fine, coarse] = ["monotonic", "monotonic-coarse"]
            .map(|name| clocks.clocks.iter().find(|one| one.name == name).unwrap());
        assert!(
            fine.step_ns < coarse.step_ns && fine.read_ns.is_some_and(|ns| ns > 0.0),
            "{fine:?} {coarse:?}"
        );
        // A clock that is slewed steps by a little more or less than its resolution.
        let (step, resolution) = (coarse.step_ns.unwrap(), coarse.resolution_ns.unwrap());
        assert!(step >= resolution - resolution / 100, "{coarse:?}");
        assert_eq!(clocks.clocks.len(), CLOCKS.len());
    }

    #[test]
    fn a_clock_that_is_not_there_has_no_figures() {
        let none = figures("none", 63, Some(1));
        assert_eq!((none.resolution_ns, none.step_ns, none.read_ns), (None, None, None));
    }

    #[test]
    fn devices_are_read_where_there_are_any() {
        let folder = tempfile::TempDir::new().unwrap();
        for (name, device) in
            [("clockevent1", "hpet\n"), ("clockevent0", "lapic-deadline\n"), ("power", "")]
        {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("current_device"), device).unwrap();
        }
        let devices = event_devices(folder.path());
        let expected = [("clockevent0", "lapic-deadline"), ("clockevent1", "hpet")];
        assert_eq!(devices, expected.map(|(name, device)| (name.to_owned(), device.to_owned())));
        assert_eq!(event_devices(Path::new("/no/such")), []);
    }

    #[test]
    fn clocks_that_go_together_are_not_apart() {
        let watch = ClockWatch::begin();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let apart = watch.end();
        assert!(apart.seconds >= 0.02 && apart.suspended_ms.abs() < 5.0, "{apart:?}");
        let past = ClockWatch { boottime: watch.boottime - 7_000_000_000, ..watch };
        assert!((past.end().suspended_ms - 7_000.0).abs() < 5.0, "a sleep of the machine shows");
    }
}
