// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent in a Wayland session, in which the desktop binds the keys; one press is one mark,
//! however many paths exist. A private X server stands for Xwayland. Needs root for the recorder,
//! and dunst.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::popups::Viewer;
use support::portal::Portal;
use support::screen::{ADDRESS, Bus, wait_for};
use support::session_agent::{Agent, press};
use support::{Recording, files, session};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_bench::until;
use tipme_control::{Gate, RecorderRequest, RecorderResponse, RecorderStatus, SOCKET_NAME, Server};
use tipme_desktop::hotkeys::{Bindings, HotKeyAction, HotKeys};
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::presence;
use tipme_store::id_ago;
use zbus::zvariant::ObjectPath;

fn agent(session: &PrivateSession, state_dir: &Path, bus: &Bus) -> Agent {
    Agent::start_anywhere(session, state_dir, |command| {
        command.arg("--no-dialog").env("WAYLAND_DISPLAY", "wayland-7").env(ADDRESS, &bus.address);
    })
}

#[test]
fn the_desktop_binds_the_key_and_one_press_is_one_mark() {
    let (session, bus) = (session(), Bus::start());
    let recording = Recording::start(&["--display", &session.display_name()]);
    let (_daemon, shown) = bus.start_notifications(&session);
    let portal = Portal::start(&bus.address, 0);
    let mut agent = agent(&session, recording.dir.path(), &bus);
    assert_eq!(agent.line("ready: "), "Ctrl+Alt+Minus marks, bound by the desktop");
    let wanted = portal.wanted.lock().unwrap().clone();
    let keys = ["CTRL+ALT+plus", "CTRL+ALT+minus", "CTRL+ALT+0", "CTRL+ALT+1"];
    assert_eq!(wanted.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), keys);
    let found = presence::find(&session.target()).unwrap().expect("tipme status knows the agent");
    assert_eq!(found.words, "Ctrl+Alt+Minus marks");

    let own = portal.session.lock().unwrap().clone().expect("the agent has bound them");
    let strange: ObjectPath<'_> =
        "/org/freedesktop/portal/desktop/session/1_99/other".try_into().unwrap();
    portal.press(&strange, "mark");
    portal.press(&own, "unknown");
    portal.press(&own, "mark");
    agent.line("marked ");
    wait_for(&shown, "Captured the last ");
    // The same key on Xwayland is free: otherwise a press that the desktop forwards would mark
    // twice.
    let keys = HotKeys::grab(
        &session.target(),
        Bindings(vec![(HotKeyAction::Mark, "ctrl+alt+minus".parse().unwrap())]),
    );
    assert_eq!(keys.unwrap().refusals(), []);
    portal.press(&own, "stop-input");
    wait_for(&shown, "Input is no longer recorded");
    assert_eq!(files(&recording.incidents(), ".tipme").len(), 1);

    portal.close(&own);
    let why = "the desktop binds no shortcut: the desktop revoked its shortcuts";
    wait_for(&shown, &format!("No key marks under Wayland\n{why}"));
    assert_eq!(agent.child.wait().unwrap().code(), Some(2));
}

#[test]
fn without_a_portal_the_remedy_is_shown() {
    let (session, bus, state) = (session(), Bus::start(), TempDir::new().unwrap());
    let (_daemon, shown) = bus.start_notifications(&session);
    let mut agent = agent(&session, state.path(), &bus);
    let why = agent.line("tipme: no key marks under Wayland; ");
    assert!(
        why.contains(
            " has no key for tipme; bind Ctrl+Alt+Minus in the settings of the desktop to "
        ),
        "{why}"
    );
    let text = wait_for(&shown, " --press mark");
    let advice = "\nNo key marks under Wayland\nthis desktop has no key for tipme; \
                  bind Ctrl+Alt+Minus in the settings of the";
    assert!(text.contains(advice) && !text.contains("tipme setup"), "{text}");
    assert_eq!(agent.child.wait().unwrap().code(), Some(2));
}

#[test]
fn without_a_bus_the_remedy_is_a_popup_on_xwayland() {
    let (session, state) = (session(), TempDir::new().unwrap());
    let mut agent = Agent::start_anywhere(&session, state.path(), |command| {
        command.env("WAYLAND_DISPLAY", "wayland-7");
    });
    let popup = Viewer::open(&session).wait_for(" --press mark\n\nA click closes this.");
    assert!(
        popup.text.starts_with("No key marks under Wayland\n\nthis desktop has no key for tipme; "),
        "{}",
        popup.text
    );
    let mut typist = Typist::open(&session.target(), Pace::default()).unwrap();
    typist.click_at(popup.left as i16 + 9, popup.top as i16 + 9, 1).unwrap();
    assert_eq!(agent.child.wait().unwrap().code(), Some(2));
}

#[test]
fn refused_keys_can_be_bound_by_hand() {
    let (session, bus, state) = (session(), Bus::start(), TempDir::new().unwrap());
    let (_daemon, shown) = bus.start_notifications(&session);
    let _portal = Portal::start(&bus.address, 1);
    let mut agent = agent(&session, state.path(), &bus);
    let refused = "the desktop binds no shortcut: the user refused; bind ";
    let why = agent.line(&format!("tipme: no key marks under Wayland; {refused}"));
    assert!(why.ends_with(" --press mark, and press it"), "{why}");
    wait_for(&shown, "No key marks under Wayland\n");
    assert!(agent.child.try_wait().unwrap().is_none(), "it serves the key that is bound by hand");
}

/// A stand-in for a recorder with `--hot-keys always` on a machine with keyboards: it reports that
/// it reads the keys and marks by itself. It counts mark requests.
struct Taker {
    marks: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Taker {
    fn start(folder: &Path) -> Taker {
        let mut server = Server::bind(&folder.join(SOCKET_NAME), Gate::new(&[])).unwrap();
        let (marks, ends) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counted, ended) = (Arc::clone(&marks), Arc::clone(&ends));
        let status = RecorderStatus {
            any_keyboard: true,
            keys: true,
            held_s: 40.0,
            window_s: 40.0,
            ..RecorderStatus::default()
        };
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for call in server.calls(Instant::now()) {
                    if matches!(call.request, RecorderRequest::Mark { .. }) {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                    call.answer(&RecorderResponse::Status(status.clone()));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Taker { marks, ends, thread: Some(thread) }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn a_mark_of_the_recorder_is_shown_and_not_repeated() {
    let (session, bus, state) = (session(), Bus::start(), TempDir::new().unwrap());
    let (_daemon, shown) = bus.start_notifications(&session);
    let (taker, incidents) = (Taker::start(state.path()), state.path().join("incidents"));
    std::fs::create_dir(&incidents).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let earlier = incidents.join(format!("{}.tipme", id_ago(Duration::from_secs(60))));
    std::fs::copy(golden.join("server-grab.tipme"), earlier).unwrap();
    let agent = Agent::ready(&session, state.path(), &["--no-dialog"], &[(ADDRESS, &bus.address)]);
    press(&session, &["ctrl+alt+minus"]);
    wait_for(&shown, "Captured the last 40 s, looking for the cause");
    let id = id_ago(Duration::ZERO);
    std::fs::copy(golden.join("stopped.tipme"), incidents.join(format!("{id}.tipme"))).unwrap();
    let marked = PathBuf::from(agent.line("marked "));
    assert_eq!(marked.file_stem().unwrap().to_string_lossy(), id);
    wait_for(&shown, "power-saver stopped patient");
    until("all notifications", || bus.ids().len() == 3);
    assert_eq!(taker.marks.load(Ordering::Relaxed), 0, "the press was marked twice");
    let ids: Vec<u32> = bus.ids().iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids[1], ids[2], "the verdict replaces the confirmation");
}
