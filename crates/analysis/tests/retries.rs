// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futex waits that time out and are retried: one wait for a lock, or sleeps.

mod support;

use support::locks::FUTEX;
use support::{APP, Machinery, WORKER};
use tipme_analysis::model::{CauseKind, Culprit, Finding};
use tipme_record::records::Wait;

/// A thread of the editor that holds the futex of the first one, and another program.
const HOLDER: u32 = 500;
const OTHER: u32 = 600;
/// The private operation with a bit set and a timeout.
const WAIT_BITSET: u64 = 0x89;
/// The editor's event wait, of three files.
const POLL: i32 = 7;
const MARK: u64 = 7_000_000;
/// Timeouts in milliseconds, as of a Java monitor.
const LONGER: [u64; 5] = [1, 8, 64, 512, 1_000];

/// Waits of an editor after a key at 3 s.
struct Scene {
    machine: Machinery,
    now: u64,
    /// Run time between two attempts, in microseconds.
    runs: u64,
}

impl Scene {
    fn new() -> Scene {
        Scene::of(|wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]))
    }

    /// Creates a scene in which keys find the editor in this wait.
    fn of(event_wait: fn(&mut Wait)) -> Scene {
        let mut machine = Machinery::with_app("editor");
        machine.task(HOLDER, APP, 1, "holder", 1).task(WORKER, APP, 1, "worker", 1);
        machine.task(OTHER, OTHER, 1, "other", 1);
        machine.typing(100_000, 12).press(3_000_000);
        for us in (100_000..2_500_000).step_by(200_000).chain([3_000_000]) {
            machine.wait(us + 101, APP, us - 100_000, event_wait);
        }
        Scene { machine, now: 3_000_700, runs: 80 }
    }

    /// The editor waits in a futex until a timeout of `ms` milliseconds.
    fn times_out(&mut self, ms: u64, word: u64) -> &mut Scene {
        let (from, until) = (self.now, self.now + ms * 1_000);
        self.machine.switch(from, 1, 0, 1).wake_from(until, APP, 0, 2, 1).switch(
            until + 10,
            1,
            APP,
            0,
        );
        self.machine.wait(until + 1, APP, from, |wait| {
            (wait.syscall, wait.args, wait.context) = (FUTEX, [word, WAIT_BITSET, 0], 2);
        });
        self.now = until + 10 + self.runs;
        self
    }

    fn tries(&mut self, lengths: &[u64]) -> &mut Scene {
        lengths.iter().for_each(|ms| {
            self.times_out(*ms, 64);
        });
        self
    }

    /// The editor waits until `holder` wakes it at 4.99 s, and draws.
    fn woken_by(&mut self, holder: u32, word: u64) -> &mut Scene {
        self.machine
            .switch(self.now, 1, 0, 1)
            .wake_from(4_989_850, holder, 0, 2, 0)
            .switch(4_989_900, 0, holder, 0);
        self.machine
            .wake_from(4_990_000, APP, holder, 0, 1)
            .switch(4_990_010, 0, 0, 1)
            .switch(4_990_050, 1, APP, 0);
        self.machine.wait(4_990_001, APP, self.now, |wait| {
            (wait.syscall, wait.args) = (FUTEX, [word, WAIT_BITSET, 0])
        });
        self.machine.draw(5_000_000);
        self
    }

    /// The holder computes on a CPU of its own; with `holder_rests` it sleeps until just before the
    /// release.
    fn holder_computes(&mut self) -> &mut Scene {
        self.machine.switch(2_999_000, 2, HOLDER, 1);
        self
    }

    fn holder_rests(&mut self, lengths: &[u64]) -> &mut Scene {
        self.machine.switch(2_999_000, 2, HOLDER, 1).switch(2_999_100, 2, 0, 1);
        let now = self.tries(lengths).now;
        self.machine.wake_from(now + 5, HOLDER, 0, 2, 2).switch(now + 10, 2, HOLDER, 0);
        self
    }

    /// A running thread wakes the editor from a wait too short for a record, and it draws.
    fn released_by(&mut self, holder: u32) -> &mut Scene {
        let now = self.now;
        self.machine.switch(now, 1, 0, 1).wake_from(now + 50, APP, holder, 0, 1).switch(
            now + 60,
            1,
            APP,
            0,
        );
        self.machine.draw(now + 500);
        self
    }

    fn findings(&mut self, mark: u64) -> Vec<Finding> {
        self.machine.diagnose(mark).findings
    }

    fn first(&mut self) -> CauseKind {
        self.findings(MARK).first().expect("it hangs").kind
    }
}

#[test]
fn timed_out_tries_are_one_wait_for_the_last_waker() {
    let findings = Scene::new().tries(&LONGER).woken_by(HOLDER, 64).findings(MARK);
    let finding = findings.first().expect("it hangs");
    assert_eq!((findings.len(), finding.kind), (1, CauseKind::LockWait), "{findings:?}");
    assert!((finding.ms - 1_990.0).abs() < 15.0, "{}", finding.ms);
    assert!(matches!(&finding.culprit, Culprit::Process { pid: APP, .. }), "{:?}", finding.culprit);
    assert!(!finding.signalled, "it is a lock, though each try waits in a condition");
    let waited = "editor (pid 200) waited for a lock in futex";
    assert!(finding.evidence.iter().any(|line| line == waited), "{:?}", finding.evidence);
}

#[test]
fn tries_without_a_waker_are_sleeps() {
    assert_eq!(Scene::new().tries(&[100; 19]).woken_by(HOLDER, 64).first(), CauseKind::LockWait);
    let mut polls = Scene::new();
    polls.tries(&[100; 19]).machine.draw(4_960_000);
    assert_eq!(polls.first(), CauseKind::TimerSleep);
}

#[test]
fn many_tries_are_one_wait_too() {
    let findings = Scene::new().tries(&[10; 196]).woken_by(HOLDER, 64).findings(MARK);
    let found =
        findings.iter().map(|finding| (finding.kind, finding.ms > 1_900.0)).collect::<Vec<_>>();
    assert_eq!(found, [(CauseKind::LockWait, true)]);
}

#[test]
fn a_sleep_before_a_wait_is_one() {
    assert_eq!(Scene::new().tries(&[1_500]).woken_by(HOLDER, 64).first(), CauseKind::TimerSleep);
    assert_eq!(Scene::new().tries(&LONGER).woken_by(HOLDER, 1_024).first(), CauseKind::TimerSleep);
}

/// Waits of a thread for an interpreter's lock while another thread computes in the interpreter.
#[test]
fn a_last_try_too_short_for_a_record_is_for_the_worker() {
    for lengths in [&[5; 160][..], &[800]] {
        let findings =
            Scene::new().holder_computes().tries(lengths).released_by(HOLDER).findings(MARK);
        let found =
            findings.iter().map(|finding| (finding.kind, finding.ms > 750.0)).collect::<Vec<_>>();
        assert_eq!(found, [(CauseKind::LockWait, true)], "{lengths:?}");
        assert_eq!(
            Scene::new().holder_rests(lengths).released_by(HOLDER).first(),
            CauseKind::TimerSleep,
            "{lengths:?}"
        );
        let mut other = Scene::new();
        assert_eq!(
            other.holder_computes().tries(lengths).released_by(OTHER).first(),
            CauseKind::TimerSleep,
            "{lengths:?}"
        );
    }
}

#[test]
fn a_thread_that_works_between_waits_does_not_retry() {
    let mut computes = Scene::new();
    computes.runs = 2_000;
    assert_eq!(computes.tries(&LONGER).woken_by(HOLDER, 64).first(), CauseKind::TimerSleep);
    let mut asks = Scene::new();
    let then = asks.tries(&LONGER).now;
    asks.machine.wake_from(then - 40, WORKER, APP, 0, 0).switch(then - 30, 0, WORKER, 0).switch(
        then - 20,
        0,
        0,
        1,
    );
    assert_eq!(asks.woken_by(HOLDER, 64).first(), CauseKind::TimerSleep);
}

#[test]
fn a_process_that_cannot_share_the_futex_does_not_hold_it() {
    assert_eq!(Scene::new().tries(&LONGER).woken_by(OTHER, 64).first(), CauseKind::TimerSleep);
}

#[test]
fn a_wait_for_the_next_event_is_for_no_lock() {
    let mut scene = Scene::of(|wait| (wait.syscall, wait.args) = (FUTEX, [64, WAIT_BITSET, 0]));
    let findings = scene.tries(&LONGER).woken_by(HOLDER, 64).findings(MARK);
    assert!(findings.iter().all(|finding| finding.kind != CauseKind::LockWait), "{findings:?}");
}

#[test]
fn at_the_mark_only_tries_that_take_longer_are_for_a_lock() {
    for (lengths, kind) in [(&LONGER[..], CauseKind::LockWait), (&[300; 5], CauseKind::TimerSleep)]
    {
        let mut scene = Scene::new();
        let from = scene.tries(lengths).now;
        scene.machine.switch(from, 1, 0, 1);
        scene.machine.still_waiting(5_000_000, APP, from, |wait| {
            (wait.syscall, wait.args) = (FUTEX, [64, WAIT_BITSET, 0]);
        });
        let findings = scene.findings(5_000_000);
        assert_eq!(findings.first().map(|finding| finding.kind), Some(kind), "{findings:?}");
    }
}
