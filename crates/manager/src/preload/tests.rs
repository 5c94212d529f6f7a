// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole path from a program in use to its files in memory at the next start.

use super::fake::{FakeKernel, SLEEP, file, mapping};
use super::*;
use crate::setting::UseHelper;
use crate::state::StateDir;
use std::time::{Duration, Instant};

fn options(dir: &Path, predict: bool, strength: Strength) -> ManageOptions {
    let state = StateDir::choose(Some(dir));
    let (backend, display, helper, recorder) = (None, None, UseHelper::Never, dir.to_owned());
    ManageOptions {
        strength,
        backend,
        display,
        recorder,
        under: None,
        cgroup: None,
        state,
        predict,
        helper,
    }
}

/// Waits for a result of the thread.
fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "it does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(preload: &Preload) -> PreloadStatus {
    until(|| preload.status().filter(|status| status.state != PreloadState::UnderWay))
}

fn remembered(dir: &Path) -> Option<FileHistory> {
    serde_json::from_slice(&std::fs::read(dir.join("preload.json")).ok()?).ok()
}

const NOW: Nanos = Nanos::from_secs(1_000);

/// Gives a program the focus for long enough.
fn use_for_a_while(preload: &mut Preload, who: Identity) {
    preload.focus(Some("sleep"), Some(SetId(who)), NOW);
    assert!(!is_looked_at(preload, NOW), "it has not been in use for long");
    assert!(is_looked_at(preload, NOW.after(USED)));
    assert!(!is_looked_at(preload, NOW.after(USED)), "once");
}

/// Returns `true` if a look at the mappings of the program is due.
fn is_looked_at(preload: &mut Preload, now: Nanos) -> bool {
    let mut asked = false;
    preload.keep_time(now, |set| {
        asked = true;
        vec![set.0]
    });
    asked
}

#[test]
fn files_of_a_used_program_are_read_ahead_at_the_next_start() {
    let (dir, kernel) = (tempfile::tempdir().unwrap(), FakeKernel::new());
    let options = options(dir.path(), true, Strength::Normal);
    let mut first = Preload::begin(&options, kernel.proc());
    let status = ended(&first);
    assert_eq!(
        (status.files, status.programs, status.state),
        (0, 0, PreloadState::Done),
        "nothing is known yet"
    );
    use_for_a_while(&mut first, kernel.process(7, &mapping(SLEEP)));
    let history = until(|| remembered(dir.path()));
    assert_eq!(history.plan(u64::MAX), [[file(SLEEP)]]);
    let status = ended(&Preload::begin(&options, kernel.proc()));
    assert_eq!((status.files, status.programs, status.bytes), (1, 1, file(SLEEP).bytes));
}

#[test]
fn a_program_is_looked_at_once_an_hour() {
    let (dir, kernel) = (tempfile::tempdir().unwrap(), FakeKernel::new());
    let mut preload = Preload::begin(&options(dir.path(), true, Strength::Normal), kernel.proc());
    let who = kernel.process(7, &mapping(SLEEP));
    use_for_a_while(&mut preload, who);
    for (now, expected) in
        [(NOW.after(Nanos::from_secs(60)), false), (NOW.after(USED).after(AGAIN), true)]
    {
        preload.focus(Some("sleep"), Some(SetId(who)), now);
        assert_eq!(is_looked_at(&mut preload, now.after(USED)), expected);
    }
}

#[test]
fn switched_off_nothing_is_remembered_and_nothing_is_read_ahead() {
    let (dir, kernel) = (tempfile::tempdir().unwrap(), FakeKernel::new());
    let who = kernel.process(7, &mapping(SLEEP));
    let mut preload = Preload::begin(&options(dir.path(), false, Strength::Normal), kernel.proc());
    preload.focus(Some("sleep"), Some(SetId(who)), NOW);
    preload.keep_time(NOW.after(USED), |_| unreachable!("it is off"));
    assert_eq!((preload.status(), remembered(dir.path())), (None, None));
    let mut history = FileHistory::default();
    history.remember("sleep", vec![file(SLEEP)]);
    save(&dir.path().join("preload.json"), &history);
    let status = ended(&Preload::begin(&options(dir.path(), true, Strength::Off), kernel.proc()));
    assert_eq!((status.files, status.state), (0, PreloadState::Off));
}

#[test]
fn no_more_is_read_ahead_than_a_share_of_what_is_available() {
    let (dir, kernel) = (tempfile::tempdir().unwrap(), FakeKernel::new());
    let mut history = FileHistory::default();
    history.remember("sleep", vec![file(SLEEP)]);
    save(&dir.path().join("preload.json"), &history);
    let options = options(dir.path(), true, Strength::Normal);
    kernel.memory_kb(SHARE_DIVISOR * file(SLEEP).bytes / 1024 - 8);
    assert_eq!(ended(&Preload::begin(&options, kernel.proc())).programs, 0);
    kernel.memory_kb(SHARE_DIVISOR * file(SLEEP).bytes / 1024 + 8);
    assert_eq!(ended(&Preload::begin(&options, kernel.proc())).programs, 1);
}
