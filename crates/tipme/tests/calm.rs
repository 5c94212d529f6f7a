// SPDX-License-Identifier: MIT OR Apache-2.0
//! No finding while nothing is wrong: clicks, menus and moves in an unmodified program. Needs root.

use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{Recording, Running, diagnose, typist};
use tipme_bench::PrivateSession;
use tipme_bench::session::{SessionOptions, SessionWindowManager};
use tipme_desktop::window::Watcher;

/// Timeout that only a failing test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Delay of a 5 ms sleep that means that the machine itself stalled.
const LATE: Duration = Duration::from_millis(50);

/// Maximum number of sessions until one runs without such a stall.
const SESSIONS_MAX: usize = 5;

/// Measures stalls of the machine from outside: the maximum delay of a thread that sleeps for 5 ms.
struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Probe {
    fn start() -> Probe {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (step, mut latest) = (Duration::from_millis(5), Duration::ZERO);
            while !stopped.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(step);
                latest = latest.max(begun.elapsed().saturating_sub(step));
            }
            latest
        });
        Probe { stop, thread }
    }

    fn finish(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// A program on a session's display; killed on drop.
struct Program {
    _child: Running,
    /// Left, top, width and height of its window on the screen.
    place: [i16; 4],
}

impl Program {
    /// Starts an editor with default settings, including the blinking cursor.
    fn open(session: &PrivateSession) -> Program {
        let mut command = Command::new("mousepad");
        command.arg("--disable-server");
        session.prepare(&mut command);
        let child = Running::start(&mut command);
        let watcher = Watcher::open(&session.target()).unwrap();
        let focused = watcher.wait_for_focus(child.id(), TIMEOUT).unwrap();
        let window = watcher.outermost(child.id(), focused).unwrap();
        Program { _child: child, place: place(session, window) }
    }

    /// Returns a position inside, in percent of its size.
    fn at(&self, x: i16, y: i16) -> (i16, i16) {
        let [left, top, width, height] = self.place;
        let [x, y] = [(width, x), (height, y)]
            .map(|(size, percent)| (i32::from(size) * i32::from(percent) / 100) as i16);
        (left + x, top + y)
    }
}

fn place(session: &PrivateSession, window: u32) -> [i16; 4] {
    let mut command = Command::new("xwininfo");
    session.prepare(&mut command);
    command.args(["-id", &window.to_string()]).stdout(Stdio::piped());
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    ["Absolute upper-left X", "Absolute upper-left Y", "Width", "Height"].map(|name| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.trim().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}"))
            .rsplit(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    })
}

/// Works for half a minute: typing, clicks into the text, menus, a selection, pointer moves over
/// all of it.
fn work(session: &PrivateSession, program: &Program) {
    let mut typist = typist(session, 80.0);
    typist.text("one two three").unwrap();
    for (x, y) in [(20, 30), (60, 70), (30, 50), (70, 40)] {
        let (left, top) = program.at(x, y);
        typist.click_at(left, top, 1).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    for _ in 0..3 {
        let [left, top, ..] = program.place;
        typist.click_at(left + 20, top + 12, 1).unwrap();
        for step in 0..12 {
            typist.move_to(left + 30, top + 20 + 15 * step).unwrap();
            std::thread::sleep(Duration::from_millis(40));
        }
        typist.chord(&"escape".parse().unwrap()).unwrap();
        typist.chord(&"escape".parse().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(400));
    }
    typist.drag(program.at(10, 20), program.at(60, 60), 15, 1).unwrap();
    for step in 0..60 {
        let (left, top) = program.at(10 + step, 20 + step);
        typist.move_to(left, top).unwrap();
        std::thread::sleep(Duration::from_millis(25));
    }
    let [left, top, ..] = program.place;
    typist.drag((left + 200, top - 10), (left + 260, top + 40), 20, 1).unwrap();
    std::thread::sleep(Duration::from_secs(2));
}

/// Returns the verdict of a calm session, and the maximum delay of the machine meanwhile.
fn session(manager: SessionWindowManager) -> (Option<i32>, Value, Duration) {
    let session =
        PrivateSession::start(SessionOptions { manager, ..SessionOptions::default() }).unwrap();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let program = Program::open(&session);
    std::thread::sleep(Duration::from_secs(2));
    let probe = Probe::start();
    work(&session, &program);
    let late = probe.finish();
    let (path, _) = recording.mark();
    let (code, text) = diagnose(&path, &["--json"]);
    (code, serde_json::from_str(&text).unwrap(), late)
}

fn assert_silent(manager: SessionWindowManager) {
    let _alone = support::alone();
    for _ in 0..SESSIONS_MAX {
        let (code, verdict, late) = session(manager);
        if code == Some(3) || late < LATE {
            assert!(!verdict["interval"].is_null(), "{manager:?}: no input was seen: {verdict:#}");
            assert_eq!(
                (code, &verdict["findings"]),
                (Some(3), &Value::Array(Vec::new())),
                "{manager:?}: {verdict:#}"
            );
            return;
        }
    }
    panic!(
        "{manager:?}: the machine stood still for over {LATE:?} in each of {SESSIONS_MAX} sessions"
    );
}

#[test]
fn clicks_menus_and_moves_under_openbox_are_no_hang() {
    assert_silent(SessionWindowManager::Openbox);
}

#[test]
fn clicks_menus_and_moves_under_xfwm4_are_no_hang() {
    assert_silent(SessionWindowManager::Xfwm4);
}
