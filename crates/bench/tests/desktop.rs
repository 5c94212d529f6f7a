// SPDX-License-Identifier: MIT OR Apache-2.0
//! The desktop crate against real X servers: private ones, started for each test.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};
use tipme_bench::PrivateSession;
use tipme_bench::process::ProcessGroup;
use tipme_bench::session::SessionOptions;
use tipme_bench::until;
use tipme_desktop::echo::EchoWindow;
use tipme_desktop::hotkeys::{Bindings, HotKeyAction, HotKeyEvent, HotKeys, RefusalReason};
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::window::Watcher;
use tipme_desktop::{DisplayError, DisplayTarget, PidSource, focus, server};
use tipme_record::Nanos;

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);

fn session() -> PrivateSession {
    PrivateSession::start(SessionOptions::default()).expect("a session")
}

fn typist(session: &PrivateSession) -> Typist {
    Typist::open(&session.target(), Pace { words_per_minute: 300.0, ..Pace::default() })
        .expect("a typist")
}

fn pressed(keys: &mut HotKeys) -> Option<HotKeyAction> {
    match keys.next(LONG).expect("the display answers") {
        Some(HotKeyEvent::Pressed { action, at }) if at > Nanos(0) => Some(action),
        _ => None,
    }
}

fn chord(typist: &mut Typist, text: &str) {
    typist.chord(&text.parse().expect("a chord")).expect("a key");
}

#[test]
fn each_hot_key_does_its_own() {
    let session = session();
    let mut keys = HotKeys::grab(&session.target(), Bindings::default()).expect("free keys");
    let mut typist = typist(&session);
    for (chord_text, action) in [
        ("ctrl+alt+plus", HotKeyAction::Start),
        ("ctrl+alt+minus", HotKeyAction::Mark),
        ("ctrl+alt+0", HotKeyAction::StopKeys),
        ("ctrl+alt+1", HotKeyAction::StartKeys),
    ] {
        chord(&mut typist, chord_text);
        assert_eq!(pressed(&mut keys), Some(action), "{chord_text}");
    }
    chord(&mut typist, "ctrl+minus");
    typist.text("-+01").expect("plain keys");
    assert_eq!(keys.next(SHORT).expect("the display answers"), None);
}

#[test]
fn a_taken_key_is_named_and_the_others_are_held() {
    let session = session();
    let mut held = Bindings(Vec::new());
    held.set(HotKeyAction::Mark, "ctrl+alt+minus".parse().expect("a key"));
    held.set(HotKeyAction::Start, "f9".parse().expect("a key"));
    let holder = HotKeys::grab(&session.target(), held).expect("a display");
    assert_eq!(holder.refusals(), []);
    let mut keys = HotKeys::grab(&session.target(), Bindings::default()).expect("a display");
    let refused: Vec<_> =
        keys.refusals().iter().map(|one| (one.action, one.chord.to_string(), one.why)).collect();
    assert_eq!(refused, [(HotKeyAction::Mark, "Ctrl+Alt+Minus".to_owned(), RefusalReason::Taken)]);
    assert!(keys.keys(HotKeyAction::Mark).is_empty());
    let mut typist = typist(&session);
    chord(&mut typist, "ctrl+alt+0");
    assert_eq!(pressed(&mut keys), Some(HotKeyAction::StopKeys));
    let mut add =
        |key: &str| keys.add(HotKeyAction::Mark, key.parse().expect("a key")).expect("a display");
    assert!(!add("f9") && !add("ctrl+alt+0") && add("f10"));
    chord(&mut typist, "f10");
    assert_eq!(pressed(&mut keys), Some(HotKeyAction::Mark));
    chord(&mut typist, "ctrl+alt+1");
    assert_eq!(pressed(&mut keys), Some(HotKeyAction::StartKeys));
}

#[test]
fn locks_do_not_matter() {
    let session = session();
    let mut keys = HotKeys::grab(&session.target(), Bindings::default()).expect("free keys");
    let mut typist = typist(&session);
    for lock in ["caps_lock", "num_lock", "caps_lock"] {
        chord(&mut typist, lock);
        chord(&mut typist, "ctrl+alt+minus");
        assert_eq!(pressed(&mut keys), Some(HotKeyAction::Mark), "after {lock}");
    }
}

/// Starts an X server with a fixed number, so that it can restart under it.
fn server_on(display: u32) -> ProcessGroup {
    let mut command = Command::new("Xvfb");
    command.args([&format!(":{display}"), "-nolisten", "tcp", "-noreset"]);
    command.stderr(std::process::Stdio::null());
    ProcessGroup::start("an X server", command, None).expect("Xvfb starts")
}

/// Returns an unused display number.
fn free_display() -> u32 {
    let used = server::find();
    (200 + std::process::id() % 1000..).find(|number| !used.contains(number)).expect("one is free")
}

#[test]
fn a_server_that_is_gone_takes_the_keys_with_it() {
    let display = free_display();
    let target = DisplayTarget { timeout: LONG, ..DisplayTarget::new(display) };
    let first = server_on(display);
    until("the server starts", || server::describe(&target).is_ok());
    let mut keys = HotKeys::grab(&target, Bindings::default()).expect("free keys");
    drop(first);
    assert!(matches!(keys.next(LONG).expect("an event"), Some(HotKeyEvent::Gone(_))));
    let _second = server_on(display);
    until("the server is back", || server::describe(&target).is_ok());
    assert!(
        matches!(keys.next(LONG).expect("an event"), Some(HotKeyEvent::Gone(_))),
        "the next one is another's"
    );
}

#[test]
fn a_wait_for_keys_ends_when_somebody_wakes_it() {
    let session = session();
    let mut keys = HotKeys::grab(&session.target(), Bindings::default()).expect("free keys");
    let (wakeup, mut sender) = UnixStream::pair().expect("a socket");
    keys.wake_by(wakeup.into());
    let mut typist = Typist::open(&session.target(), Pace::default()).expect("a typist");
    chord(&mut typist, "ctrl+alt+minus");
    assert_eq!(pressed(&mut keys), Some(HotKeyAction::Mark));
    sender.write_all(b"x").expect("it can be written to");
    assert_eq!(keys.next(LONG).expect("a display"), None);
}

#[test]
fn a_server_has_its_process_and_its_extensions() {
    let session = session();
    let described = server::describe(&session.target()).expect("a display");
    let line = std::fs::read(format!("/proc/{}/cmdline", described.server_pid)).expect("a process");
    assert!(line.starts_with(b"Xvfb\0"));
    let major =
        |name: &str| described.extensions.iter().find(|one| one.name == name).map(|one| one.major);
    for name in "XTEST RENDER MIT-SHM Present XInputExtension DAMAGE GLX RANDR XFIXES".split(' ') {
        assert!(major(name).is_some_and(|major| major >= 128), "{name}");
    }
    assert!(server::find().contains(&session.target().display));
}

#[test]
fn the_servers_own_authority_file_opens_it() {
    let session = session();
    let plain = DisplayTarget { authority: None, ..session.target() };
    assert!(server::describe(&plain).is_ok());
}

#[test]
fn a_wrong_cookie_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = folder.path().join("authority");
    std::fs::write(&authority, tipme_desktop::authority_file("", b"0123456789abcdef"))
        .expect("a file");
    let display = free_display() + 5000;
    let mut command = Command::new("Xvfb");
    command.args([&format!(":{display}"), "-nolisten", "tcp", "-auth"]).arg(&authority);
    command.stderr(std::process::Stdio::null());
    let _server = ProcessGroup::start("an X server", command, None).expect("Xvfb starts");
    let target = DisplayTarget {
        timeout: LONG,
        authority: Some(authority.clone()),
        ..DisplayTarget::new(display)
    };
    until("the server starts", || server::describe(&target).is_ok());
    // A server rereads a changed file, and a client tries the server's own: so the file is moved
    // away.
    std::fs::rename(&authority, folder.path().join("hidden")).expect("it can be moved");
    let other = folder.path().join("other");
    std::fs::write(&other, tipme_desktop::authority_file("", b"fedcba9876543210")).expect("a file");
    let target = DisplayTarget { authority: Some(other), ..target };
    let error = server::describe(&target).expect_err("another cookie");
    assert!(matches!(&error, DisplayError::Refused { .. }), "{error}");
    assert!(!error.passes());
}

#[test]
fn a_stopped_server_costs_only_the_timeout() {
    let display = free_display() + 10_000;
    let server = server_on(display);
    let target = DisplayTarget { timeout: SHORT, ..DisplayTarget::new(display) };
    until("the server starts", || server::describe(&target).is_ok());
    server.signal(rustix::process::Signal::STOP);
    let begin = Instant::now();
    let error = server::describe(&target).expect_err("a stopped server");
    assert!(matches!(error, DisplayError::Hung { .. }), "{error}");
    assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
}

#[test]
fn an_absent_server_is_an_error_at_once() {
    let error = server::describe(&DisplayTarget::new(59_999)).expect_err("no server");
    assert_eq!(
        error.to_string(),
        "cannot connect to display :59999: No such file or directory (os error 2); start an X server or name another display"
    );
    assert!(error.passes());
}

#[test]
fn the_focused_window_belongs_to_its_process() {
    let mut session = session();
    session.open_terminal(&[], &["cat".into()]).expect("a terminal");
    let connection =
        tipme_desktop::DisplayConnection::open(&session.target()).expect("a connection");
    let now = focus(&connection).expect("a focus");
    assert_eq!(
        now.pid.map(|(pid, how)| (Some(pid), how)),
        Some((session.terminal_pid(), PidSource::Server))
    );
    assert_ne!(now.window, 0);
}

#[test]
fn typed_text_arrives_in_order_and_in_time() {
    let mut session = session();
    let out = session.folder().join("typed");
    let script = format!("stty -echo; cat > {}", out.display());
    session.open_terminal(&[], &["sh".into(), "-c".into(), script.into()]).expect("a terminal");
    let mut typist = typist(&session);
    let text = "Hello, World: 3 + 4 = 7 (ok?)\n";
    let stamps = typist.text(text).expect("all keys are on the keyboard");
    assert_eq!(stamps.len(), text.len());
    assert!(stamps.is_sorted());
    let mean = stamps[stamps.len() - 1].since(stamps[0]).millis() / (stamps.len() - 1) as f64;
    assert!((30.0..60.0).contains(&mean), "300 words per minute are 40 ms per key, not {mean}");
    until("the text arrives", || std::fs::read_to_string(&out).is_ok_and(|typed| typed == text));
}

#[test]
fn an_echo_window_stamps_in_order() {
    let session = session();
    let watcher = Watcher::open(&session.target()).expect("a watcher");
    let mut window = EchoWindow::open(&session.target()).expect("a window");
    watcher.wait_for_focus(std::process::id(), LONG).expect("the focus");
    let sent = typist(&session).key('x').expect("a key");
    let stamps = window.next(LONG).expect("the display answers").expect("the key arrives");
    assert!(
        sent < stamps.received && stamps.received < stamps.drawn && stamps.drawn < stamps.finished
    );
    assert_eq!(window.next(SHORT).expect("the display answers"), None);
}
