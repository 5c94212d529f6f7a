// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys, from keyboard events to the incident. Needs root.

use super::super::keys::SAME_PRESS;
use super::super::*;
use crate::hot_keys::HotKeyScope;
use crate::seat::Seat;
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::path::Path;
use tipme_control::Trigger;
use tipme_desktop::hotkeys::Bindings;
use tipme_desktop::input::Devices;
use tipme_desktop::logind::Logind;
use tipme_record::incident::{Incident, Meta, Section};
use tipme_record::records::Input;
use zerocopy::FromBytes;

const CTRL: u16 = 29;
const ALT: u16 = 56;
const MINUS: u16 = 12;
const ZERO: u16 = 11;
const ONE: u16 = 2;
const LETTERS: [u16; 3] = [31, 18, 46];

/// Timeout long enough for any machine, never reached in a passing test.
const SEALED_MAX: Duration = Duration::from_secs(120);

fn options(dir: &Path, scope: HotKeyScope) -> RecorderOptions {
    let hot_keys = HotKeyOptions {
        scope,
        bindings: Bindings::default(),
        console: dir.join("no-console"),
        judge: dir.join("no-judge"),
    };
    RecorderOptions {
        dirs: StateDirs::below(dir),
        window: Nanos::from_secs(20),
        memory: 16 << 20,
        // A display that does not exist, and no terminals: only the keyboard is recorded.
        tap: Tap::Only(60_000),
        without: ["samples", "terminals"].map(str::to_owned).to_vec(),
        details: Vec::new(),
        allowed: Vec::new(),
        kept: tipme_store::FolderBounds::default(),
        day: false,
        auto: None,
        hot_keys: Some(hot_keys),
        sealer: Sealer::Here,
    }
}

/// A keyboard and a recorder that reads it.
struct KeyboardFixture<'a> {
    recorder: Recorder<'a>,
    keyboard: OwnedFd,
}

impl<'a> KeyboardFixture<'a> {
    fn new(options: &'a RecorderOptions, storage: &'a mut Storage) -> KeyboardFixture<'a> {
        std::fs::create_dir_all(options.dirs.run_dir()).unwrap();
        let kernel = Kernel::arm(storage, &kernel_options(options)).expect("these tests need root");
        let folder = IncidentFolder::open(options.dirs.incidents()).unwrap();
        let counter = CounterProcess::start(&options.sealer, &[], None);
        let mut recorder = Recorder::new(options, kernel, folder, counter).unwrap();
        let (read, keyboard) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let chords = options.hot_keys.as_ref().unwrap().chords().unwrap();
        recorder.inputs = Inputs::new(Some(Devices::from_opened(vec![(0, read)])), chords);
        KeyboardFixture { recorder, keyboard }
    }

    /// Presses keys together, all with this time, and runs one turn of the recorder.
    fn press(&mut self, codes: &[u16], at: Nanos) {
        self.send(codes, at);
        self.recorder.turn(clock::now()).unwrap();
    }

    fn send(&self, codes: &[u16], at: Nanos) {
        let downs = codes.iter().map(|code| (*code, 1));
        let ups = codes.iter().rev().map(|code| (*code, 0));
        for (code, value) in downs.chain(ups) {
            rustix::io::write(&self.keyboard, &event(at, code, value)).unwrap();
        }
    }

    /// Returns all incidents once they are sealed.
    fn incidents(&self) -> Vec<Incident> {
        let begun = Instant::now();
        while self.recorder.sealing.any() && begun.elapsed() < SEALED_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
        let listed = self.recorder.folder.list().unwrap();
        listed.iter().map(|listed| tipme_store::read(&listed.path).unwrap()).collect()
    }
}

/// Returns a key event in the kernel's format, with microsecond precision.
fn event(at: Nanos, code: u16, value: i32) -> Vec<u8> {
    const EV_KEY: u16 = 1;
    let mut bytes = (at.0 / 1_000_000_000).to_le_bytes().to_vec();
    bytes.extend((at.0 % 1_000_000_000 / 1_000).to_le_bytes());
    bytes.extend([EV_KEY.to_le_bytes(), code.to_le_bytes()].concat());
    bytes.extend(value.to_le_bytes());
    bytes
}

/// Returns a time shortly ago, in whole microseconds.
fn just_now() -> Nanos {
    Nanos(clock::now().before(Nanos::from_millis(30)).0 / 1_000 * 1_000)
}

fn inputs(incident: &Incident) -> Vec<Input> {
    let records = incident.bytes(Section::Inputs).chunks_exact(Input::SIZE);
    records.map(|record| Input::read_from_bytes(record).unwrap()).collect()
}

#[test]
fn a_hot_key_marks_when_it_was_pressed_and_leaves_no_code() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    std::thread::sleep(Duration::from_millis(100));
    let at = just_now();
    LETTERS.iter().for_each(|code| fixture.press(&[*code], at));
    fixture.press(&[CTRL, ALT, MINUS], at);
    let incidents = fixture.incidents();
    let [incident] = incidents.as_slice() else { panic!("{} incidents", incidents.len()) };
    let meta: Meta = incident.json(Section::Meta).unwrap();
    assert_eq!((meta.mark_ns, meta.trigger.as_str(), meta.marked_by_uid), (at.0, "hotkey", 0));
    assert_eq!(meta.id, tipme_store::id_at(meta.mark_realtime_ns));
    let found: Vec<_> = inputs(incident)
        .iter()
        .map(|input| (input.class, input.device, input.head.tid.0))
        .collect();
    assert_eq!(found, [(0, 0, 0); 12]);
}

#[test]
fn the_window_reaches_back_from_the_press() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut options = options(dir.path(), HotKeyScope::Always);
    options.window = Nanos::from_secs(1);
    let mut storage = Storage::default();
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    std::thread::sleep(Duration::from_millis(100));
    let at = just_now();
    let from = at.before(options.window);
    fixture.send(&[LETTERS[0]], from.before(Nanos(1_000)));
    fixture.send(&[LETTERS[1]], from);
    fixture.press(&[CTRL, ALT, MINUS], at);
    let incidents = fixture.incidents();
    let meta: Meta = incidents[0].json(Section::Meta).unwrap();
    assert_eq!((meta.mark_ns, meta.window_requested_ns), (at.0, options.window.0));
    let times: Vec<_> = inputs(&incidents[0]).iter().map(|input| input.head.ts).collect();
    assert_eq!(times, [[from; 2].as_slice(), &[at; 6]].concat());
    // Once a press is answered, input older than the window is discarded even while input is not
    // recorded.
    fixture.recorder.record_keys(0, false);
    fixture.recorder.turn(at.after(Nanos::from_secs(2))).unwrap();
    assert!(fixture.recorder.inputs.bytes(Nanos(0), 0).0.is_empty());
}

#[test]
fn one_press_marks_once_however_often_it_is_reported() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    std::thread::sleep(Duration::from_secs(1));
    let now = just_now();
    let first = now.before(SAME_PRESS);
    for at in [first, first.after(Nanos(1_000)), now.before(Nanos(1_000)), now] {
        fixture.press(&[CTRL, ALT, MINUS], at);
    }
    assert_eq!(fixture.incidents().len(), 2);
    // The agent of a session marks before the device is read.
    fixture.recorder.hot_marked = None;
    let trigger = Trigger::Hotkey.name().to_owned();
    fixture.recorder.mark(Mark { text: String::new(), trigger, uid: 0, at: None }, drop);
    fixture.press(&[CTRL, ALT, MINUS], just_now());
    assert_eq!(fixture.incidents().len(), 3);
    let trigger = Trigger::Command.name().to_owned();
    fixture.recorder.hot_marked = None;
    // Two marks in the same millisecond are distinct.
    let at = just_now();
    fixture.recorder.mark(Mark { text: String::new(), trigger, uid: 0, at: Some(at) }, drop);
    fixture.press(&[CTRL, ALT, MINUS], at);
    assert_eq!(fixture.incidents().len(), 5);
}

#[test]
fn a_press_names_the_one_that_was_answered_before_it() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    for (trigger, uid) in
        [(Trigger::Hotkey, 0), (Trigger::Command, 0), (Trigger::Hotkey, 4242), (Trigger::Hotkey, 0)]
    {
        std::thread::sleep(Duration::from_millis(20));
        let trigger = trigger.name().to_owned();
        fixture.recorder.mark(Mark { text: String::new(), trigger, uid, at: None }, drop);
    }
    let incidents = fixture.incidents();
    let mut metas: Vec<Meta> =
        incidents.iter().map(|incident| incident.json(Section::Meta).unwrap()).collect();
    metas.sort_by_key(|meta| meta.mark_ns);
    let answered: Vec<u64> = metas.iter().map(|meta| meta.answered_ns).collect();
    assert_eq!(answered, [0, 0, 0, metas[0].mark_ns]);
}

#[test]
fn input_is_stopped_and_restarted_by_hot_keys() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    fixture.press(&[CTRL, ALT, ZERO], just_now());
    assert!(fixture.recorder.unrecorded.is_stopped());
    LETTERS.iter().for_each(|code| fixture.press(&[*code], just_now()));
    fixture.press(&[CTRL, ALT, MINUS], just_now());
    let incidents = fixture.incidents();
    assert_eq!(incidents.len(), 1);
    // Events of the hot key itself: its keys were released before it was answered.
    assert_eq!(inputs(&incidents[0]).len(), 6);
    fixture.press(&[CTRL, ALT, ONE], just_now());
    assert!(!fixture.recorder.unrecorded.is_stopped());
}

#[test]
fn a_console_hot_key_does_nothing_without_a_text_console() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Console), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    fixture.press(&[CTRL, ALT, ZERO], just_now());
    fixture.press(&[CTRL, ALT, MINUS], just_now());
    assert!(!fixture.recorder.unrecorded.is_stopped());
    assert_eq!(fixture.incidents().len(), 0);
}

/// Simulates a logind session of this user on the seat.
fn seat(fixture: &mut KeyboardFixture<'_>, dir: &Path, uid: u32) {
    let seats = dir.join("seats");
    std::fs::create_dir_all(&seats).unwrap();
    std::fs::write(seats.join("seat0"), format!("ACTIVE=3\nACTIVE_UID={uid}\n")).unwrap();
    fixture.recorder.inputs.ask(Seat { logind: Logind::at(dir), ..Seat::default() });
}

#[test]
fn keys_belong_to_the_user_at_the_seat_when_they_are_pressed() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    for uid in [4242, 4343] {
        seat(&mut fixture, dir.path(), uid);
        // The first read after a change of user cannot attribute the keys.
        LETTERS.iter().for_each(|code| fixture.press(&[*code], just_now()));
    }
    for uid in [4242, 0] {
        fixture
            .recorder
            .mark(Mark { text: String::new(), trigger: "command".to_owned(), uid, at: None }, drop);
    }
    let incidents = fixture.incidents();
    assert_eq!(
        incidents.iter().map(|incident| inputs(incident).len()).collect::<Vec<_>>(),
        [4, 12]
    );
    let meta: Meta = incidents[0].json(Section::Meta).unwrap();
    // Other users with processes on this machine have their command lines withheld as well.
    let withheld = meta.withheld;
    assert_eq!((withheld.inputs, withheld.messages), (8, 0));
    match withheld.command_lines {
        0 => assert_eq!(withheld.summary().as_deref(), Some("input of 1 other user")),
        _ => assert!(withheld.users >= 1, "{withheld:?}"),
    }
}

#[test]
fn one_users_refusal_of_input_overrides_another_users_wish() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    assert_eq!(fixture.recorder.record_keys(4343, false), RecorderResponse::Done);
    let answer = fixture.recorder.record_keys(4242, true);
    assert!(
        matches!(&answer, RecorderResponse::Error(why) if why.contains("user 4343")),
        "{answer:?}"
    );
    LETTERS.iter().for_each(|code| fixture.press(&[*code], just_now()));
    assert!(fixture.recorder.inputs.bytes(Nanos(0), 0).0.is_empty());
    assert_eq!(fixture.recorder.record_keys(4343, true), RecorderResponse::Done);
    LETTERS.iter().for_each(|code| fixture.press(&[*code], just_now()));
    assert!(!fixture.recorder.inputs.bytes(Nanos(0), 0).0.is_empty());
}

/// Gives a console to a user, like login(1).
fn give_console(dir: &Path, uid: u32) {
    let active = std::fs::read_to_string(tipme_desktop::console::ACTIVE_NAME).unwrap();
    let console = dir.join(active.trim_end());
    std::fs::write(&console, "").unwrap();
    std::os::unix::fs::chown(&console, Some(uid), None).expect("run the tests as root");
}

#[test]
fn a_user_without_permission_cannot_mark_by_the_console() {
    let dir = tempfile::TempDir::new().unwrap();
    let (mut options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    options.allowed = vec![4343];
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    give_console(dir.path(), 4242);
    fixture.press(&[CTRL, ALT, MINUS], just_now());
    fixture.press(&[CTRL, ALT, ZERO], just_now());
    assert_eq!((fixture.incidents().len(), fixture.recorder.unrecorded.unwilling()), (0, None));
    give_console(dir.path(), 4343);
    fixture.press(&[CTRL, ALT, MINUS], just_now());
    let owners: Vec<u32> =
        fixture.recorder.folder.list().unwrap().iter().map(|one| one.owner).collect();
    assert_eq!((fixture.incidents().len(), owners.iter().all(|owner| *owner == 4343)), (1, true));
}

#[test]
fn a_user_that_marks_too_often_has_to_wait_and_root_has_not() {
    let dir = tempfile::TempDir::new().unwrap();
    let (options, mut storage) = (options(dir.path(), HotKeyScope::Always), Storage::default());
    let mut fixture = KeyboardFixture::new(&options, &mut storage);
    assert!((0..MARKS_BURST).all(|_| fixture.recorder.turn_of(4242).is_ok()));
    let why = fixture.recorder.turn_of(4242).err().unwrap();
    assert!(why.starts_with("user 4242 marks too often; wait"), "{why}");
    assert!((0..2 * MARKS_BURST).all(|_| fixture.recorder.turn_of(0).is_ok()));
    assert!(fixture.recorder.turn_of(4343).is_ok());
}
