// SPDX-License-Identifier: MIT OR Apache-2.0
//! Automatic marks of the recorder on private displays. Needs root, sway and foot.

use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::compositor::{Compositor, DISPLAY};
use support::{
    Running, diagnose, files, mark_as, meta, noon, session, session_with_terminal, status, tipme,
    typist, while_stopped,
};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_control::{AutoCounts, Client, RecorderRequest};
use tipme_desktop::inject::Typist;
use tipme_record::incident::{Section, StoredBaseline};

/// Time for which the terminal is stopped.
const HITCH: Duration = Duration::from_millis(700);

/// Time after which a program no longer counts as starting.
const SETTLES: Duration = Duration::from_secs(12);

/// Time between two pointer moves; a move later than `LATE` means that the machine itself stalled;
/// and the maximum number of attempts without such a stall.
const MOVE: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_millis(50);
const CALM_MAX: usize = 5;

/// Makes a terminal report each pointer position, which its echo shows.
const REPORTS: [&str; 3] = ["sh", "-c", "stty -icanon; printf '\\033[?1003h'; exec cat"];

/// Time from a hitch to its mark: quiet, sealing and diagnosis, and up to twenty seconds since the
/// last look.
const TIMEOUT: Duration = Duration::from_secs(60);

/// `tipme record` with its output lines; ended on drop.
struct Recorder {
    child: Running,
    lines: Receiver<String>,
}

impl Recorder {
    fn start(dir: &Path, session: &PrivateSession, auto: &str) -> Recorder {
        Recorder::start_at(dir, &session.display_name(), auto)
    }

    fn start_at(dir: &Path, display: &str, auto: &str) -> Recorder {
        let mut command = tipme();
        command.args(["record", auto, "--hot-keys", "off", "--display", display]);
        command.arg("--state-dir").arg(dir);
        let mut child = Running::start(command.stdout(Stdio::piped()));
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let recorder = Recorder { child, lines };
        recorder.wait_for("recording");
        recorder
    }

    /// Waits for a line with this prefix; returns the rest of it.
    fn wait_for(&self, prefix: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            if let Some(rest) =
                line.unwrap_or_else(|_| panic!("no line {prefix:?}")).strip_prefix(prefix)
            {
                return rest.trim().to_owned();
            }
        }
    }

    /// Ends it as systemd does.
    fn stop(mut self) {
        self.child.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

fn counts(dir: &Path) -> AutoCounts {
    status(dir).auto.unwrap()
}

/// Returns the limits for keys in the terminal, in percent of the default.
fn percent(dir: &Path) -> u64 {
    let tolerances = status(dir).tolerances;
    let own = tolerances.iter().find(|one| one.class == "key" && one.application == "xterm");
    own.map_or(100, |own| own.percent)
}

fn text_of(dir: &Path, verb: &str) -> String {
    let output = tipme().args([verb, "--state-dir"]).arg(dir).env("TZ", noon()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Types while the terminal is stopped.
fn hitch(session: &PrivateSession, typist: &mut Typist) {
    hitch_of(HITCH, session, typist);
}

fn hitch_of(length: Duration, session: &PrivateSession, typist: &mut Typist) {
    typist.text("before").unwrap();
    while_stopped(session.terminal_pid().unwrap(), || {
        let stopped = Instant::now();
        typist.text("now").unwrap();
        std::thread::sleep(length.saturating_sub(stopped.elapsed()));
    });
    typist.text("after").unwrap();
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns the learned baseline of keys in the terminal from an incident.
fn learned(path: &Path) -> StoredBaseline {
    learned_of("key", "xterm", path)
}

fn learned_of(class: &str, application: &str, path: &Path) -> StoredBaseline {
    let incident = tipme_store::read(path).unwrap();
    let stored: Vec<StoredBaseline> = incident.json(Section::Baselines).unwrap();
    stored.into_iter().find(|one| one.class == class && one.application == application).unwrap()
}

/// Moves the pointer back and forth over the terminal, a hundred times a second; returns the
/// maximum delay of a move.
fn hover(typist: &mut Typist, length: Duration) -> Duration {
    let (begun, mut latest) = (Instant::now(), Duration::ZERO);
    for step in (0..400).cycle().take_while(|_| begun.elapsed() < length) {
        let at = Instant::now();
        typist.move_to(60 + (step - 200_i16).abs(), 60 + step / 4).unwrap();
        std::thread::sleep(MOVE);
        latest = latest.max(at.elapsed().saturating_sub(MOVE));
    }
    typist.settle().unwrap();
    latest
}

/// Asserts that a terminal that follows the pointer and then stops is marked, and that nothing was
/// marked before unless the machine itself stalled.
fn expect_hovered(
    dir: &Path,
    recorder: &Recorder,
    typist: &mut Typist,
    (terminal, name): (u32, &str),
) {
    let is_calm = (0..CALM_MAX).any(|_| {
        let (before, late) = (counts(dir).marked, hover(typist, SETTLES));
        let marked = counts(dir).marked - before;
        assert!(
            marked == 0 || late >= LATE,
            "{marked} marked, and no move came later than {late:?}"
        );
        marked == 0
    });
    assert!(is_calm, "the machine stood still for over {LATE:?} each time");
    let what = format!(" motion in {name}, stopped by ");
    let mut line = None;
    wait_until("a mark", || {
        while_stopped(terminal, || {
            hover(typist, HITCH);
        });
        hover(typist, HITCH);
        line = recorder
            .lines
            .try_iter()
            .find(|line| line.starts_with("marked ") && line.contains(&what));
        line.is_some()
    });
    let line = line.unwrap();
    let (path, _) = line["marked ".len()..].split_once(" (auto: ").unwrap();
    let learned = learned_of("motion", name, Path::new(path));
    assert!(learned.n >= 50, "{learned:?}");
}

#[test]
fn a_program_that_does_not_follow_the_pointer_is_marked() {
    let dir = TempDir::new().unwrap();
    let mut session = session();
    session.open_terminal(&[], &REPORTS.map(Into::into)).unwrap();
    let mut typist = typist(&session, 60.0);
    let recorder = Recorder::start(dir.path(), &session, "--auto");
    let terminal = session.terminal_pid().unwrap();
    expect_hovered(dir.path(), &recorder, &mut typist, (terminal, "xterm"));
}

#[test]
fn a_wayland_program_that_does_not_follow_the_pointer_is_marked() {
    let dir = TempDir::new().unwrap();
    let compositor = Compositor::start();
    let terminal = compositor.terminal_with("moves", &REPORTS);
    let mut typist = compositor.keyboard();
    let recorder = Recorder::start_at(dir.path(), DISPLAY, "--auto");
    expect_hovered(dir.path(), &recorder, &mut typist, (terminal.0.id(), "foot"));
}

#[test]
fn a_hitch_is_marked_once_and_what_is_usual_is_kept() {
    let dir = TempDir::new().unwrap();
    let session = session_with_terminal();
    let mut typist = typist(&session, 150.0);
    let recorder = Recorder::start(dir.path(), &session, "--auto");
    typist.text(&"The quick brown fox jumps over the lazy dog\n".repeat(2)).unwrap();
    assert_eq!(counts(dir.path()).marked, 0);

    hitch(&session, &mut typist);
    let line = recorder.wait_for("marked ");
    let (path, what) = line.split_once(" (auto: ").unwrap();
    let path = PathBuf::from(path);
    assert!(what.contains(" key") && what.contains(" in xterm, stopped by "), "{what}");
    assert_eq!(meta(&tipme_store::read(&path).unwrap()).trigger, "auto");
    let (code, text) = diagnose(&path, &[]);
    assert!(code == Some(0) && text.contains("stopped"), "{text}");
    assert!(learned(&path).n >= 50, "{:?}", learned(&path));

    hitch(&session, &mut typist);
    wait_until("the second look", || counts(dir.path()).looked_at >= 2);
    wait_until("what became of it", || counts(dir.path()).known_causes == 1);
    recorder.stop();
    let incidents = dir.path().join("incidents");
    assert_eq!(files(&incidents, ".tipme"), std::slice::from_ref(&path));
    assert!(files(&incidents.join(".auto"), "").is_empty());
    let mode = std::fs::metadata(dir.path().join("baselines.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(typist);
    restarted(dir.path(), &session, learned(&path).n);
}

/// Asserts that a restarted recorder keeps its baselines, and that a dry run reports a hitch
/// without writing it.
fn restarted(dir: &Path, session: &PrivateSession, known: u64) {
    let recorder = Recorder::start(dir, session, "--auto=dry-run");
    let mut typist = typist(session, 150.0);
    hitch(session, &mut typist);
    let what = recorder.wait_for("would mark: ");
    assert!(what.contains(" key") && what.contains(" in xterm, stopped by "), "{what}");
    wait_until("the file to be removed", || files(&dir.join("incidents/.auto"), "").is_empty());
    assert_eq!(files(&dir.join("incidents"), ".tipme").len(), 1);
    let path = mark_as(0, dir);
    assert!(learned(&path).n > known, "{:?} after {known}", learned(&path));
}

/// A mark within the limits tightens them, an answer about an automatic mark moves them, and both
/// survive the recorder; only a line reports an automatic mark.
#[test]
fn answers_of_a_user_move_the_limits_and_survive() {
    let dir = TempDir::new().unwrap();
    let session = session_with_terminal();
    let mut typist = typist(&session, 150.0);
    let recorder = Recorder::start(dir.path(), &session, "--auto");
    wait_until("a mark that tightens the limits", || {
        // Such a delay annoys no user; a busy machine may need several.
        hitch_of(Duration::from_millis(150), &session, &mut typist);
        mark_as(0, dir.path());
        percent(dir.path()) < 100
    });
    let tightened = percent(dir.path());
    let text = text_of(dir.path(), "status");
    assert!(
        text.contains(&format!("key in xterm: {tightened}% of the usual limits (marked: ")),
        "{text}"
    );

    wait_until("a mark by itself", || {
        hitch(&session, &mut typist);
        !status(dir.path()).suggested.is_empty()
    });
    let suggested = status(dir.path()).suggested;
    for verb in ["status", "incidents"] {
        let text = text_of(dir.path(), verb);
        assert!(text.contains(" since this morning: tipme incidents"), "{text}");
    }
    let incident = dir.path().join(format!("incidents/{}.tipme", suggested[0]));
    let answer = RecorderRequest::Describe { incident, text: String::new(), right: Some(false) };
    Client::new(dir.path()).call(&answer).unwrap();
    let widened = percent(dir.path());
    assert!(widened > tightened, "{tightened} {widened}");
    recorder.stop();
    let _recorder = Recorder::start(dir.path(), &session, "--auto");
    assert_eq!(percent(dir.path()), widened);
    assert!(status(dir.path()).suggested.contains(&suggested[0]));
}
