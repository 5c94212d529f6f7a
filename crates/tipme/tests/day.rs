// SPDX-License-Identifier: MIT OR Apache-2.0
//! Daily counts: equal to a simultaneous `tipme measure`, kept over restarts, and private. Needs
//! root, Xvfb, openbox, xterm, sway, foot and Xwayland.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::compositor::{ACCOUNT, Compositor};
use support::{
    Recording, hitch, lab, noon, open_folder, schema, session, session_with_terminal, tipme_as,
    typist, while_stopped,
};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_bench::until;
use tipme_control::{Client, RecorderRequest};
use tipme_desktop::inject::{Pace, Typist};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::bigreq::ConnectionExt as _;
use x11rb::protocol::xproto::{
    ConnectionExt, CreateGCAux, CreateWindowAux, EventMask, InputFocus, Rectangle, WindowClass,
};
use x11rb::{COPY_DEPTH_FROM_PARENT, COPY_FROM_PARENT, CURRENT_TIME};

/// A user without an account that may mark.
const ANN: u32 = 4242;

const SCRIPT: &str = r#"about = "typing"
application = ["xterm", "-e", "cat"]
words_per_minute = 300
variation = 0.5
seed = 1

[[step]]
prose = 120
"#;

/// Starts a recorder of one display with daily counting.
fn record(dir: TempDir, session: &PrivateSession) -> Recording {
    let display = session.display_name();
    Recording::start_in(
        dir,
        &["--day", "--memory", "16M", "--display", &display, "--allow-user", "4242"],
    )
}

/// Ends a recorder as systemd does, and starts it again.
fn restarted(mut recording: Recording, session: &PrivateSession) -> Recording {
    recording.child.signal(Signal::TERM);
    assert!(recording.child.wait().unwrap().success());
    // The folder outlives the dropped value.
    let dir = std::mem::replace(&mut recording.dir, TempDir::new().unwrap());
    record(dir, session)
}

fn day_of(dir: &Path, uid: u32, words: &[&str]) -> Output {
    tipme_as(uid, dir, &[&["day"], words].concat()).env("TZ", noon()).output().unwrap()
}

/// Returns the figures of an application of root.
fn figures(recording: &Recording, application: &str) -> Value {
    figures_of(recording, 0, application)
}

fn figures_of(recording: &Recording, user: u32, application: &str) -> Value {
    let output = day_of(recording.dir.path(), 0, &["--json", "--user", &user.to_string()]);
    let day: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::assert_fits("day", &day);
    let rows = day["figures"]["applications"].as_array().unwrap();
    rows.iter().find(|row| row["application"] == application).cloned().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Asserts equality within a relative and an absolute bound in milliseconds.
fn assert_near(what: &str, counted: f64, measured: f64, share: f64, ms: f64) {
    let bound = measured * share + ms;
    assert!(
        (counted - measured).abs() <= bound,
        "{what}: counted {counted}, measured {measured}, bound {bound}"
    );
}

/// Plays the script in an xterm beside the recorder.
fn measure(dir: &Path, session: &PrivateSession) -> Value {
    let (script, result) = (dir.join("typing.toml"), dir.join("result.json"));
    std::fs::write(&script, SCRIPT).unwrap();
    let mut command = lab();
    command.arg("measure").arg(&script).args([
        "--repeat",
        "1",
        "--display",
        &session.display_name(),
        "--json",
    ]);
    session.show(command.arg(&result));
    let output = command.output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap()
}

#[test]
fn a_session_is_counted_as_it_is_measured_and_survives() {
    let session = session();
    let recording = record(open_folder(), &session);
    let scratch = TempDir::new().unwrap();
    let measured = measure(scratch.path(), &session);
    let of_day = figures(&recording, "xterm");
    let events =
        measured["events"].as_array().unwrap().iter().filter(|event| event["class"] == "key");
    let mut latencies: Vec<f64> = events.filter_map(|event| event["latency_ms"].as_f64()).collect();
    latencies.sort_by(f64::total_cmp);
    let (n, total): (usize, f64) = (latencies.len(), latencies.iter().sum());
    assert!(n >= 100, "{n} keys");
    let counted = of_day["n"].as_u64().unwrap();
    assert_eq!(counted + of_day["silent"].as_u64().unwrap(), n as u64);
    // On a busy machine a key may come while the terminal waits for the echo of the previous one.
    assert!(counted as f64 >= 0.9 * n as f64, "{of_day}");
    // A bucket is an eighth wide, and some drawings may be joined differently.
    assert_near("p50", number(&of_day["p50_ms"]), latencies[(n - 1) / 2], 0.2, 0.3);
    assert_near("total", number(&of_day["total_ms"]), total, 0.2, 30.0);
    assert_near("wait", number(&of_day["wait_ms"]), number(&measured["wait_ms"]), 0.2, 30.0);
    assert!(number(&of_day["wait_ms"]) <= number(&of_day["total_ms"]) + 0.01, "{of_day}");
    assert!(number(&of_day["think_ms"]) > 3_000.0, "{of_day}");

    let recording = restarted(recording, &session);
    assert_eq!(figures(&recording, "xterm")["n"], counted);
    let output = day_of(recording.dir.path(), 0, &["--forget"]);
    assert!(output.status.success());
    assert_eq!(figures(&recording, "xterm")["n"], Value::Null);
}

/// Starts a session with a terminal that echoes.
fn terminal() -> (PrivateSession, Typist) {
    let session = session_with_terminal();
    let typist = typist(&session, 150.0);
    (session, typist)
}

#[test]
fn a_hitch_has_its_incident_and_is_visible_to_its_user_only() {
    let _alone = support::alone();
    let (session, mut typist) = terminal();
    let recording = record(open_folder(), &session);
    let dir = recording.dir.path();
    hitch(&session, &mut typist);
    let (path, _) = recording.mark();
    let output = day_of(dir, 0, &["--json"]);
    let day: Value = serde_json::from_slice(&output.stdout).unwrap();
    let long = &day["figures"]["longest"][0];
    assert!(number(&long["latency_ms"]) >= 700.0 && long["application"] == "xterm", "{day}");
    assert_eq!(long["incident"].as_str(), path.file_stem().unwrap().to_str());
    assert!(number(&day["figures"]["all"]["elr"]["at_ms_per_minute"]) > 0.0, "{day}");
    let text = String::from_utf8(day_of(dir, 0, &[]).stdout).unwrap();
    assert!(
        text.contains("longest waits over their threshold") && text.contains("key in xterm"),
        "{text}"
    );
    let drawn = dir.join("day.svg");
    assert!(day_of(dir, 0, &["-o", drawn.to_str().unwrap()]).status.success());
    let picture = std::fs::read_to_string(&drawn).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("xterm: "), "{picture}");
    assert_eq!(std::fs::metadata(&drawn).unwrap().permissions().mode() & 0o777, 0o600);

    let anns = day_of(dir, ANN, &["--json"]);
    let day: Value = serde_json::from_slice(&anns.stdout).unwrap();
    assert_eq!((anns.status.code(), &day["figures"]["all"]["n"]), (Some(1), &0.into()));
    assert_eq!(day["figures"]["longest"], Value::Array(Vec::new()));
    let refused = day_of(dir, ANN, &["--user", "0"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2) && why.contains("are for that user and root only"),
        "{why}"
    );
    let listed = Command::new("ls")
        .arg(dir.join("days"))
        .uid(ANN)
        .gid(ANN)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!listed.success(), "another user lists the files");
}

/// Returns the number of keys of the compositor's user in an application.
fn keys_of(recording: &Recording, application: &str) -> u64 {
    let figures = figures_of(recording, ACCOUNT, application);
    ["n", "silent"].iter().filter_map(|name| figures[name].as_u64()).sum()
}

/// Keys that a compositor delivers in a burst after it was stopped.
#[test]
fn keys_of_a_compositor_are_counted_each_and_those_for_x11_once() {
    const KEYS: u64 = 60;
    let _alone = support::alone();
    let compositor = Compositor::start_with_x();
    // Before the terminal, which would otherwise miss a key that arrives together with the
    // keyboard.
    let pace = Pace { words_per_minute: 20_000.0, variation: 0.0, ..Pace::default() };
    let mut keyboard = Typist::on_compositor(&compositor.socket(), pace).unwrap();
    let terminal = compositor.terminal("typed");
    let recording = Recording::start(&["--day", "--memory", "16M"]);
    while_stopped(compositor.sway.0.id(), || drop(keyboard.text(&"abcdef".repeat(10)).unwrap()));
    until("every key and its answer", || keys_of(&recording, "foot") == KEYS);
    drop(terminal);
    let (_terminal, _) = compositor.x_terminal();
    compositor.keyboard().text(&"abcdef".repeat(10)).unwrap();
    until("every key and its answer", || keys_of(&recording, "xterm") == KEYS);
    assert_eq!(
        ["foot", "xterm", "Xwayland"].map(|name| keys_of(&recording, name)),
        [KEYS, KEYS, 0]
    );
}

/// A focused window that answers each key with an extension request that draws nothing, and draws
/// after a delay.
fn answers_late(session: &PrivateSession, time: Duration) {
    let connection = support::x11::connect(session);
    let root = connection.setup().roots[0].root;
    let [window, context] = [(); 2].map(|()| connection.generate_id().unwrap());
    let events =
        CreateWindowAux::new().event_mask(EventMask::KEY_PRESS | EventMask::STRUCTURE_NOTIFY);
    let class = WindowClass::INPUT_OUTPUT;
    let depth = COPY_DEPTH_FROM_PARENT;
    connection
        .create_window(depth, window, root, 0, 0, 200, 200, 0, class, COPY_FROM_PARENT, &events)
        .unwrap();
    connection.create_gc(context, window, &CreateGCAux::new()).unwrap();
    connection.map_window(window).unwrap();
    connection.flush().unwrap();
    while !matches!(connection.wait_for_event().unwrap(), Event::MapNotify(_)) {}
    connection.set_input_focus(InputFocus::PARENT, window, CURRENT_TIME).unwrap().check().unwrap();
    std::thread::spawn(move || {
        while let Ok(event) = connection.wait_for_event() {
            if matches!(event, Event::KeyPress(_)) {
                connection.bigreq_enable().unwrap().reply().unwrap();
                std::thread::sleep(time);
                let all = Rectangle { x: 0, y: 0, width: 200, height: 200 };
                connection.poly_fill_rectangle(window, context, &[all]).unwrap();
                connection.flush().unwrap();
            }
        }
    });
}

/// Returns the counted delay of a further key in an application.
fn key_ms(recording: &Recording, application: &str, typist: &mut Typist) -> f64 {
    let before = figures(recording, application);
    typist.text("x").unwrap();
    let mut after = Value::Null;
    until("the key is counted", || {
        after = figures(recording, application);
        after["n"].as_u64() == Some(before["n"].as_u64().unwrap_or(0) + 1)
    });
    number(&after["total_ms"]) - before["total_ms"].as_f64().unwrap_or(0.0)
}

/// The recorder starts before the display, as a service does.
#[test]
fn a_request_of_an_extension_that_draws_nothing_answers_no_key() {
    const TIME: Duration = Duration::from_millis(150);
    let _alone = support::alone();
    let recording = Recording::start(&["--day", "--memory", "16M"]);
    let session = session();
    answers_late(&session, TIME);
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let mut typist = typist(&session, 60.0);
    // The first key makes the recorder detect an unknown server. A busy machine also answers keys
    // late.
    let wanted = TIME.as_secs_f64() * 1e3;
    let mut in_a_row = 0;
    until("some keys are answered by the drawing", || {
        let ms = key_ms(&recording, name.trim(), &mut typist);
        in_a_row = if ms >= wanted { in_a_row + 1 } else { 0 };
        in_a_row == 3
    });
    let keys: Vec<f64> = (0..5).map(|_| key_ms(&recording, name.trim(), &mut typist)).collect();
    assert!(keys.iter().all(|ms| *ms >= wanted), "{keys:?}");
}

#[test]
fn neither_paused_input_nor_a_day_without_the_option_is_counted() {
    let _alone = support::alone();
    let (session, mut typist) = terminal();
    let recording = record(open_folder(), &session);
    typist.text("seen").unwrap();
    until("four keys and their answers", || figures(&recording, "xterm")["n"] == 4);
    let client = Client::new(recording.dir.path());
    client.call(&RecorderRequest::Keys { record: false }).unwrap();
    let counted = figures(&recording, "xterm")["n"].clone();
    assert_eq!(counted, 4);
    typist.text("unseen").unwrap();
    assert_eq!(figures(&recording, "xterm")["n"], counted);

    let without = Recording::start(&["--memory", "16M", "--display", &session.display_name()]);
    let output = day_of(without.dir.path(), 0, &[]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && why.contains("tipme setup --day"), "{why}");
    assert!(!without.dir.path().join("days").exists());
}
