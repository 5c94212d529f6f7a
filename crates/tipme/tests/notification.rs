// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages on screen after a press of the key, with a real notification daemon and without one.
//! Needs root for the recorder, dunst and notification-daemon.

use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use support::popups::{Popup, Viewer};
use support::screen::{ADDRESS, Bus, wait_for};
use support::session_agent::{Agent, press, program};
use support::suffering::suffer;
use support::{Recording, Running, session, status, typist};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_bench::session::{SessionOptions, SessionWindowManager};
use tipme_bench::until;
use tipme_desktop::hotkeys::{Bindings, HotKeyAction, HotKeys};
use tipme_desktop::inject::Typist;
use tipme_desktop::{DisplayConnection, FocusedWindow, focus};
use tipme_record::incident::Words;

/// Returns the wall-clock time in milliseconds.
fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Creates a folder with a `zenity` that opens a window and logs its text to a file; also returns
/// this file.
fn dialog() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let script = r#"printf '%s\n' "$@" >> "${0%/*}/asked"; exec xterm -e sleep 9"#;
    program(folder.path(), "zenity", script);
    let asked = folder.path().join("asked");
    (folder, asked)
}

fn with_dialog(command: &mut Command, folder: &Path) {
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
}

/// A session with a recorder, a notification daemon and an agent. Fields are dropped in this order.
struct Desktop {
    agent: Agent,
    _daemon: Running,
    /// Log of the daemon's notifications.
    shown: PathBuf,
    recording: Recording,
    bus: Bus,
    session: PrivateSession,
}

impl Desktop {
    /// Starts all of them; the keys are served once this returns.
    fn start(change: impl FnOnce(&mut Command)) -> Desktop {
        let (session, bus) = (session(), Bus::start());
        let recording = Recording::start(&["--display", &session.display_name()]);
        let (daemon, shown) = bus.start_notifications(&session);
        let agent = Agent::start(&session, recording.dir.path(), |command| {
            change(command.env(ADDRESS, &bus.address))
        });
        agent.line("ready: ");
        Desktop { agent, _daemon: daemon, shown, recording, bus, session }
    }
}

fn without_dialog(command: &mut Command) {
    command.arg("--no-dialog");
}

#[test]
fn the_notification_carries_the_cause() {
    let _alone = support::alone();
    let mut desktop = Desktop::start(without_dialog);
    suffer(&mut desktop.session);
    desktop.agent.line("marked ");
    let text = wait_for(&desktop.shown, "Try: ");
    assert!(text.contains("\nTyping in xterm stalled for "), "{text}");
    assert!(text.contains(" held a lock that "), "{text}");
}

#[test]
fn another_daemon_receives_and_shows_the_same() {
    let _alone = support::alone();
    let (mut session, bus) = (session(), Bus::start());
    let recording = Recording::start(&["--display", &session.display_name()]);
    let (_running, heard) = bus.start_other_notifications(&session);
    let (folder, asked) = dialog();
    let agent = Agent::start(&session, recording.dir.path(), |command| {
        with_dialog(command, folder.path());
        command.env(ADDRESS, &bus.address);
    });
    agent.line("ready: ");
    suffer(&mut session);
    agent.line("marked ");
    let text = wait_for(&heard, "Try: ");
    let calls: Vec<&str> = text.split("member=Notify\n").skip(1).collect();
    let [.., first, verdict] = &calls[..] else { panic!("{text}") };
    assert!(first.contains("string \"Captured the last "), "{first}");
    assert!(
        verdict.contains("string \"Typing in xterm stalled for ")
            && verdict.contains(" held a lock that "),
        "{verdict}"
    );
    assert!(
        first.contains("\n   uint32 0\n") && !verdict.contains("\n   uint32 0\n"),
        "it takes the place: {text}"
    );
    let mut windows = Command::new("xwininfo");
    session.show(windows.args(["-root", "-tree"]));
    let mut are_shown =
        || String::from_utf8_lossy(&windows.output().unwrap().stdout).contains("\"Notification\"");
    until("the daemon shows a window", &mut are_shown);
    assert!(!asked.exists(), "a dialog was shown besides");
}

#[test]
fn without_a_daemon_a_popup_shows_the_cause_and_the_commands() {
    let _alone = support::alone();
    let (mut session, bus) = (session(), Bus::start());
    let recording = Recording::start(&["--display", &session.display_name()]);
    let (folder, asked) = dialog();
    let agent = Agent::start(&session, recording.dir.path(), |command| {
        with_dialog(command, folder.path());
        command.env(ADDRESS, &bus.address);
    });
    agent.line("ready: ");
    suffer(&mut session);
    let incident = agent.line("marked ");
    let why = agent.line("tipme: no notification is shown: ");
    assert!(why.contains("org.freedesktop.Notifications"), "{why}");
    let text = Viewer::open(&session).wait_for("Try: ").text;
    assert!(text.starts_with("Typing in xterm stalled for "), "{text}");
    assert!(text.contains(" held a lock that "), "{text}");
    let more = [format!("diagnose {incident}"), format!("incidents note {incident} WORDS")];
    let more = format!("Read more: tipme {}\nAdd a note: tipme {}", more[0], more[1]);
    assert!(text.ends_with(&format!("\n\n{more}\nA click closes this.")), "{text}");
    assert!(!asked.exists(), "a window opened that nobody asked for");
}

#[test]
fn without_a_bus_a_failed_press_is_shown_by_a_popup() {
    let (session, state) = (session(), TempDir::new().unwrap());
    let agent = Agent::ready(&session, state.path(), &[], &[]);
    let viewer = Viewer::open(&session);
    typist(&session, 60.0).move_to(viewer.size().0 as i16 - 99, 30).unwrap();
    press(&session, &["ctrl+alt+minus"]);
    let [_, why] = [(); 2].map(|()| agent.line("tipme: no recorder listens at "));
    let refused = agent.line("tipme: no notification is shown: ");
    assert!(refused.contains(ADDRESS), "{refused}");
    let Popup { text, left, .. } = viewer.wait_for("The mark failed");
    assert_eq!(left, 12, "keys may go to what is below the pointer");
    assert_eq!(
        text,
        format!("The mark failed\n\nno recorder listens at {why}\n\nA click closes this.")
    );
}

#[test]
fn without_a_bus_the_effect_of_a_key_is_shown_by_a_popup() {
    let session = session();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let agent = Agent::ready(&session, recording.dir.path(), &[], &[]);
    press(&session, &["ctrl+alt+0"]);
    agent.line("input is no longer recorded");
    let said =
        "Input is no longer recorded\n\nVerdicts cannot name the key or click that was late; ";
    Viewer::open(&session).wait_for(said);
}

/// Types some letters, and asserts that none of them loses the focus.
fn type_on(typist: &mut Typist, sent: &mut String, viewer: &Viewer, focused: u32) {
    for letter in "a password\n".chars() {
        typist.key(letter).unwrap();
        sent.push(letter);
        assert_eq!(viewer.focus(), focused, "the focus was taken after {sent:?}");
    }
}

/// Opens a terminal that writes its input to this file.
fn open_log(session: &mut PrivateSession, file: &Path) {
    let words = ["sh", "-c", "cat > \"$0\""].map(Into::into).into_iter();
    session.open_terminal(&[], &words.chain([file.into()]).collect::<Vec<_>>()).unwrap();
}

#[test]
fn typing_goes_on_while_a_popup_comes_and_goes() {
    let (mut session, (folder, asked)) = (session(), dialog());
    let recording = Recording::start(&["--display", &session.display_name()]);
    let agent =
        Agent::start(&session, recording.dir.path(), |command| with_dialog(command, folder.path()));
    agent.line("ready: ");
    let typed = folder.path().join("typed");
    open_log(&mut session, &typed);
    let viewer = Viewer::open(&session);
    let (before, focused) = (viewer.windows(), viewer.focus());
    let mut typist = typist(&session, 60.0);
    let mut sent = String::new();
    type_on(&mut typist, &mut sent, &viewer, focused);
    typist.chord(&"ctrl+alt+minus".parse().unwrap()).unwrap();
    until("a popup comes", || {
        type_on(&mut typist, &mut sent, &viewer, focused);
        !viewer.popups().is_empty()
    });
    type_on(&mut typist, &mut sent, &viewer, focused);
    let popup = viewer.wait_for("Add a note: tipme incidents note ");
    assert!(popup.is_alone, "a window manager takes care of it, and may give it the focus");
    assert_eq!(
        viewer.windows(),
        [&before[..], &[popup.window]].concat(),
        "there is one window more, above all"
    );
    let [x, y] = [popup.left + popup.right, popup.top + popup.bottom].map(|sum| (sum / 2) as i16);
    typist.move_to(x, y).unwrap();
    typist.scroll(true).unwrap();
    type_on(&mut typist, &mut sent, &viewer, focused);
    assert_eq!(viewer.popups(), [popup], "the wheel closes nothing");
    typist.click_at(x, y, 1).unwrap();
    until("a click has closed it", || viewer.popups().is_empty());
    type_on(&mut typist, &mut sent, &viewer, focused);
    wait_for(&typed, &sent);
    assert_eq!(std::fs::read_to_string(&typed).unwrap(), sent, "no letter was lost");
    assert_eq!(viewer.windows(), before);
    assert!(!asked.exists(), "a window opened that nobody asked for");
}

#[test]
fn popups_stand_below_each_other_and_are_bounded() {
    let (session, state) = (session(), TempDir::new().unwrap());
    let agent = Agent::ready(&session, state.path(), &[], &[]);
    let viewer = Viewer::open(&session);
    for count in 1..=8 {
        press(&session, &["ctrl+alt+minus"]);
        until("a popup for each press", || viewer.popups().len() == count);
    }
    press(&session, &["ctrl+alt+minus"]);
    agent.line("tipme: 8 popups are open; click on them");
    let (popups, (width, height)) = (viewer.popups(), viewer.size());
    assert!(
        popups.iter().all(|popup| popup.right == width - 12 && popup.bottom <= height),
        "{popups:?}"
    );
    assert_eq!(popups[0].top, 12, "{popups:?}");
    assert!(
        popups[1].top == popups[0].bottom + 12 && popups[2].top == popups[1].bottom + 12,
        "{popups:?}"
    );
    let mut typist = typist(&session, 60.0);
    typist.click_at((width - 99) as i16, (popups[1].top + 20) as i16, 1).unwrap();
    until("the second one is closed", || viewer.popups().len() == 7);
    typist.move_to(0, 0).unwrap();
    until("a further one stands in its place", || {
        press(&session, &["ctrl+alt+minus"]);
        viewer.popups().last().is_some_and(|popup| popup.top == popups[1].top)
    });
}

#[test]
fn without_a_bus_taken_keys_are_shown_by_a_popup() {
    let (session, state) = (session(), TempDir::new().unwrap());
    let taken = [(HotKeyAction::Mark, "ctrl+alt+minus"), (HotKeyAction::Start, "f9")];
    let taken = taken.map(|(action, key)| (action, key.parse().unwrap()));
    let _holder = HotKeys::grab(&session.target(), Bindings(taken.to_vec())).unwrap();
    let agent = Agent::start(&session, state.path(), |command| {
        command.args(["--start-key", "f9"]);
    });
    agent.line("ready: Ctrl+Alt+Shift+M marks (unavailable: ");
    let text = Viewer::open(&session).wait_for("Try: tipme setup --mark-key KEY").text;
    assert!(text.starts_with("Ctrl+Alt+Shift+M marks instead of Ctrl+Alt+Minus\n"), "{text}");
}

#[test]
fn a_silent_daemon_delays_nothing() {
    let (session, state, bus) = (session(), TempDir::new().unwrap(), Bus::start());
    let (daemon, _) = bus.start_notifications(&session);
    daemon.signal(Signal::STOP);
    let agent = Agent::ready(&session, state.path(), &[], &[(ADDRESS, &bus.address)]);
    press(&session, &["ctrl+alt+minus", "ctrl+alt+0"]);
    let first = [(); 2].map(|()| agent.line("tipme: no "));
    assert!(first.iter().all(|line| line.starts_with("recorder listens at ")), "{first:?}");
    let why = agent.line("tipme: no notification is shown: ");
    assert!(why.contains("did not answer"), "{why}");
    Viewer::open(&session).wait_for("The mark failed");
}

fn focused(session: &PrivateSession) -> FocusedWindow {
    focus(&DisplayConnection::open(&session.target()).unwrap()).unwrap()
}

/// Starts a session in which xfwm4 grabs its own keys.
fn session_of_xfwm4() -> PrivateSession {
    PrivateSession::start(SessionOptions {
        manager: SessionWindowManager::Xfwm4,
        ..SessionOptions::default()
    })
    .unwrap()
}

#[test]
fn the_agent_serves_the_keys_that_xfwm4_leaves() {
    let (session, state, bus) = (session_of_xfwm4(), TempDir::new().unwrap(), Bus::start());
    let (_daemon, shown) = bus.start_notifications(&session);
    let _holder = HotKeys::grab(
        &session.target(),
        Bindings(vec![(HotKeyAction::Mark, "f9".parse().unwrap())]),
    )
    .unwrap();
    let agent = Agent::start(&session, state.path(), |command| {
        command.args(["--no-dialog", "--start-key", "f9"]).env(ADDRESS, &bus.address);
    });
    let taken = "hot key F9 (start recording) is held by another program, \
                 probably the window manager Xfwm4. Try: kill ";
    let keypad = agent.line("tipme: hot key Ctrl+Alt+1 ");
    assert!(
        keypad.contains(
            " is held on the keypad by another program, probably the window manager Xfwm4;"
        )
    );
    agent.line("ready: Ctrl+Alt+Minus marks (unavailable: F9) on :");
    let text = wait_for(&shown, taken);
    assert!(
        text.contains("\nF9 is not available\n")
            && text.contains("; tipme agent --start-key KEY &"),
        "{text}"
    );
    press(&session, &["ctrl+alt+minus"]);
    wait_for(&shown, "The mark failed");
}

#[test]
fn another_key_marks_where_the_one_asked_for_is_taken() {
    let (session, state, bus) = (session(), TempDir::new().unwrap(), Bus::start());
    let (_daemon, shown) = bus.start_notifications(&session);
    let taken = ["ctrl+alt+minus", "ctrl+alt+shift+m"]
        .map(|key| (HotKeyAction::Mark, key.parse().unwrap()));
    let _holder = HotKeys::grab(&session.target(), Bindings(taken.to_vec())).unwrap();
    let agent = Agent::start(&session, state.path(), |command| {
        command.arg("--no-dialog").env(ADDRESS, &bus.address);
    });
    agent.line("ready: Ctrl+Alt+Pause marks (unavailable: Ctrl+Alt+Minus) on :");
    let text = wait_for(&shown, "Try: tipme setup --mark-key KEY");
    assert!(text.contains("\nCtrl+Alt+Pause marks instead of Ctrl+Alt+Minus\n"), "{text}");
    press(&session, &["ctrl+alt+pause"]);
    wait_for(&shown, "The mark failed");
}

/// Creates a folder with a `zenity` that returns a note on request, and logs other texts.
fn notes() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let keep = r#"case "$1" in
        --entry) echo "the editor hung" ;;
        *) cat "${@: -1}" >> "${0%/*}/asked" ;;
    esac"#;
    program(folder.path(), "zenity.bash", keep);
    program(folder.path(), "zenity", r#"exec bash "${0}.bash" "$@""#);
    let asked = folder.path().join("asked");
    (folder, asked)
}

#[test]
fn a_press_is_confirmed_at_once_and_takes_no_focus() {
    let _alone = support::alone();
    let (folder, asked) = notes();
    let mut desktop = Desktop::start(|command| with_dialog(command, folder.path()));
    let Desktop { session, bus, agent, .. } = &mut desktop;
    let typed = folder.path().join("typed");
    open_log(session, &typed);
    let before = focused(session);
    let mut typist = typist(session, 60.0);
    typist.text("before ").unwrap();
    let pressed = now_ms();
    typist.chord(&"ctrl+alt+minus".parse().unwrap()).unwrap();
    typist.text("after\n").unwrap();
    agent.line("marked ");
    wait_for(&typed, "before after\n");
    until("the verdict is shown", || bus.ids().len() == 3);
    typist.text("later\n").unwrap();
    wait_for(&typed, "later\n");
    assert_eq!(focused(session), before);
    assert!(!asked.exists(), "a window opened that nobody asked for");
    let [_, first, second] = &bus.ids()[..] else { panic!("{:?}", bus.ids()) };
    assert!(
        first.2.starts_with("Captured the last ") && first.2.ends_with(" s, looking for the cause"),
        "{first:?}"
    );
    assert!(first.1 - pressed < 1_000, "confirmed after {} ms", first.1 - pressed);
    println!(
        "confirmed after {} ms, the verdict after {} ms",
        first.1 - pressed,
        second.1 - pressed
    );
    assert_eq!(first.0, second.0, "the verdict replaces the confirmation");
}

fn words(path: &Path) -> Words {
    tipme_store::read(path).unwrap().words().unwrap()
}

#[test]
fn the_buttons_of_a_verdict_do_what_they_say() {
    let _alone = support::alone();
    let (folder, asked) = notes();
    let mut desktop = Desktop::start(|command| {
        with_dialog(command, folder.path());
        command.env("XDG_CACHE_HOME", folder.path());
    });
    suffer(&mut desktop.session);
    let Desktop { session, bus, agent, shown, .. } = &desktop;
    let first = PathBuf::from(agent.line("marked "));
    wait_for(shown, "Try: ");
    bus.push("Not this");
    wait_for(shown, "Noted: it was something else");
    assert_eq!(words(&first).right, Some(false));
    bus.push("Add note");
    until("the words are in the incident", || words(&first).text == "the editor hung");
    let opened = folder.path().join("opened");
    program(folder.path(), "xdg-open", r#"cp "$1" "${0%/*}/opened""#);
    bus.push("Details");
    let (_, verdict) = support::diagnose(&first, &[]);
    let headline = verdict.lines().next().unwrap();
    wait_for(&opened, headline);
    assert!(!asked.exists(), "the page is in the browser, and the text in a window too");
    program(folder.path(), "xdg-open", "exit 3");
    bus.push("Details");
    wait_for(&asked, headline);
    let count = bus.ids().len();
    press(session, &["ctrl+alt+minus"]);
    let second = PathBuf::from(agent.line("marked "));
    until("the verdict is shown", || bus.ids().len() == count + 2);
    bus.push("Add note");
    until("the words are in the incident", || words(&second).text == "the editor hung");
    assert_eq!(words(&second).right, None);
}

/// Returns the clipboard contents that another program would paste.
fn pasted(session: &PrivateSession, words: &[&str]) -> String {
    let mut command = Command::new("xclip");
    session.show(command.args(["-out", "-selection", "clipboard"]).args(words));
    let output = command.output().expect("xclip is installed");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_copied_verdict_outlives_its_notification() {
    let (folder, asked) = dialog();
    let desktop = Desktop::start(|command| with_dialog(command, folder.path()));
    let Desktop { session, bus, agent, shown, .. } = &desktop;
    let before = focused(session);
    for _ in 0..2 {
        let count = bus.ids().len();
        press(session, &["ctrl+alt+minus"]);
        let incident = PathBuf::from(agent.line("marked "));
        until("the verdict is shown", || bus.ids().len() == count + 2);
        bus.push("Copy");
        agent.line("copied");
        wait_for(shown, "Copied\nThe verdict can be pasted");
        bus.close_all();
        let (_, verdict) = support::diagnose(&incident, &[]);
        assert_eq!(pasted(session, &["-target", "UTF8_STRING"]), verdict);
        assert_eq!(pasted(session, &[]), verdict, "it is given as often as it is asked for");
        assert!(pasted(session, &["-target", "TARGETS"]).contains("\nUTF8_STRING\n"));
        assert_eq!(pasted(session, &["-target", "image/png"]), "");
    }
    assert_eq!(focused(session), before);
    assert!(!asked.exists(), "a window opened that nobody asked for");
    let mut other = Command::new("sh");
    session.show(other.args(["-c", "echo something else | xclip -in -selection clipboard"]));
    assert!(other.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(pasted(session, &[]), "something else\n", "others can copy too");
}

#[test]
fn each_key_shows_its_effect_on_screen() {
    let desktop = Desktop::start(without_dialog);
    let Desktop { session, recording, shown, .. } = &desktop;
    let folder = recording.dir.path();
    press(session, &["ctrl+alt+0"]);
    let effect = "Verdicts cannot name the key or click that was late; press Ctrl+Alt+1 ";
    wait_for(shown, &format!("Input is no longer recorded\n{effect}"));
    assert!(!status(folder).keys);
    press(session, &["ctrl+alt+minus"]);
    wait_for(shown, "Input is not recorded; press Ctrl+Alt+1, or run: tipme resume. Without it, ");
    let marked = recording.mark_output("by hand");
    assert!(String::from_utf8_lossy(&marked.stderr).contains("input is not recorded"));
    press(session, &["ctrl+alt+1"]);
    wait_for(shown, "Input is recorded again\nThe last ");
    assert!(status(folder).keys);
    press(session, &["ctrl+alt+0"]);
    until("input is no longer recorded", || !status(folder).keys);
    press(session, &["ctrl+alt+plus"]);
    wait_for(shown, "Recording\nThe last ");
    assert!(status(folder).keys, "to start means to record everything");
}
