// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's attention on private displays with and without a window manager.

mod display;

use display::{Display, Known, Program, greet, make_window};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tipme_desktop::attention::{Attention, HELPERS_MAX, WINDOWS_MAX, WindowOwner};
use tipme_desktop::{DisplayError, DisplayTarget, PidSource};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt as _, DestroyNotifyEvent, EventMask, InputFocus,
    StackMode, UnmapNotifyEvent, Visibility, VisibilityNotifyEvent,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::{DefaultStream, RustConnection};

const LEFT: &str = "40x10+20+40";
const RIGHT: &str = "40x10+520+40";
/// A setting of openbox.
const FOLLOW_MOUSE: &str = "<followMouse>yes</followMouse><focusDelay>0</focusDelay>";
/// Maximum number of times that the pointer enters a window again, and the interval between them.
const AGAIN_MAX: usize = 20;
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Starts a display with a followed attention.
fn watched() -> (Display, Known) {
    let display = Display::start();
    let known = Known::open(&display);
    (display, known)
}

/// Starts the same with a window manager of this setting.
fn managed(setting: &str) -> (Display, Known, Program) {
    let (display, mut known) = watched();
    let manager = display.manager(setting);
    known
        .until("there is a manager", |known| known.attention.core().manager == Some(manager.pid()));
    (display, known, manager)
}

/// Opens a terminal; returns its window too.
fn terminal(display: &Display, known: &mut Known) -> (Program, u32) {
    let terminal = display.terminal(LEFT);
    let window = known.window_of(terminal.pid());
    (terminal, window)
}

fn sync(wire: &RustConnection) {
    wire.get_input_focus().unwrap().reply().unwrap();
}

#[test]
fn without_a_manager_the_focus_is_followed() {
    let (display, mut known) = watched();
    assert_eq!((known.keyboard, known.pointer, known.windows.len()), (None, None, 0));
    let (first, second) = (display.terminal(LEFT), display.terminal(RIGHT));
    let (a, b) = (known.window_of(first.pid()), known.window_of(second.pid()));
    assert!(known.is(a, |state| state.owner.unwrap().how == PidSource::Server && !state.iconic));
    known.until("both are visible", |known| {
        known.is(a, |state| state.visible) && known.is(b, |state| state.visible)
    });
    display.focus(a);
    known.until("the keyboard is at the first", |known| known.keyboard == Some(a));
    display.focus(b);
    known.until("the keyboard is at the second", |known| known.keyboard == Some(b));

    let later = Known::open(&display);
    assert_eq!((&later.windows, later.keyboard), (&known.windows, Some(b)));
    assert_eq!(later.attention.core().server_pid, display.server.pid());
    assert_eq!(later.attention.core().manager, None);

    drop(second);
    known.until("its end is reported", |known| {
        !known.windows.contains_key(&b) && known.keyboard != Some(b)
    });
    display.unmap(a);
    known.until("it is withdrawn", |known| known.windows.is_empty() && known.keyboard.is_none());
}

#[test]
fn under_a_manager_the_focus_is_followed_by_click_to_type() {
    let (display, mut known, manager) = managed("");
    let (first, second) = (display.terminal(LEFT), display.terminal(RIGHT));
    let (a, b) = (known.window_of(first.pid()), known.window_of(second.pid()));
    for window in [a, b, a] {
        display.activate(window);
        known.until("the keyboard is there", |known| known.keyboard == Some(window));
    }
    known.settle();
    let later = Known::open(&display);
    assert_eq!((&later.windows, later.keyboard), (&known.windows, Some(a)));
    assert_eq!(later.attention.core().manager, Some(manager.pid()));
    let windows = [&first, &second, &manager].map(|program| known.windows_of(program.pid()).len());
    assert_eq!(windows, [1, 1, 0]);
}

/// Moves the pointer into a window until the server reports the focus there: a window manager that
/// is still placing another window ignores the pointer.
fn point_until_focused(display: &Display, window: u32, x: i16) {
    for _ in 0..AGAIN_MAX {
        display.warp(x, 100);
        let asked = Instant::now();
        while asked.elapsed() < AGAIN_AFTER {
            if display.wire.get_input_focus().unwrap().reply().unwrap().focus == window {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        display.warp(1000, 700);
    }
    panic!("the window manager never gave {window} the focus");
}

#[test]
fn the_focus_may_follow_the_mouse() {
    let (display, mut known, _manager) = managed(FOLLOW_MOUSE);
    let (first, second) = (display.terminal(LEFT), display.terminal(RIGHT));
    let (a, b) = (known.window_of(first.pid()), known.window_of(second.pid()));
    for (window, x) in [(a, 100), (b, 600), (a, 100)] {
        point_until_focused(&display, window, x);
        known.until("both are there", |known| {
            (known.keyboard, known.pointer) == (Some(window), Some(window))
        });
    }
    display.warp(1000, 700);
    known.until("the pointer is over nothing", |known| known.pointer.is_none());
}

#[test]
fn the_pointer_counts_on_the_frame_too() {
    let (display, mut known, _manager) = managed("");
    let (_terminal, window) = terminal(&display, &mut known);
    display.warp(1000, 700);
    known.until("the pointer is outside", |known| known.pointer.is_none());
    let place =
        display.wire.translate_coordinates(window, display.root(), 0, 0).unwrap().reply().unwrap();
    display.warp(place.dst_x + 60, place.dst_y - 8);
    known.until("the pointer is on the title", |known| known.pointer == Some(window));
    display.warp(place.dst_x + 60, place.dst_y + 8);
    known.settle();
    assert_eq!(known.pointer, Some(window));
}

#[test]
fn a_focus_that_follows_the_pointer_is_resolved() {
    let display = Display::start();
    let windows =
        [display.shown((0, 0, 200, 200), false), display.shown((300, 0, 200, 200), false)];
    display.focus(u32::from(InputFocus::POINTER_ROOT));
    let mut known = Known::open(&display);
    for (window, x) in [(Some(windows[0]), 100), (Some(windows[1]), 400), (None, 800)] {
        display.warp(x, 100);
        known.until("both follow", |known| (known.keyboard, known.pointer) == (window, window));
    }
}

#[test]
fn an_icon_is_no_visible_window() {
    let (display, mut known, _manager) = managed("");
    let (_terminal, window) = terminal(&display, &mut known);
    known.until("it is visible", |known| known.is(window, |state| state.visible && !state.iconic));
    display.ask_manager(window, "WM_CHANGE_STATE", [3, 0, 0, 0, 0]);
    known.until("it is an icon", |known| known.is(window, |state| !state.visible && state.iconic));
    let later = Known::open(&display);
    assert!(later.is(window, |state| !state.visible && state.iconic));
    display.activate(window);
    known.until("it is back", |known| known.is(window, |state| state.visible && !state.iconic));
}

#[test]
fn another_desktop_is_not_visible() {
    let (display, mut known, _manager) = managed("");
    let (_terminal, window) = terminal(&display, &mut known);
    known.until("it is visible", |known| known.is(window, |state| state.visible));
    display.ask_manager(display.root(), "_NET_CURRENT_DESKTOP", [1, 0, 0, 0, 0]);
    known.until("it is not visible", |known| known.is(window, |state| !state.visible));
    display.ask_manager(display.root(), "_NET_CURRENT_DESKTOP", [0, 0, 0, 0, 0]);
    known.until("it is visible again", |known| known.is(window, |state| state.visible));
}

/// Checks windows that become obscured, and that are so from the beginning.
fn obscured(managed: bool) {
    let (display, mut known) = watched();
    let _manager = managed.then(|| display.manager(""));
    known.until("there is a manager or none", |known| {
        known.attention.core().manager.is_some() == managed
    });
    let (_terminal, window) = terminal(&display, &mut known);
    known.until("it is visible", |known| known.is(window, |state| state.visible));
    let cover = display.shown((0, 0, 1024, 768), true);
    known.until("it is covered", |known| known.is(window, |state| !state.visible && !state.iconic));
    let later = Known::open(&display);
    assert!(later.is(window, |state| !state.visible && !state.iconic));
    display.configure(cover, &ConfigureWindowAux::new().x(60));
    known.until("a part shows", |known| known.is(window, |state| state.visible));
    assert!(Known::open(&display).is(window, |state| state.visible));
    display.configure(cover, &ConfigureWindowAux::new().x(0).stack_mode(StackMode::BELOW));
    known.settle();
    assert!(known.is(window, |state| state.visible));
    assert!(Known::open(&display).is(window, |state| state.visible));
}

#[test]
fn a_covered_window_is_not_visible() {
    obscured(false);
}

#[test]
fn a_covered_window_is_not_visible_under_a_manager() {
    obscured(true);
}

#[test]
fn a_manager_may_come_and_go() {
    let (display, mut known) = watched();
    let (_terminal, window) = terminal(&display, &mut known);
    for _ in 0..2 {
        let manager = display.manager("");
        known.until("there is a manager", |known| {
            known.attention.core().manager == Some(manager.pid())
        });
        known.until("its list has the window", |known| known.windows.contains_key(&window));
        drop(manager);
        known.until("there is none", |known| known.attention.core().manager.is_none());
        known.until("the window is followed", |known| known.is(window, |state| state.visible));
        display.focus(window);
        known.until("it has the keyboard", |known| known.keyboard == Some(window));
    }
}

#[test]
fn an_unmanaged_window_with_the_keyboard_is_followed() {
    let (display, mut known, manager) = managed("");
    let menu = display.shown((700, 500, 100, 100), true);
    known.settle();
    assert!(!known.windows.contains_key(&menu));
    display.focus(menu);
    known.until("it has the keyboard", |known| known.keyboard == Some(menu));
    assert!(known.is(menu, |state| state.visible
        && state.owner.is_some_and(|owner| owner.pid == std::process::id())));
    display.unmap(menu);
    known.until("it is gone", |known| {
        known.keyboard != Some(menu) && !known.windows.contains_key(&menu)
    });
    assert!(known.windows_of(manager.pid()).is_empty());
}

fn xprop(display: &Display, window: u32, change: &[&str]) {
    let id = window.to_string();
    let arguments = ["-id", &id, "-format", "_TIPME_PROCESS_SET", "32c"];
    let arguments = arguments.iter().chain(change);
    assert!(display.command("xprop", arguments).status().unwrap().success());
}

#[test]
fn helpers_are_read_as_xprop_sets_them() {
    let (display, mut known) = watched();
    let (_terminal, window) = terminal(&display, &mut known);
    xprop(&display, window, &["-set", "_TIPME_PROCESS_SET", "4001"]);
    known.until("there is one", |known| known.is(window, |state| state.helpers == [4001]));
    xprop(&display, window, &["-set", "_TIPME_PROCESS_SET", "4001,4002,4001,0,4003"]);
    known.until("there are three", |known| {
        known.is(window, |state| state.helpers == [4001, 4002, 4003])
    });
    xprop(&display, window, &["-remove", "_TIPME_PROCESS_SET"]);
    known.until("there is none", |known| known.is(window, |state| state.helpers.is_empty()));
}

#[test]
fn a_forged_owner_does_not_count_where_the_server_knows() {
    let (display, mut known) = watched();
    let (_terminal, window) = terminal(&display, &mut known);
    let before = known.windows[&window].owner;
    display.set(window, "_NET_WM_PID", AtomEnum::CARDINAL, &[std::process::id()]);
    display.set(window, "_TIPME_PROCESS_SET", AtomEnum::CARDINAL, &[7]);
    known.until("both were read", |known| known.is(window, |state| state.helpers == [7]));
    assert_eq!((known.windows[&window].owner, before.unwrap().how), (before, PidSource::Server));
}

#[test]
fn an_owner_known_only_from_the_property_is_marked() {
    let display = Display::start_with(&["-listen", "tcp"]);
    let mut known = Known::open(&display);
    let port = 6000 + display.number() as u16;
    let address = x11rb::reexports::x11rb_protocol::parse_display::ConnectAddress::Hostname(
        "localhost",
        port,
    );
    let remote = greet(DefaultStream::connect(&address).unwrap().0, &display.cookie);
    let window = make_window(&remote, (0, 0, 100, 100), false);
    remote.map_window(window).unwrap().check().unwrap();
    known.until("it is followed", |known| known.windows.contains_key(&window));
    assert_eq!(known.windows[&window].owner, None);
    display.set(window, "_NET_WM_PID", AtomEnum::CARDINAL, &[1]);
    let claimed = WindowOwner { pid: 1, how: PidSource::Property };
    known.until("the property counts", |known| {
        known.is(window, |state| state.owner == Some(claimed))
    });
    display.set(window, "_NET_WM_PID", AtomEnum::CARDINAL, &[u32::MAX]);
    known.until("it is not a process", |known| known.is(window, |state| state.owner.is_none()));
}

#[test]
fn of_a_million_helpers_the_first_count() {
    let (display, mut known) = watched();
    let window = display.shown((0, 0, 100, 100), false);
    let million: Vec<u32> = (1..=1_000_000).collect();
    display.set(window, "_TIPME_PROCESS_SET", AtomEnum::CARDINAL, &million);
    known.until("they are read", |known| known.is(window, |state| !state.helpers.is_empty()));
    assert_eq!(known.windows[&window].helpers, million[..HELPERS_MAX]);
    assert_eq!(known.attention.dropped().helpers, 1_000_000 - HELPERS_MAX as u64);
    let other = display.window((200, 0, 100, 100), false);
    display.set(other, "_TIPME_PROCESS_SET", AtomEnum::STRING, &million);
    display.map(other);
    known.until("there is the other", |known| known.windows.contains_key(&other));
    assert!(known.windows[&other].helpers.is_empty());
}

#[test]
fn a_storm_of_windows_leaves_what_is_true() {
    let (display, mut known) = watched();
    let stays = display.shown((0, 0, 100, 100), false);
    let storm = display.client();
    let thread = std::thread::spawn(move || {
        for round in 0..20_000 {
            let window = make_window(&storm, (0, 0, 10, 10), false);
            storm.map_window(window).unwrap().ignore_error();
            storm.destroy_window(window).unwrap().ignore_error();
            if round % 500 == 0 {
                sync(&storm);
            }
        }
        sync(&storm);
    });
    while !thread.is_finished() {
        known.wait(Duration::from_millis(10));
        known.take();
        assert!(known.windows.len() <= WINDOWS_MAX);
    }
    thread.join().unwrap();
    known.settle();
    assert_eq!(known.windows.keys().copied().collect::<Vec<_>>(), [stays]);
    display.focus(stays);
    known.until("it has the keyboard", |known| known.keyboard == Some(stays));
}

#[test]
fn a_storm_under_a_manager_leaves_what_is_true() {
    let (display, mut known, _manager) = managed("");
    let storm = display.client();
    let thread = std::thread::spawn(move || {
        for _ in 0..200 {
            let window = make_window(&storm, (0, 0, 10, 10), false);
            storm.map_window(window).unwrap().ignore_error();
            sync(&storm);
            storm.destroy_window(window).unwrap().ignore_error();
        }
        sync(&storm);
    });
    while !thread.is_finished() {
        known.wait(Duration::from_millis(10));
        known.take();
    }
    thread.join().unwrap();
    known.until("the windows are gone", |known| known.windows.is_empty());
}

#[test]
fn a_window_beyond_the_bound_is_followed_with_the_keyboard() {
    let display = Display::start();
    let windows: Vec<u32> =
        (0..WINDOWS_MAX + 44).map(|_| display.window((0, 0, 20, 20), false)).collect();
    windows.iter().for_each(|window| display.map(*window));
    let mut known = Known::open(&display);
    assert_eq!((known.windows.len(), known.attention.dropped().windows), (WINDOWS_MAX, 44));
    let left_out: Vec<u32> =
        windows.iter().copied().filter(|window| !known.windows.contains_key(window)).collect();
    for window in left_out {
        display.focus(window);
        known.until("it has the keyboard", |known| known.keyboard == Some(window));
        assert!(known.windows.len() <= WINDOWS_MAX);
    }
}

#[test]
fn events_of_other_clients_are_left_out() {
    let (display, mut known) = watched();
    let window = display.shown((0, 0, 100, 100), false);
    known.until("it is visible", |known| known.is(window, |state| state.visible));
    known.settle();
    let (before, root) = (known.changes, display.root());
    let obscured = VisibilityNotifyEvent {
        response_type: 15,
        sequence: 0,
        window,
        state: Visibility::FULLY_OBSCURED,
    };
    display.forge(window, EventMask::VISIBILITY_CHANGE, obscured);
    let unmapped = UnmapNotifyEvent {
        response_type: 18,
        sequence: 0,
        event: root,
        window,
        from_configure: false,
    };
    display.forge(root, EventMask::SUBSTRUCTURE_NOTIFY, unmapped);
    let destroyed = DestroyNotifyEvent { response_type: 17, sequence: 0, event: root, window };
    display.forge(root, EventMask::SUBSTRUCTURE_NOTIFY, destroyed);
    for kind in 2..128u8 {
        let mut junk = [0xff_u8; 32];
        junk[0] = kind;
        let all = EventMask::from(0x01ff_ffffu32);
        display.wire.send_event(false, root, all, junk).unwrap().check().ok();
    }
    assert!(known.wait(Duration::from_secs(60)));
    known.settle();
    assert_eq!(known.changes, before);
    display.unmap(window);
    known.until("the server's own count", |known| known.windows.is_empty());
}

#[test]
fn absurd_properties_of_the_root_window_do_no_harm() {
    let display = Display::start();
    let window = display.shown((0, 0, 100, 100), false);
    let mut known = Known::open(&display);
    let root = display.root();
    let many: Vec<u32> = (0..100_000).map(|number| number * 7919).collect();
    let lists = [&[root, window, 0, u32::MAX, window][..], &[], &many];
    for (check, list) in
        [root, window, 0, u32::MAX].iter().flat_map(|check| lists.map(|list| (*check, list)))
    {
        display.set(root, "_NET_CLIENT_LIST", AtomEnum::WINDOW, list);
        display.set(window, "_NET_SUPPORTING_WM_CHECK", AtomEnum::WINDOW, &[check]);
        display.set(root, "_NET_SUPPORTING_WM_CHECK", AtomEnum::WINDOW, &[check]);
        known.settle();
        assert!(known.windows.len() <= WINDOWS_MAX && !known.windows.contains_key(&root));
        display.set(root, "_NET_SUPPORTING_WM_CHECK", AtomEnum::WINDOW, &[0]);
        known.until("the window is followed", |known| known.windows.contains_key(&window));
        display.focus(window);
        known.until("the keyboard is followed", |known| known.keyboard == Some(window));
        display.focus(x11rb::NONE);
        known.until("the keyboard is nowhere", |known| known.keyboard.is_none());
    }
    assert!(known.attention.dropped().windows >= (many.len() - WINDOWS_MAX) as u64);
    let new = display.shown((200, 0, 100, 100), false);
    known.until("new windows are still reported", |known| known.windows.contains_key(&new));
}

#[test]
fn many_events_give_one_state() {
    let display = Display::start();
    let windows =
        [display.shown((0, 0, 100, 100), false), display.shown((200, 0, 100, 100), false)];
    let mut known = Known::open(&display);
    known.settle();
    /// A call may read the display while it changes, twice or so.
    const ROUNDS: usize = 4;
    for round in 0..300u32 {
        display.set(windows[0], "_TIPME_PROCESS_SET", AtomEnum::CARDINAL, &[round + 1]);
        display.focus(windows[round as usize % 2]);
    }
    let before = known.changes;
    known.take();
    known.until("all is reported", |known| {
        known.keyboard == Some(windows[1]) && known.is(windows[0], |s| s.helpers == [300])
    });
    known.settle();
    let changes = known.changes - before;
    assert!(changes <= 2 * ROUNDS, "{changes} changes");
}

#[test]
fn a_focus_that_keeps_moving_does_not_delay_other_reports() {
    let display = Display::start();
    let windows =
        [display.shown((0, 0, 100, 100), false), display.shown((200, 0, 100, 100), false)];
    let mut known = Known::open(&display);
    let new = display.shown((300, 0, 50, 50), false);
    for window in windows.into_iter().cycle().take(8) {
        display.focus(window);
        known.until("the keyboard is there", |known| known.keyboard == Some(window));
    }
    assert!(known.is(new, |state| state.visible));
}

#[test]
fn the_documented_shell_example_adds_to_the_set() {
    let document = include_str!("../../../docs/reference/process-set.md");
    let example = document
        .split_once("```sh\n")
        .unwrap()
        .1
        .split_once("xprop -id \"$WINDOWID\" -remove")
        .unwrap()
        .0;
    let (display, mut known) = watched();
    let (_terminal, window) = terminal(&display, &mut known);
    let mut command =
        display.command("sh", ["-c", &format!("{example}\nprocess_set $WINDOWID 4713 4714")]);
    assert!(command.env("WINDOWID", window.to_string()).status().unwrap().success());
    known.until("all are there", |known| {
        known.is(window, |state| state.helpers == [4711, 4712, 4713, 4714])
    });
}

#[test]
fn nothing_wakes_the_caller_while_nothing_happens() {
    let (display, mut known, _manager) = managed("");
    let terminal = display.terminal(LEFT);
    known.window_of(terminal.pid());
    known.settle();
    assert!(known.attention.changes().unwrap().is_empty());
    assert!(known.attention.idle_ms().unwrap().is_some());
    assert!(!known.wait(Duration::from_millis(500)));
}

#[test]
fn a_query_of_the_idle_time_loses_no_event() {
    let display = Display::start();
    let window = display.shown((0, 0, 100, 100), false);
    let mut known = Known::open(&display);
    known.settle();
    std::thread::sleep(Duration::from_millis(400));
    let before = known.attention.idle_ms().unwrap().unwrap();
    assert!(before >= 400, "{before}");
    for (kind, code) in [(2, 38), (3, 38)] {
        display
            .wire
            .xtest_fake_input(kind, code, 0, display.root(), 0, 0, 0)
            .unwrap()
            .check()
            .unwrap();
    }
    let began = Instant::now();
    let after = known.attention.idle_ms().unwrap().unwrap();
    assert!(after < before || began.elapsed() >= Duration::from_millis(before), "{before} {after}");
    display.focus(window);
    for _ in 0..3 {
        known.attention.idle_ms().unwrap();
    }
    known.until("the focus was not lost", |known| known.keyboard == Some(window));
}

#[test]
fn a_hung_server_is_an_error_and_not_a_wait() {
    let display = Display::start();
    let short = DisplayTarget { timeout: Duration::from_millis(300), ..display.target() };
    let mut attention = Attention::open(&short).unwrap();
    display.server.signal(Signal::STOP);
    assert!(matches!(attention.changes(), Err(DisplayError::Hung { limit_ms: 300, .. })));
    let mut second = Attention::open(&short);
    assert!(matches!(second.as_mut().map(Attention::changes), Err(DisplayError::Hung { .. })));
    display.server.signal(Signal::CONT);
    let mut attention = Attention::open(&display.target()).unwrap();
    attention.changes().unwrap();
    display.server.signal(Signal::KILL);
    let lost = (0..3).find_map(|_| attention.idle_ms().err());
    assert!(matches!(lost, Some(DisplayError::Lost { .. })), "{lost:?}");
}

/// Prints the time from the request for the focus until the change is returned.
#[test]
fn each_of_a_hundred_switches_is_reported() {
    let (display, mut known, _manager) = managed("");
    let (first, second) = (display.terminal(LEFT), display.terminal(RIGHT));
    let windows = [known.window_of(first.pid()), known.window_of(second.pid())];
    display.activate(windows[1]);
    known.until("the keyboard is there", |known| known.keyboard == Some(windows[1]));
    known.settle();
    let mut times: Vec<Duration> = Vec::new();
    for round in 0..100 {
        let window = windows[round % 2];
        let began = Instant::now();
        display
            .wire
            .set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME)
            .unwrap()
            .ignore_error();
        display.wire.flush().unwrap();
        known.until("the keyboard is there", |known| known.keyboard == Some(window));
        times.push(began.elapsed());
        known.settle_for(Duration::from_millis(30));
    }
    times.sort();
    println!(
        "focus request to change: median {:?}, p99 {:?}, max {:?}",
        times[50], times[98], times[99]
    );
}
