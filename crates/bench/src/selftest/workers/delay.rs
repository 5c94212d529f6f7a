// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long somebody does not get on, measured by himself: so a fault lasts as long on a fast machine
//! as on a slow one, and what it cost is known.

use crate::cpu_work::{cpu_time, run_queue_delay, spin};
use anyhow::{Context, Result};
use std::cell::Cell;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_record::Nanos;

/// However little somebody is delayed, he gives up after this time.
const LONGEST: Nanos = Nanos::from_secs(3);
/// How often, and with how many rounds of some nanoseconds, the speed of work is tried.
const TRIES: usize = 20;
const TRIED_ROUNDS: u64 = 1_000_000;

/// A thread's time since it began, without what it was running for.
pub(in crate::selftest) struct Delay {
    begun: Nanos,
    /// CPU time of the thread when it began.
    worked: Duration,
    goal: Nanos,
    /// How long the thread had been ready but not running, where that is left out, too.
    queued: Option<Duration>,
    /// How much of that was left out when it was looked at last.
    left_out: Cell<Duration>,
}

impl Delay {
    /// Begins now, and is enough once it is as long as `goal`.
    pub(in crate::selftest) fn until(goal: Duration) -> Delay {
        let (goal, left_out) = (Nanos(goal.as_nanos() as u64), Cell::new(Duration::ZERO));
        Delay { begun: clock::now(), worked: cpu_time(), goal, queued: None, left_out }
    }

    /// The same, without the waits for a CPU: whoever competes for that has nothing to do with this delay.
    pub(in crate::selftest) fn blocked_until(goal: Duration) -> Delay {
        Delay { queued: Some(run_queue_delay()), ..Delay::until(goal) }
    }

    /// So far.
    pub(in crate::selftest) fn so_far(&self) -> Nanos {
        self.left_out.set(self.queued.map_or(Duration::ZERO, |before| run_queue_delay().saturating_sub(before)));
        self.at_most()
    }

    /// The same without a look at what is left out, which takes longer than to get a page of memory.
    fn at_most(&self) -> Nanos {
        let left_out = cpu_time().saturating_sub(self.worked) + self.left_out.get();
        Nanos(self.passed().0.saturating_sub(left_out.as_nanos() as u64))
    }

    /// The time since it began, whatever happened in it.
    pub(in crate::selftest) fn passed(&self) -> Nanos {
        clock::now().since(self.begun)
    }

    /// It is not long enough, and there is hope that it will be.
    pub(in crate::selftest) fn goes_on(&self) -> bool {
        (self.at_most() < self.goal || self.so_far() < self.goal) && self.may_go_on()
    }

    /// It has not lasted three seconds.
    pub(in crate::selftest) fn may_go_on(&self) -> bool {
        self.passed() < LONGEST
    }
}

/// Work that is counted in rounds, each of which takes the same time.
pub(in crate::selftest) fn spin_rounds(rounds: u64) {
    spin(rounds);
}

/// What a round of such work takes now, in picoseconds: the least of some tries.
pub(in crate::selftest) fn round_picoseconds() -> u64 {
    let tries = (0..TRIES).map(|_| {
        let begun = clock::now();
        spin_rounds(TRIED_ROUNDS);
        clock::now().since(begun).0 * 1000 / TRIED_ROUNDS
    });
    tries.min().unwrap_or_default()
}

/// Leaves a delay in a file.
pub(in crate::selftest) fn note(path: &str, delay: Nanos) -> Result<()> {
    std::fs::write(path, delay.0.to_string()).with_context(|| format!("cannot write {path}"))
}

/// The delay in a file, where there is one.
pub(in crate::selftest) fn noted(path: &Path) -> Result<Option<Nanos>> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => {
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Ok(Some(Nanos(text.parse().with_context(|| format!("invalid time \"{text}\""))?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_a_delay_and_work_is_none() {
        let delay = Delay::blocked_until(Duration::from_millis(30));
        while delay.goes_on() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!((Nanos::from_millis(29)..LONGEST).contains(&delay.so_far()), "{:?}", delay.so_far());
        let delay = Delay::until(Duration::ZERO);
        super::super::work::use_cpu_time(Duration::from_millis(20));
        assert!(delay.passed().since(delay.so_far()) >= Nanos::from_millis(19));
    }

    #[test]
    fn a_note_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("delay");
        assert_eq!(noted(&path).expect("nothing there"), None);
        note(path.to_str().expect("plain letters"), Nanos(700)).expect("a folder that can be written");
        assert_eq!(noted(&path).expect("a number"), Some(Nanos(700)));
    }
}
