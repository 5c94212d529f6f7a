// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clicks and wheel events in unmodified programs on a Wayland compositor. Needs root, sway, foot
//! and mousepad.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::compositor::{Compositor, DISPLAY};
use support::{Recording, Running, assert_stopped, interactions, verdict, while_stopped};
use tipme_bench::until;
use tipme_desktop::inject::Typist;

/// Time for which a process is stopped: longer than any likely delay of a click on a busy machine.
const STOPPED: Duration = Duration::from_secs(3);

/// Makes the terminal report the pointer, which its echo shows.
const REPORTS: &str = "stty -icanon; printf '\\033[?1000h'; : >reports; exec cat";

/// Clicks at this many positions, then waits until the compositor has handled them.
fn click(typist: &mut Typist, count: i16) {
    for place in 0..count {
        typist.click_at(100 + 20 * place, 150 + 30 * (place % 5), 1).unwrap();
    }
    typist.settle().unwrap();
}

/// Returns the interactions of a class that a program has answered with an exactly joined drawing.
fn exact(path: &Path, class: &str, client: u32) -> Vec<Value> {
    let mut all = interactions(path);
    all.retain(|one| {
        one["class"] == class && one["client_pid"] == client && one["join"] == "exact"
    });
    all
}

/// Marks until a program has answered this many.
fn marked_with(recording: &Recording, class: &str, client: u32, count: usize) -> PathBuf {
    recording.mark_until("answers", |path, _| {
        (exact(&path, class, client).len() >= count).then_some(path)
    })
}

/// Starts a terminal that shows each click.
fn terminal(compositor: &Compositor) -> Running {
    let terminal = compositor.terminal_with("clicks", &["sh", "-c", REPORTS]);
    until("the terminal's program", || compositor.home().join("reports").exists());
    terminal
}

#[test]
fn clicks_and_wheel_events_are_answered_by_the_terminal() {
    let compositor = Compositor::start();
    let mut typist = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let terminal = terminal(&compositor);
    click(&mut typist, 8);
    for notch in 0..8 {
        typist.scroll(notch % 2 == 0).unwrap();
    }
    marked_with(&recording, "click", terminal.0.id(), 6);
    let path = marked_with(&recording, "scroll", terminal.0.id(), 6);
    for click in exact(&path, "click", terminal.0.id()) {
        let [input, taken, drawn] =
            ["input_ns", "taken_ns", "drawn_ns"].map(|name| click[name].as_u64().unwrap());
        assert!(input <= taken && taken < drawn, "{click:#}");
    }
}

#[test]
fn a_click_into_an_editor_is_answered_by_it() {
    let compositor = Compositor::start();
    let mut typist = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    std::fs::write(compositor.home().join("text"), "line of text\n".repeat(60)).unwrap();
    let mut command = compositor.command("mousepad");
    command.envs([
        ("GDK_BACKEND", "wayland"),
        ("GSETTINGS_BACKEND", "memory"),
        ("NO_AT_BRIDGE", "1"),
    ]);
    let editor = command.args(["--disable-server", "text"]).spawn();
    let editor = Running(editor.expect("mousepad is installed: make test-deps"));
    compositor.wait_for_window(&editor);
    // A program needs some time after its start until it has its pointer.
    until("some clicks are answered", || {
        click(&mut typist, 8);
        exact(&recording.mark().0, "click", editor.id()).len() >= 6
    });
}

#[test]
fn a_program_that_was_stopped_around_a_click_is_named() {
    let _alone = support::alone();
    let compositor = Compositor::start();
    let mut typist = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let terminal = terminal(&compositor);
    let client = terminal.0.id();
    click(&mut typist, 8);
    let before = exact(&marked_with(&recording, "click", client, 6), "click", client).len();
    while_stopped(client, || {
        typist.click(1).unwrap();
        std::thread::sleep(STOPPED);
    });
    let path = marked_with(&recording, "click", client, before + 1);
    let verdict = verdict(&path, &["--pid", &client.to_string()]);
    assert_stopped(&verdict, "click", client, STOPPED);
}
