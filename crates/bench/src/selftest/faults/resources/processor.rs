// SPDX-License-Identifier: MIT OR Apache-2.0
//! Others have the CPU.

use super::shortage::{Shortage, ShortageEffects, order, shortfall};
use crate::filler;
use crate::process::{ProcessGroup, group_members};
use crate::selftest::fault::{App, Fault};
use crate::selftest::site::{Site, text};
use crate::selftest::workers::sleep_until;
use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use tipme_desktop::clock;
use tipme_record::Nanos;

pub(super) const HOGS: Fault = Fault {
    name: "cpu-hogs",
    about: "forty processes of one parent compute on the application's CPU",
    kinds: &[&["cpu-competition"]],
    pinned: true,
    prepare: |site| Ok(shortfall(site, Hogs)),
    ..Fault::OURS
};

pub(super) const STORM: Fault = Fault {
    name: "fork-storm",
    about: "a job compresses many small files on the application's CPU, each with a process of its own",
    kinds: &[&["cpu-competition"]],
    apps: &App::ALL,
    programs: &["xargs", "gzip", "taskset"],
    pinned: true,
    prepare: |site| Ok(shortfall(site, ApplicationStorm { observer: None })),
};

pub(super) const REALTIME: Fault = Fault {
    name: "realtime-hog",
    about: "a process of real-time priority computes on the application's CPU",
    kinds: &[&["cpu-competition"]],
    apps: &App::ALL,
    pinned: true,
    prepare: |site| Ok(shortfall(site, Realtime)),
    ..Fault::OURS
};

pub(super) const PERIODIC: Fault = Fault {
    name: "periodic-hog",
    about: "a process of real-time priority takes the application's CPU for 200 ms once a second",
    kinds: &[&["cpu-competition"]],
    apps: &[App::Patient],
    pinned: true,
    prepare: |site| Ok(shortfall(site, Periodic)),
    ..Fault::OURS
};

/// Processes that compete with an application that computes, and with one that is only woken up.
const FEW: &str = "40";
const MANY: &str = "64";
/// How long they compute, in milliseconds: longer than the trial takes.
const HOGGING_MS: &str = "9000";

/// One parent and its children.
struct Hogs;

impl Shortage for Hogs {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let count = if site.patient()?.is_some() { FEW } else { MANY };
        let hogs = site.start("hogs", &["hogs", count, HOGGING_MS], Some(site.cpu))?;
        let mut effects = ShortageEffects::with(hogs.process, order(site, "work", &[]));
        effects.culprits.extend(hogs.said.split(' ').filter_map(|child| child.parse::<u32>().ok()));
        Ok(effects)
    }
}

/// Processes at a time, for an application that computes, and for one that is only woken up.
const PARALLEL: usize = 48;
const PARALLEL_MANY: usize = 200;
/// Processes in all, which bounds the job to about half a minute of one CPU.
const TOTAL: usize = 1300;
/// Bytes that each compresses: some hundredths of a second of CPU time.
const INPUT_BYTES: usize = 256 << 10;
/// How long the first processes may take to be there.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the job is looked at: who lives shorter is not seen.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// `xargs` keeps many `gzip` at work on the application's CPU.
struct ApplicationStorm {
    observer: Option<Observer>,
}

impl Shortage for ApplicationStorm {
    /// The parent may use any CPU, so that its children are not starved of new ones by themselves.
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let parallel = if site.patient()?.is_some() { PARALLEL } else { PARALLEL_MANY };
        let (input, list) = (site.path("input"), site.path("list"));
        std::fs::write(&input, filler::text(INPUT_BYTES)).context("cannot write the storm's input")?;
        std::fs::write(&list, format!("{}\n", text(&input)).repeat(TOTAL)).context("cannot write the storm's list")?;
        let mut command = Command::new("xargs");
        command.args([
            "-n",
            "1",
            "-P",
            &parallel.to_string(),
            "taskset",
            "-c",
            &site.cpu.to_string(),
            "gzip",
            "-9",
            "-c",
        ]);
        command.stdin(File::open(&list)?).stdout(Stdio::null()).stderr(Stdio::null());
        let job = ProcessGroup::start("the compression job", command, None)?;
        wait_for_members(&job, parallel)?;
        self.observer = Some(Observer::of(job.pid()));
        Ok(ShortageEffects::with(job, order(site, "work", &[])))
    }

    fn end(&mut self) -> Vec<u32> {
        self.observer.take().map(Observer::finish).unwrap_or_default()
    }
}

fn wait_for_members(job: &ProcessGroup, count: usize) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while job.members().len() < count {
        if Instant::now() >= deadline {
            bail!("the storm did not start {count} processes within {START_TIMEOUT:?}");
        }
        sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// A thread that notes which processes a job has, for as long as the value lives.
struct Observer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<BTreeSet<u32>>>,
}

impl Observer {
    fn of(group: u32) -> Observer {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = spawn(move || {
            let mut seen = BTreeSet::new();
            while !told.load(Ordering::Relaxed) {
                seen.extend(group_members(group));
                sleep(POLL_INTERVAL);
            }
            seen
        });
        Observer { stop, thread: Some(thread) }
    }

    fn finish(mut self) -> Vec<u32> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_default().into_iter().collect()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// How long the real-time process computes, in milliseconds.
const REALTIME_MS: &str = "700";
const PIPE: &str = "poke";

/// It begins when a byte comes: from the application that obeys, else right before the key.
struct Realtime;

impl Shortage for Realtime {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let pipe = site.pipe(PIPE)?;
        let words = ["realtime-hog", &pipe, REALTIME_MS];
        let hog = site.start("audio-engine", &words, Some(site.cpu))?.process;
        Ok(ShortageEffects::with(hog, order(site, "poke", &[&pipe])))
    }

    fn release(&mut self, site: &Site) -> Result<()> {
        if site.patient()?.is_none() {
            let pipe = File::options().write(true).open(site.path(PIPE));
            pipe.and_then(|mut pipe| pipe.write_all(b"!")).context("cannot wake the real-time process")?;
        }
        Ok(())
    }
}

/// Keeps this thread off a CPU, so that it is not held up there itself.
struct Elsewhere {
    before: CpuSet,
}

impl Elsewhere {
    fn than(cpu: usize) -> Result<Elsewhere> {
        let before = sched_getaffinity(None).context("cannot learn which CPUs may be used")?;
        let mut others = before;
        others.unset(cpu);
        sched_setaffinity(None, &others).context("this needs two CPUs")?;
        Ok(Elsewhere { before })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // What was allowed before is allowed again.
        let _ = sched_setaffinity(None, &self.before);
    }
}

const PERIOD: Nanos = Nanos::from_secs(1);
/// Turns before the one that the key falls into.
const TURNS_BEFORE: u64 = 7;
/// The key is pressed this long after the begin of a turn.
const INTO_TURN: Nanos = Nanos::from_millis(2);

/// It has taken its turns for some seconds when the key falls into one.
struct Periodic;

impl Shortage for Periodic {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let first = clock::now().after(PERIOD);
        let words = ["realtime-turns", &first.0.to_string(), "1000", "200", "12"];
        let hog = site.start("backlight-daemon", &words, Some(site.cpu))?.process;
        let _elsewhere = Elsewhere::than(site.cpu)?;
        sleep_until(Nanos(first.0 + TURNS_BEFORE * PERIOD.0).after(INTO_TURN));
        Ok(ShortageEffects { culprits: vec![hog.pid()], jobs: vec![hog], ..ShortageEffects::default() })
    }
}
