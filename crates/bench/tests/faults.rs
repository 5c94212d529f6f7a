// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each fault delays a key on a terminal, and leaves nothing behind. Needs root.
//!
//! Needs no display: the test holds the other end of the terminal.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_bench::alone::MachineLock;
use tipme_bench::faults::{FAULTS, Fault, Scenario, Site};
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::process::{ProcessGroup, group_members};
use tipme_bench::worker::WorkerLauncher;

/// Maximum time until the program on the terminal is ready, and until it answers a key.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Keys before the fault; the fastest counts, to exclude other activity of the machine.
const CALM_KEYS: usize = 5;
/// Minimum delay that a fault adds to a key.
const DELAY_MIN: Duration = Duration::from_millis(150);
/// Keys during the fault, a tenth of a second apart: the slowest of them counts.
const KEYS: usize = 8;

/// Both ends of a new terminal.
fn terminal() -> (File, OwnedFd) {
    let (mut outer, mut inner) = (-1, -1);
    let nothing = std::ptr::null_mut();
    // SAFETY: the call writes two numbers, and the other arguments ask for nothing.
    let made = unsafe {
        libc::openpty(&mut outer, &mut inner, nothing, std::ptr::null(), std::ptr::null())
    };
    assert_eq!(made, 0, "no terminal can be made");
    // SAFETY: both were opened just now, and nothing else uses them.
    unsafe { (File::from_raw_fd(outer), OwnedFd::from_raw_fd(inner)) }
}

/// A program on a terminal.
struct Typewriter {
    keyboard: File,
    program: ProcessGroup,
}

impl Typewriter {
    fn start(fault: &Fault, scenario: &Scenario, folder: &TempDir) -> Typewriter {
        let (keyboard, inner) = terminal();
        let words: Vec<_> = scenario.prefix.iter().chain(&scenario.program).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(folder.path()).env("TERM", "dumb");
        command
            .stdin(inner.try_clone().expect("a second one"))
            .stdout(inner.try_clone().expect("a third one"));
        command.stderr(inner);
        let program =
            ProcessGroup::start(fault.name, command, fault.options().cpu).expect("it starts");
        let mut typewriter = Typewriter { keyboard, program };
        let deadline = Instant::now() + TIMEOUT;
        // Until the program reads keys, the terminal echoes them by itself; and keys may get lost.
        std::thread::sleep(Duration::from_millis(500));
        while !typewriter.types('a', Duration::from_millis(500)) {
            assert!(Instant::now() < deadline, "{} takes no keys", fault.name);
        }
        typewriter
    }

    /// Presses a key; returns `true` if something is printed in time.
    fn types(&mut self, key: char, timeout: Duration) -> bool {
        write!(self.keyboard, "{key}").expect("a terminal");
        let printed = self.printed(timeout);
        while printed && self.printed(Duration::from_millis(20)) {}
        printed
    }

    fn printed(&mut self, timeout: Duration) -> bool {
        let limit =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let ready = poll(&mut [PollFd::new(&self.keyboard, PollFlags::IN)], Some(&limit))
            .expect("a terminal");
        ready > 0 && self.keyboard.read(&mut [0; 4096]).expect("a terminal") > 0
    }

    fn time(&mut self, key: char) -> Duration {
        let begun = Instant::now();
        assert!(self.types(key, TIMEOUT), "no answer within {TIMEOUT:?}");
        begun.elapsed()
    }
}

/// Returns the difference between the slowest key during the fault and the fastest one before it.
fn delay(fault: &Fault) -> Duration {
    let launcher = WorkerLauncher(vec![env!("CARGO_BIN_EXE_tipme-worker").into()]);
    let folder = tempfile::tempdir().expect("a folder");
    let site = Site { folder: folder.path().to_owned(), x11: None, launcher };
    let mut scenario = fault.prepare(&site).expect("a prepared fault");
    let mut typewriter = Typewriter::start(fault, &scenario, &folder);
    let mut keys = scenario.keys.chars().cycle();
    let calm = keys.by_ref().take(CALM_KEYS).map(|key| typewriter.time(key)).min().expect("keys");
    let terminal = typewriter.program.pid();
    let injected = scenario.inject(terminal).expect("the fault begins");
    let begun = Instant::now();
    let mut slowest = Duration::ZERO;
    for (at, key) in (0..KEYS as u32).zip(keys) {
        std::thread::sleep((Duration::from_millis(100) * at).saturating_sub(begun.elapsed()));
        slowest = slowest.max(typewriter.time(key));
        if slowest > calm + DELAY_MIN {
            break;
        }
    }
    println!("{}: a key takes {calm:?}, during the fault {slowest:?}", fault.name);
    let root = injected.as_ref().and_then(|injected| injected.root());
    drop(injected);
    assert!(root.is_none_or(|root| group_members(root).is_empty()), "{}", fault.name);
    drop(typewriter);
    drop(scenario);
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    assert!(!mounts.contains(&folder.path().display().to_string()), "{mounts}");
    slowest.saturating_sub(calm)
}

#[test]
fn each_fault_delays_a_key() {
    let _alone = MachineLock::wait(&InterruptFlag::default(), || ())
        .expect("nobody else disturbs the machine");
    let faults = FAULTS.iter().filter(|fault| !fault.needs_x11 && !fault.is_calm());
    let delays: Vec<_> = faults.map(|fault| (fault.name, delay(fault))).collect();
    let short: Vec<_> = delays.iter().filter(|(_, delay)| *delay < DELAY_MIN).collect();
    assert!(short.is_empty(), "{short:?}");
}
