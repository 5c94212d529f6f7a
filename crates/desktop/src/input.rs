// SPDX-License-Identifier: MIT OR Apache-2.0
//! evdev devices: times and classes of input, never the keys.
//!
//! No device wakes a thread here: the caller drains the devices some times a second, and the
//! kernel's time stamps give the time of each event. [`Chords`] detects hot keys in the same bytes.

use crate::chords::{Chords, HotKeyPress};
use crate::error::DisplayError;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tipme_record::records::{Head, Input, RecordKind};
use tipme_record::{Nanos, Tid};

/// Size of `struct input_event` on a 64-bit kernel.
const EVENT_BYTES: usize = 24;
/// Bytes read from one device at a time.
const READ_BYTES: usize = 64 * EVENT_BYTES;
/// Maximum number of reads per device and drain; the rest stays in the kernel's bounded buffer.
const READS_MAX: usize = 16;
/// Maximum number of open devices.
const DEVICES_MAX: usize = 64;
/// Maximum number of pending hot keys: more than a person presses between two drains.
const PRESSES_MAX: usize = 16;

const EV_SYN: u16 = 0;
const EV_KEY: u16 = 1;
const EV_REL: u16 = 2;
const EV_ABS: u16 = 3;
const SYN_REPORT: u16 = 0;
const SYN_DROPPED: u16 = 3;

/// Class numbers of an [`Input`] record.
const KEY: u16 = 0;
const BUTTON: u16 = 1;
const MOTION: u16 = 2;
const SCROLL: u16 = 3;

/// Converts the events of one device to records.
#[derive(Debug, Default)]
pub struct Decoder {
    device: u32,
    /// Events of this report are incomplete: the kernel's buffer overflowed.
    dropped: bool,
    /// A motion of this report is already recorded: two axes are one motion.
    moved: bool,
    /// Overflows of the kernel's buffer; the number of events lost each time is unknown.
    pub overruns: u64,
}

impl Decoder {
    /// Makes a decoder for `/dev/input/event<device>`.
    pub fn new(device: u32) -> Decoder {
        Decoder { device, ..Decoder::default() }
    }

    /// Appends the records of whole events in `bytes`, and passes keys to `chords`.
    pub fn decode(&mut self, bytes: &[u8], out: &mut Vec<Input>, chords: &mut Chords) {
        for event in bytes.chunks_exact(EVENT_BYTES) {
            let record = RawEvent::read(event).and_then(|event| self.event(event, chords));
            out.extend(record);
        }
    }

    fn event(&mut self, event: RawEvent, chords: &mut Chords) -> Option<Input> {
        if event.kind == EV_SYN {
            if event.code == SYN_DROPPED {
                chords.forget(self.device, event.at);
            }
            self.report(event.code);
            return None;
        }
        if self.dropped {
            return None;
        }
        if event.kind == EV_KEY {
            chords.note(self.device, event.at, event.code, event.value);
        }
        let (class, press) = class(&event)?;
        if class == MOTION && std::mem::replace(&mut self.moved, true) {
            return None;
        }
        let head = Head {
            ts: event.at,
            tid: Tid(0),
            size: size_of::<Input>() as u16,
            kind: RecordKind::Input as u8,
            generation: 0,
        };
        Some(Input { head, class, press: u16::from(press), device: self.device })
    }

    fn report(&mut self, code: u16) {
        self.moved = false;
        match code {
            SYN_DROPPED => {
                self.overruns += 1;
                self.dropped = true;
            }
            SYN_REPORT => self.dropped = false,
            _ => {}
        }
    }
}

/// Decoded `struct input_event`.
struct RawEvent {
    at: Nanos,
    kind: u16,
    code: u16,
    value: i32,
}

impl RawEvent {
    fn read(bytes: &[u8]) -> Option<RawEvent> {
        let (seconds, rest) = bytes.split_first_chunk::<8>()?;
        let (micros, rest) = rest.split_first_chunk::<8>()?;
        let (kind, rest) = rest.split_first_chunk::<2>()?;
        let (code, rest) = rest.split_first_chunk::<2>()?;
        let (value, _) = rest.split_first_chunk::<4>()?;
        let seconds = u64::from_le_bytes(*seconds).saturating_mul(1_000_000_000);
        let at = Nanos(seconds.saturating_add(u64::from_le_bytes(*micros).saturating_mul(1000)));
        Some(RawEvent {
            at,
            kind: u16::from_le_bytes(*kind),
            code: u16::from_le_bytes(*code),
            value: i32::from_le_bytes(*value),
        })
    }
}

/// Returns the class of an event, and `true` if it is a press; `None` if it is not an input by the
/// user.
fn class(event: &RawEvent) -> Option<(u16, bool)> {
    /// Automatic repeat, which the user did not press.
    const REPEAT: i32 = 2;
    match (event.kind, event.code, event.value) {
        (EV_KEY, _, REPEAT) => None,
        (EV_KEY, 0x140..=0x149 | 0x14b..=0x14f, _) => None,
        (EV_KEY, 0x100..=0x15f, value) => Some((BUTTON, value != 0)),
        (EV_KEY, _, value) => Some((KEY, value != 0)),
        (EV_REL, 6 | 8 | 11 | 12, _) => Some((SCROLL, false)),
        (EV_REL | EV_ABS, _, _) => Some((MOTION, false)),
        _ => None,
    }
}

struct EvdevDevice {
    path: PathBuf,
    fd: OwnedFd,
    decoder: Decoder,
}

/// All evdev devices of the machine.
pub struct Devices {
    folder: PathBuf,
    devices: Vec<EvdevDevice>,
    seen: Option<SystemTime>,
    chords: Chords,
    /// Hot keys that were pressed and not taken yet.
    pressed: Vec<HotKeyPress>,
    /// Overflows of removed devices.
    overruns: u64,
    /// Devices that could not be opened, with the reason.
    pub refused: Vec<(PathBuf, String)>,
}

impl Devices {
    /// Opens all devices in `/dev/input`. An empty folder is not an error; a missing one is.
    pub fn open() -> Result<Devices, DisplayError> {
        Devices::open_in(Path::new("/dev/input"))
    }

    /// Opens all devices in a folder.
    pub(crate) fn open_in(folder: &Path) -> Result<Devices, DisplayError> {
        let what = format!("cannot read input devices in {}", folder.display());
        let mut devices = Devices::from_opened(Vec::new());
        folder.clone_into(&mut devices.folder);
        devices.scan().map_err(|cause| DisplayError::Io { what, cause })?;
        Ok(devices)
    }

    /// Reads already opened devices, each with its number, without blocking. No device is added
    /// later; one that ends is dropped.
    pub fn from_opened(opened: Vec<(u32, OwnedFd)>) -> Devices {
        let devices = opened.into_iter().map(|(number, fd)| EvdevDevice {
            path: PathBuf::new(),
            fd,
            decoder: Decoder::new(number),
        });
        Devices {
            folder: PathBuf::new(),
            devices: devices.collect(),
            seen: None,
            chords: Chords::default(),
            pressed: Vec::new(),
            overruns: 0,
            refused: Vec::new(),
        }
    }

    /// Detects these hot keys among the events from now on.
    pub fn watch(&mut self, chords: Chords) {
        self.chords = chords;
    }

    /// Returns the hot keys since the last call, in order of time.
    pub fn pressed(&mut self) -> Vec<HotKeyPress> {
        std::mem::take(&mut self.pressed)
    }

    /// Number of open devices.
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    /// Appends the input since the last call. Should be called at most 50 times a second.
    ///
    /// Drops devices that were unplugged and opens new ones. Returns the overflows since the start:
    /// each is an unknown number of lost events.
    pub fn drain(&mut self, out: &mut Vec<Input>) -> u64 {
        let changed = std::fs::metadata(&self.folder).and_then(|folder| folder.modified()).ok();
        if changed != self.seen {
            // A missing folder has no devices: the next drain looks again.
            let _ = self.scan();
        }
        let mut buffer = [0; READ_BYTES];
        let chords = &mut self.chords;
        self.devices.retain_mut(|device| {
            let alive = read_device(device, &mut buffer, out, chords);
            if !alive {
                self.overruns += device.decoder.overruns;
                // Another device may have its name already.
                self.seen = None;
                chords.forget(device.decoder.device, Nanos(u64::MAX));
            }
            alive
        });
        let room = PRESSES_MAX.saturating_sub(self.pressed.len());
        self.pressed.extend(chords.settle().into_iter().take(room));
        self.overruns + self.devices.iter().map(|device| device.decoder.overruns).sum::<u64>()
    }

    fn scan(&mut self) -> std::io::Result<()> {
        self.seen = std::fs::metadata(&self.folder)?.modified().ok();
        let known: BTreeSet<PathBuf> =
            self.devices.iter().map(|device| device.path.clone()).collect();
        self.refused.clear();
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let path = entry.path();
            let Some(number) = number(&path).filter(|_| !known.contains(&path)) else { continue };
            if self.devices.len() >= DEVICES_MAX {
                self.refused.push((path, format!("{DEVICES_MAX} devices are open already")));
                continue;
            }
            match open_device(&path) {
                Ok(fd) => {
                    self.devices.push(EvdevDevice { path, fd, decoder: Decoder::new(number) })
                }
                Err(error) => self.refused.push((path, std::io::Error::from(error).to_string())),
            }
        }
        Ok(())
    }
}

/// Returns the number in `event<number>`.
fn number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("event")?.parse().ok()
}

/// Opens a device in non-blocking mode, with CLOCK_MONOTONIC for its time stamps.
fn open_device(path: &Path) -> Result<OwnedFd, Errno> {
    const CLOCK_MONOTONIC: i32 = 1;
    const SET_CLOCK: rustix::ioctl::Opcode = opcode::write::<i32>(b'E', 0xa0);
    let fd = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: EVIOCSCLOCKID takes a pointer to one int, which is what the setter passes.
    unsafe { ioctl(&fd, Setter::<SET_CLOCK, i32>::new(CLOCK_MONOTONIC)) }?;
    Ok(fd)
}

/// Drains a device; returns `false` if it was removed.
fn read_device(
    device: &mut EvdevDevice,
    buffer: &mut [u8],
    out: &mut Vec<Input>,
    chords: &mut Chords,
) -> bool {
    for _ in 0..READS_MAX {
        match rustix::io::read(&device.fd, &mut *buffer) {
            Ok(0) => return false,
            Ok(count) => {
                device.decoder.decode(buffer.get(..count).unwrap_or_default(), out, chords)
            }
            Err(Errno::AGAIN) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotkeys::{Bindings, HotKeyAction};

    fn event(at_us: u64, kind: u16, code: u16, value: i32) -> Vec<u8> {
        let mut bytes = (at_us / 1_000_000).to_le_bytes().to_vec();
        bytes.extend((at_us % 1_000_000).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(code.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        bytes
    }

    fn decode(events: &[Vec<u8>]) -> (Vec<(u64, u16, u16)>, u64) {
        let mut decoder = Decoder::new(3);
        let mut out = Vec::new();
        decoder.decode(&events.concat(), &mut out, &mut Chords::default());
        assert!(
            out.iter().all(|record| record.device == 3
                && record.head.size == 24
                && record.head.kind == 29)
        );
        (
            out.iter().map(|record| (record.head.ts.0, record.class, record.press)).collect(),
            decoder.overruns,
        )
    }

    #[test]
    fn a_key_is_a_class_and_a_press_and_no_code() {
        let events = [
            event(1_000_005, EV_KEY, 30, 1),
            event(1_000_005, EV_SYN, SYN_REPORT, 0),
            event(1_300_000, EV_KEY, 30, 2),
            event(1_300_000, EV_SYN, SYN_REPORT, 0),
            event(1_400_000, EV_KEY, 30, 0),
        ];
        assert_eq!(decode(&events).0, vec![(1_000_005_000, KEY, 1), (1_400_000_000, KEY, 0)]);
    }

    #[test]
    fn two_axes_of_one_report_are_one_motion() {
        let events = [
            event(10, EV_REL, 0, 4),
            event(10, EV_REL, 1, -2),
            event(10, EV_SYN, SYN_REPORT, 0),
            event(20, EV_REL, 0, 1),
            event(20, EV_SYN, SYN_REPORT, 0),
        ];
        assert_eq!(decode(&events).0, vec![(10_000, MOTION, 0), (20_000, MOTION, 0)]);
    }

    #[test]
    fn buttons_wheels_and_tools_have_classes_of_their_own() {
        let events = [
            event(1, EV_KEY, 0x110, 1),
            event(2, EV_REL, 8, 1),
            event(3, EV_KEY, 0x145, 1),
            event(4, EV_KEY, 0x14a, 1),
            event(5, 4, 4, 30),
        ];
        assert_eq!(
            decode(&events).0,
            vec![(1000, BUTTON, 1), (2000, SCROLL, 0), (4000, BUTTON, 1)]
        );
    }

    #[test]
    fn an_overrun_is_counted_and_its_report_left_out() {
        let events = [
            event(1, EV_SYN, SYN_DROPPED, 0),
            event(1, EV_KEY, 30, 1),
            event(1, EV_SYN, SYN_REPORT, 0),
            event(2, EV_KEY, 31, 1),
        ];
        assert_eq!(decode(&events), (vec![(2000, KEY, 1)], 1));
    }

    #[test]
    fn a_torn_event_and_a_wild_stamp_do_no_harm() {
        let mut wild = vec![0xff; EVENT_BYTES];
        wild.extend([1, 2, 3]);
        assert_eq!(decode(&[wild]).0, vec![]);
        let mut key = event(0, EV_KEY, 30, 1);
        key[..16].fill(0xff);
        assert_eq!(decode(&[key]).0, vec![(u64::MAX, KEY, 1)]);
    }

    /// Devices with events written by the test.
    fn piped(numbers: &[u32]) -> (Vec<OwnedFd>, Devices) {
        use rustix::pipe::{PipeFlags, pipe_with};
        let pipes = numbers.iter().map(|_| pipe_with(PipeFlags::NONBLOCK).expect("a pipe"));
        let (reads, writes): (Vec<_>, Vec<_>) = pipes.unzip();
        let mut devices = Devices::from_opened(numbers.iter().copied().zip(reads).collect());
        devices.watch(Chords::new(&Bindings::default()).expect("the default keys have places"));
        (writes, devices)
    }

    fn send(device: &OwnedFd, events: &[(u64, u16, u16, i32)]) {
        let bytes: Vec<u8> = events
            .iter()
            .flat_map(|(at, kind, code, value)| event(*at, *kind, *code, *value))
            .collect();
        assert_eq!(rustix::io::write(device, &bytes), Ok(bytes.len()));
    }

    const CTRL: u16 = 29;
    const ALT: u16 = 56;
    const MINUS: u16 = 12;

    #[test]
    fn hot_keys_across_keyboards_have_the_kernels_time_stamp() {
        let (writes, mut devices) = piped(&[4, 2]);
        let mut out = Vec::new();
        send(&writes[0], &[(20, EV_KEY, MINUS, 1), (20, EV_SYN, SYN_REPORT, 0)]);
        send(&writes[1], &[(10, EV_KEY, CTRL, 1), (11, EV_KEY, ALT, 1), (30, EV_KEY, ALT, 0)]);
        devices.drain(&mut out);
        assert_eq!(
            devices.pressed(),
            [HotKeyPress { action: HotKeyAction::Mark, at: Nanos(20_000) }]
        );
        assert_eq!(devices.pressed(), []);
        assert_eq!(out.len(), 4);
        assert!(out.iter().all(|input| input.class == KEY));
    }

    #[test]
    fn a_keyboard_that_lost_events_or_is_gone_holds_no_modifier() {
        let (mut writes, mut devices) = piped(&[1, 2]);
        let held = [(1, EV_KEY, CTRL, 1), (2, EV_KEY, ALT, 1)];
        let press = [(9, EV_KEY, MINUS, 1)];
        send(&writes[0], &held);
        // The press within the report that lost events does not count either.
        send(
            &writes[0],
            &[(3, EV_SYN, SYN_DROPPED, 0), (3, EV_KEY, MINUS, 1), (4, EV_SYN, SYN_REPORT, 0)],
        );
        send(&writes[1], &press);
        assert_eq!((devices.drain(&mut Vec::new()), devices.pressed()), (1, vec![]));
        send(&writes[0], &held);
        devices.drain(&mut Vec::new());
        drop(writes.remove(0));
        devices.drain(&mut Vec::new());
        send(&writes[0], &press);
        assert_eq!(
            (devices.drain(&mut Vec::new()), devices.pressed(), devices.count()),
            (1, vec![], 1)
        );
        send(&writes[0], &[held[0], held[1], press[0]]);
        devices.drain(&mut Vec::new());
        assert_eq!(devices.pressed().len(), 1);
    }

    #[test]
    fn a_new_device_with_the_name_of_a_removed_one_is_opened() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (mut writes, mut devices) = piped(&[7]);
        folder.path().clone_into(&mut devices.folder);
        devices.devices[0].path = folder.path().join("event7");
        std::fs::write(folder.path().join("event7"), b"").expect("a file");
        // The new device appears before the removal of the old one is noticed.
        devices.drain(&mut Vec::new());
        drop(writes.remove(0));
        devices.drain(&mut Vec::new());
        assert_eq!((devices.count(), devices.refused.len()), (0, 0));
        devices.drain(&mut Vec::new());
        assert_eq!(devices.refused.len(), 1, "a file is not a device");
    }

    #[test]
    fn hot_keys_that_nobody_takes_are_bounded() {
        let (writes, mut devices) = piped(&[1]);
        send(&writes[0], &[(1, EV_KEY, CTRL, 1), (2, EV_KEY, ALT, 1)]);
        (0..100).for_each(|_| send(&writes[0], &[(3, EV_KEY, MINUS, 1), (4, EV_KEY, MINUS, 0)]));
        (0..5).for_each(|_| assert_eq!(devices.drain(&mut Vec::new()), 0));
        assert_eq!(devices.pressed().len(), PRESSES_MAX);
    }

    #[test]
    fn files_that_are_no_devices_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("event0"), b"").expect("a file");
        std::fs::write(folder.path().join("mice"), b"").expect("a file");
        let mut devices = Devices::open_in(folder.path()).expect("the folder is there");
        assert_eq!(devices.count(), 0);
        assert_eq!(devices.refused.len(), 1);
        assert_eq!(devices.drain(&mut Vec::new()), 0);
        let missing = Devices::open_in(&folder.path().join("none"));
        assert!(
            missing
                .is_err_and(|error| error.to_string().starts_with("cannot read input devices in "))
        );
    }
}
