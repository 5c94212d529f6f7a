// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys in the settings of Wayland desktops: `tipme setup` writes them, one press is one mark, and
//! undo removes them. Needs root for the recorder, sway, dunst, and the settings of GNOME
//! (gsettings).

use std::path::{Path, PathBuf};
use support::compositor::{Compositor, DISPLAY};
use support::portal::Portal;
use support::screen::{ADDRESS, Bus, wait_for};
use support::{Recording, files, open_folder, said, session, tipme};
use tempfile::TempDir;
use tipme_bench::until;

/// A user without root privileges that has an account on every machine: a message bus rejects
/// others.
const NOBODY: u32 = 65534;

/// Ends the agent of a failed test.
struct Leftover<'a>(&'a Bus);

impl Drop for Leftover<'_> {
    fn drop(&mut self) {
        self.0.kill_agent();
    }
}

/// Starts a recorder that the user may call.
fn recorder() -> Recording {
    Recording::start_in(open_folder(), &["--display", DISPLAY, "--allow-user", &NOBODY.to_string()])
}

fn marks(recording: &Recording) -> usize {
    files(&recording.incidents(), ".tipme").len()
}

#[test]
fn a_key_of_sway_marks_once_and_shows_the_cause() {
    let (bus, screen) = (Bus::start(), session());
    let compositor = Compositor::start_as(NOBODY, &[(ADDRESS, &bus.address)]);
    let (recording, mut keyboard) = (recorder(), compositor.keyboard());
    let (_daemon, shown) = bus.start_notifications(&screen);
    let _leftover = Leftover(&bus);
    // A refusing portal, like KDE's under sway: working settings do not depend on it.
    let _portal = Portal::start(&bus.address, 2);
    let run = |words: &[&str]| {
        let mut command = compositor.command(tipme().get_program().to_str().unwrap());
        command.args(words).arg("--state-dir").arg(recording.dir.path());
        command.env("SWAYSOCK", compositor.control().unwrap()).env(ADDRESS, &bus.address);
        said(command.output().unwrap())
    };
    let (configuration, own) =
        (compositor.home().join("configuration"), compositor.home().join("tipme.conf"));
    let before = std::fs::read_to_string(&configuration).unwrap();

    let (code, text) = run(&["doctor", "--verbose"]);
    assert!(
        code == Some(1) && text.contains("sway has no key for tipme; run: tipme setup"),
        "{text}"
    );
    let (code, text) = run(&["setup", "--dry-run"]);
    assert!(
        code == Some(0) && text.contains("to do       bind keys in the settings of sway"),
        "{text}"
    );
    assert!(!own.exists(), "a dry run does nothing");

    let (code, text) = run(&["setup", "--yes"]);
    assert!(code == Some(0) && text.contains("A test press marked "), "{text}");
    assert!(text.contains("\nReady: yes, Ctrl+Alt+Minus marks on wayland-1 "), "{text}");
    assert!(std::fs::read_to_string(&own).unwrap().contains("\nbindsym Ctrl+Alt+minus exec "));
    assert_eq!(marks(&recording), 1);
    wait_for(&shown, "Captured the last ");
    let (code, text) = run(&["setup", "--dry-run"]);
    assert!(code == Some(0) && !text.contains("to do "), "{text}");
    let (_, text) = run(&["doctor", "--verbose"]);
    assert!(text.contains("Ctrl+Alt+Minus marks, bound in the settings of sway"), "{text}");

    keyboard.chord(&"ctrl+alt+minus".parse().unwrap()).unwrap();
    until("the key has marked", || marks(&recording) == 2);
    until("the cause is shown", || bus.ids().len() == 5);
    assert_eq!(
        (marks(&recording), bus.agent().is_some()),
        (2, true),
        "{}",
        std::fs::read_to_string(&shown).unwrap()
    );

    let (code, text) = run(&["setup", "--undo", "--yes"]);
    assert_eq!((code, own.exists(), bus.agent()), (Some(0), false, None), "{text}");
    assert_eq!(std::fs::read_to_string(&configuration).unwrap(), before);
}

#[test]
fn a_key_that_is_pressed_without_an_agent_starts_one_and_marks() {
    let (bus, screen, home, recording) =
        (Bus::start(), session(), TempDir::new().unwrap(), Recording::start(&[]));
    let (_daemon, shown) = bus.start_notifications(&screen);
    let _leftover = Leftover(&bus);
    let mut command = bus.program_of("GNOME", home.path());
    command.args(["agent", "--press", "mark", "--state-dir"]).arg(recording.dir.path());
    let mut first = command.spawn().unwrap();
    until("it has marked", || marks(&recording) == 1);
    wait_for(&shown, "Captured the last ");
    let second =
        bus.program_of("GNOME", home.path()).args(["agent", "--press", "mark"]).status().unwrap();
    assert!(second.success());
    until("the agent has marked", || marks(&recording) == 2);
    assert_eq!(bus.agent(), Some(first.id()));
    first.kill().unwrap();
    first.wait().unwrap();
}

/// Returns the contents of a file after setup, and after its undo.
fn set_up_and_back(desktop: &str, home: &Path, file: &Path) -> (String, Option<String>) {
    let (bus, screen, recording) = (Bus::start(), session(), Recording::start(&[]));
    let (_daemon, _shown) = bus.start_notifications(&screen);
    let _leftover = Leftover(&bus);
    let setup = |words: &[&str]| {
        let mut command = bus.program_of(desktop, home);
        command.arg("setup").args(words).arg("--state-dir").arg(recording.dir.path());
        said(command.output().unwrap())
    };
    let (code, text) = setup(&["--yes"]);
    // Neither KDE's shortcut daemon nor GNOME's settings daemon is on this bus.
    assert!(
        code == Some(1) && text.contains("done        start the agent of this session"),
        "{text}"
    );
    let put = std::fs::read_to_string(file).unwrap();
    let (_, text) = setup(&["--dry-run"]);
    assert!(!text.contains("to do "), "{text}");
    setup(&["--yes", "--mark-key", "f9"]);
    let (_, text) = setup(&["--dry-run"]);
    assert!(!text.contains("to do "), "the chosen key stays: {text}");
    setup(&["--yes", "--mark-key", "ctrl+alt+minus"]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), put, "until another one is given");
    let (code, text) = setup(&["--yes", "--undo"]);
    assert_eq!((code, bus.agent()), (Some(0), None), "{text}");
    (put, std::fs::read_to_string(file).ok())
}

/// A setting of the user, which stays.
const OTHER: &str = "[org/gnome/settings-daemon/plugins/media-keys]
custom-keybindings=['/org/gnome/settings-daemon/plugins/media-keys/custom-keybindings/custom0/']
";

#[test]
fn keys_of_gnome_are_put_beside_others_and_taken_back() {
    let home = TempDir::new().unwrap();
    let file: PathBuf = home.path().join(".config/glib-2.0/settings/keyfile");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, OTHER).unwrap();
    let (put, left) = set_up_and_back("ubuntu:GNOME", home.path(), &file);
    let folder = "/org/gnome/settings-daemon/plugins/media-keys/custom-keybindings/";
    assert!(put.contains(&format!(
        "custom-keybindings=['{folder}custom0/', '{folder}tipme-start/', '{folder}tipme-mark/'"
    )));
    assert!(put.contains(&format!("[{}tipme-mark]", folder.trim_start_matches('/'))), "{put}");
    assert!(
        put.contains("binding='<Control><Alt>minus'") && put.contains(" --press mark'"),
        "{put}"
    );
    let left = left.unwrap();
    // Names of empty groups remain in such a file.
    assert!(
        left.contains(OTHER.trim()) && !left.contains("--press") && !left.contains("binding="),
        "{left}"
    );
}

#[test]
fn keys_of_kde_are_a_file_that_goes_again() {
    let home = TempDir::new().unwrap();
    let file = home.path().join(".local/share/kglobalaccel/tipme.desktop");
    let (put, left) = set_up_and_back("KDE", home.path(), &file);
    let mark = put.split("\n[Desktop Action ").next().unwrap();
    assert!(
        mark.contains("\nX-KDE-Shortcuts=Ctrl+Alt+-\n") && mark.contains(" --press mark\n"),
        "{put}"
    );
    assert!(
        put.contains("[Desktop Action stop-input]\n")
            && put.contains("X-KDE-Shortcuts=Ctrl+Alt++\n"),
        "{put}"
    );
    assert!(
        !put.contains("NoDisplay"),
        "the daemon for shortcuts passes such an entry over: {put}"
    );
    assert_eq!(left, None);
}
