// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typing into unmodified private Wayland compositors, and their screen events. Needs sway and
//! foot.

use std::time::Duration;
use tipme_bench::compositor::Compositor;
use tipme_bench::screen::TerminalScreen;
use tipme_bench::{SessionOptions, until};
use tipme_desktop::inject::{Pace, Typist};

/// Only a failing test waits this long.
const LONG: Duration = Duration::from_secs(60);
const QUIET: Duration = Duration::from_millis(400);
const PACE: Pace = Pace { words_per_minute: 300.0, variation: 0.5, seed: 1 };

/// Opens a compositor with a terminal on which a shell runs this script.
fn terminal(script: &str) -> (Compositor, Typist) {
    let mut compositor = Compositor::start(SessionOptions::default()).expect("a compositor");
    let mut typist = compositor.typist(PACE).expect("a keyboard");
    let program = ["sh", "-c", script, "script"].map(Into::into);
    let folder = compositor.folder().as_os_str().to_owned();
    let program: Vec<_> = program.into_iter().chain([folder]).collect();
    compositor.open_terminal(&mut typist, &[], &program).expect("a terminal that takes keys");
    (compositor, typist)
}

#[test]
fn typed_text_arrives_as_it_was_typed() {
    let (compositor, mut typist) = terminal("stty -echo; : >\"$1/ready\"; cat >\"$1/typed\"");
    until("nothing is echoed any more", || compositor.folder().join("ready").exists());
    let text = "Hello, World: 3 + 4 = 7 (ok?)\n";
    let stamps = typist.text(text).expect("all keys are on the keyboard");
    assert!(stamps.len() == text.len() && stamps.is_sorted());
    let typed = compositor.folder().join("typed");
    until("the text arrives", || std::fs::read_to_string(&typed).is_ok_and(|typed| typed == text));
}

#[test]
fn frames_are_reported() {
    let (compositor, mut typist) = terminal("cat");
    let mut watch = compositor.watch().expect("it answers").expect("sway reports frames");
    while watch.next(QUIET).expect("it goes on").is_some() {}
    let pressed = typist.key('x').expect("a key");
    let shown = watch.next(LONG).expect("it goes on").expect("the echo is shown");
    assert!(pressed < shown, "{pressed:?} {shown:?}");
}

#[test]
fn each_has_a_name_of_its_own() {
    let (one, other) = (
        Compositor::start(SessionOptions::default()).expect("a compositor"),
        Compositor::start(SessionOptions::default()).expect("a compositor"),
    );
    assert_ne!(one.name(), other.name());
    assert!([one.name(), other.name()].iter().all(|name| name.starts_with("wayland-")));
    assert!(one.address().starts_with('/') && one.address().ends_with(&one.name()));
}

/// Parses a terminal's mouse reports: button, position in pixels, and `true` for a press.
fn reports(text: &str) -> Vec<(u32, u32, u32, bool)> {
    let reports = text.split("\u{1b}[<").filter_map(|text| {
        let (numbers, pressed) = (text.strip_suffix(['M', 'm'])?, text.ends_with('M'));
        let mut numbers = numbers.split(';').map(|number| number.parse().expect("a number"));
        Some((numbers.next()?, numbers.next()?, numbers.next()?, pressed))
    });
    reports.collect()
}

#[test]
fn buttons_and_the_wheel_arrive_where_the_pointer_is() {
    let script = "stty -icanon -echo; printf '\\033[?1000h\\033[?1016h'; : >\"$1/ready\"; cat >\"$1/reported\"";
    let (compositor, mut typist) = terminal(script);
    until("the terminal reports the pointer", || compositor.folder().join("ready").exists());
    typist.click_at(200, 300, 1).expect("a pointer");
    typist.click_at(300, 350, 3).expect("a pointer");
    typist.scroll(true).expect("a wheel");
    typist.scroll(false).expect("a wheel");
    let reported = || {
        reports(&std::fs::read_to_string(compositor.folder().join("reported")).unwrap_or_default())
    };
    until("all is reported", || reported().last().is_some_and(|(button, ..)| *button == 64));
    let mut buttons: Vec<_> =
        reported().into_iter().map(|(button, _, _, pressed)| (button, pressed)).collect();
    // A notch of the wheel is several lines, each with a report.
    buttons.dedup();
    assert_eq!(buttons, [(0, true), (0, false), (2, true), (2, false), (65, true), (64, true)]);
    let [first, _, second, ..] = reported()[..] else { panic!("{:?}", reported()) };
    assert_eq!((second.1 - first.1, second.2 - first.2), (100, 50));
}
