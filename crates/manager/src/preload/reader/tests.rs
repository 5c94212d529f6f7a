// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads installed files ahead, with simulated pressure.

use super::*;
use crate::preload::fake::{FakeKernel, SLEEP, file};

#[test]
fn files_are_read_and_what_has_changed_is_counted() {
    let (kernel, brake) = (FakeKernel::new(), Brake::default());
    let mounts = MountList::read(kernel.proc());
    let changed = RememberedFile { changed_s: 1, ..file("/usr/bin/env") };
    let status =
        Reader::new(kernel.proc(), &mounts, &brake).read(&[vec![file(SLEEP)], vec![changed]]);
    let expected = (2, 1, 1, file(SLEEP).bytes, PreloadState::Done);
    assert_eq!(
        (status.programs, status.files, status.skipped, status.bytes, status.state),
        expected
    );
    let open = File::open(SLEEP).unwrap();
    assert!(is_cached(&open, 0) && is_cached(&open, file(SLEEP).bytes - 1));
}

#[test]
fn it_stands_still_while_others_wait_and_goes_on_afterwards() {
    let (kernel, brake) = (FakeKernel::new(), Brake::default());
    let mounts = MountList::read(kernel.proc());
    let status = std::thread::scope(|scope| {
        let reading =
            scope.spawn(|| Reader::new(kernel.proc(), &mounts, &brake).read(&[vec![file(SLEEP)]]));
        for tick in 1..=30 {
            kernel.press("io", tick * 100_000);
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(!reading.is_finished(), "others wait for the disk");
        reading.join().unwrap()
    });
    assert_eq!((status.files, status.state), (1, PreloadState::Done));
    assert!(status.paused_seconds >= 3.0 && status.seconds >= status.paused_seconds, "{status:?}");
}

#[test]
fn a_program_start_pauses_reading_and_the_knob_ends_it() {
    let (kernel, brake) = (FakeKernel::new(), Brake::default());
    let mounts = MountList::read(kernel.proc());
    let (begun, wait) = (clock::now(), Nanos::from_secs(4));
    brake.hold_until(begun.after(wait));
    let read = Reader::new(kernel.proc(), &mounts, &brake).read(&[vec![file(SLEEP)]]);
    assert_eq!(read.state, PreloadState::Done);
    assert!(clock::now().since(begun) >= wait);
    brake.stop();
    let read = Reader::new(kernel.proc(), &mounts, &brake).read(&[vec![file(SLEEP)]]);
    assert_eq!((read.files, read.programs, read.state), (0, 0, PreloadState::Off));
}

#[test]
fn it_ends_when_it_is_no_longer_ahead_of_anything() {
    let (kernel, brake) = (FakeKernel::new(), Brake::default());
    let mounts = MountList::read(kernel.proc());
    let late = Reader { begun: Nanos(0), ..Reader::new(kernel.proc(), &mounts, &brake) };
    assert_eq!(late.read(&[vec![file(SLEEP)]]).state, PreloadState::OutOfTime);
}
