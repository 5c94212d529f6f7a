// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of `tipme setup`, `status` and `doctor` about the key of a Wayland desktop: the
//! desktop's own state, not the requested one. Needs root for the recorder, dunst, and the settings
//! of GNOME (gsettings).

use std::path::Path;
use std::time::{Duration, Instant};
use support::kglobalaccel::Kglobalaccel;
use support::notification_server::FakeServer;
use support::portal::{Portal, SilentPortal};
use support::screen::Bus;
use support::{Recording, said};
use tempfile::TempDir;
use tipme_bench::until;

/// Qt code of Ctrl+Alt+Minus.
const MARK: (&str, i32) = ("_launch", 0x0c00_002d);

/// Home folder, session bus and recorder of a user.
struct Desktop {
    bus: Bus,
    home: TempDir,
    recording: Recording,
}

impl Desktop {
    fn start() -> Desktop {
        Desktop {
            bus: Bus::start(),
            home: TempDir::new().unwrap(),
            recording: Recording::start(&[]),
        }
    }

    /// Returns exit code and text of a verb, in a session of the named desktop.
    fn run(&self, desktop: &str, words: &[&str]) -> (Option<i32>, String) {
        let mut command = self.bus.program_of(desktop, self.home.path());
        command.args(words).arg("--state-dir").arg(self.recording.dir.path());
        let (code, text) = said(command.output().unwrap());
        (code, text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Drop for Desktop {
    /// Ends the agent started by setup.
    fn drop(&mut self) {
        self.bus.kill_agent();
    }
}

fn entry(home: &Path) -> std::path::PathBuf {
    home.join(".local/share/kglobalaccel/tipme.desktop")
}

#[test]
fn kde_is_ready_only_where_its_daemon_has_the_key() {
    let desktop = Desktop::start();
    let (daemon, portal) =
        (Kglobalaccel::start(&desktop.bus.address, &[]), Portal::start(&desktop.bus.address, 0));
    let (code, text) = desktop.run("KDE", &["status"]);
    assert!(
        code == Some(1)
            && text.starts_with("Ready: no, because KDE has no key for tipme; run: tipme setup"),
        "{text}"
    );

    let (code, text) = desktop.run("KDE", &["setup", "--yes"]);
    let later = "Ready: after the next login, when KDE reads the binding of Ctrl+Alt+Minus; \
                 until then, run: tipme mark";
    assert!(code == Some(1) && text.contains(later), "{text}");
    assert!(!text.contains("Now press the key") && !text.contains("Ready: yes"), "{text}");
    assert_eq!(
        *portal.wanted.lock().unwrap(),
        [],
        "the settings have the keys, and the portal is left alone"
    );
    for verb in ["status", "doctor"] {
        let (code, text) = desktop.run("KDE", &[verb]);
        assert!(code == Some(1) && text.starts_with(later), "{text}");
    }
    drop(daemon);
}

#[test]
fn kde_serves_a_loaded_entry_and_any_desktop_can_undo_it() {
    let desktop = Desktop::start();
    let daemon = Kglobalaccel::start(&desktop.bus.address, &[MARK, ("start", 0x0c00_002b)]);
    let (code, text) = desktop.run("KDE", &["setup", "--yes"]);
    assert!(
        code == Some(0) && text.contains("Ready: yes, Ctrl+Alt+Minus marks on wayland-7 "),
        "{text}"
    );
    assert!(text.contains("Now press the key yourself: Ctrl+Alt+Minus."), "{text}");
    let (_, text) = desktop.run("KDE", &["doctor", "--verbose"]);
    assert!(text.contains("Ctrl+Alt+Minus marks, bound in the settings of KDE"), "{text}");
    assert!(entry(desktop.home.path()).exists());

    let (code, text) = desktop.run("GNOME", &["setup", "--undo", "--yes"]);
    assert!(code == Some(0) && text.contains("done remove tipme's keys from KDE"), "{text}");
    assert_eq!((entry(desktop.home.path()).exists(), daemon.actions()), (false, Vec::new()));
}

#[test]
fn a_key_that_kde_gave_to_another_shortcut_is_not_ready() {
    let desktop = Desktop::start();
    let _daemon = Kglobalaccel::start(&desktop.bus.address, &[("_launch", 0)]);
    let (code, text) = desktop.run("KDE", &["setup", "--yes"]);
    let why = "Ready: no, because KDE gave the key of tipme to another shortcut, \
               or the user removed it; choose one in";
    assert!(code == Some(1) && text.contains(why), "{text}");
}

#[test]
fn a_gnome_key_works_while_the_settings_daemon_runs() {
    let desktop = Desktop::start();
    let (code, text) = desktop.run("ubuntu:GNOME", &["setup", "--yes"]);
    let why =
        "Ready: no, because the settings of GNOME have Ctrl+Alt+Minus, but its settings daemon";
    assert!(code == Some(1) && text.contains(why) && !text.contains("Now press the key"), "{text}");
    let name = "org.gnome.SettingsDaemon.MediaKeys";
    let builder =
        zbus::blocking::connection::Builder::address(desktop.bus.address.as_str()).unwrap();
    let _settings_daemon = builder.name(name).unwrap().build().unwrap();
    let (code, text) = desktop.run("ubuntu:GNOME", &["status"]);
    assert!(
        code == Some(0) && text.starts_with("Ready: yes, Ctrl+Alt+Minus marks on wayland-7 "),
        "{text}"
    );
    let (nowhere, lines) = (
        "; no notification server is running, so read the answer with: tipme diagnose",
        ["notifications none, so after a press run: tipme diagnose", "notifications gnome-shell "],
    );
    assert!(text.contains(nowhere) && text.contains(lines[0]), "{text}");
    let _server = FakeServer::start(&desktop.bus.address, "gnome-shell", &["actions"]);
    let (_, text) = desktop.run("ubuntu:GNOME", &["status"]);
    assert!(!text.contains(nowhere) && text.contains(lines[1]), "{text}");
    let (code, text) = desktop.run("KDE", &["setup", "--undo", "--yes"]);
    assert!(code == Some(0) && text.contains("done remove tipme's keys from GNOME"), "{text}");
}

#[test]
fn a_refusing_portal_leaves_one_thing_to_do() {
    let desktop = Desktop::start();
    let portal = Portal::start(&desktop.bus.address, 2);
    let (code, text) = desktop.run("cage", &["setup", "--yes"]);
    let why = "Ready: no, because the desktop binds no shortcut: the desktop refused; \
               bind Ctrl+Alt+Minus in the settings of the desktop to this command: ";
    let (_, command) = text.split_once(why).unwrap_or_else(|| panic!("{text}"));
    assert!(code == Some(1) && command.ends_with(" --press mark, and press it"), "{text}");
    assert!(!text.contains("tipme agent &") && !text.contains("see why"), "{text}");
    let command = ["agent", "--press", "mark"];
    assert_eq!(desktop.run("cage", &command).0, Some(0), "the key that was bound by hand");
    let (code, text) = desktop.run("cage", &["status"]);
    assert!(
        code == Some(0) && text.starts_with("Ready: yes, a key of the desktop marks on wayland-7 "),
        "{text}"
    );

    // The next login.
    desktop.bus.kill_agent();
    until("the agent is gone", || desktop.bus.agent().is_none());
    portal.wanted.lock().unwrap().clear();
    let server = FakeServer::start(&desktop.bus.address, "mako", &["actions"]);
    let (code, text) = desktop.run("cage", &["setup", "--yes"]);
    let ready = "Ready: yes, the key bound by hand marks on wayland-7 ";
    assert!(code == Some(0) && text.contains(ready), "{text}");
    assert_eq!(*portal.wanted.lock().unwrap(), [], "the portal is left alone");
    assert!(server.wait_for(0).summary.starts_with("Captured the last "), "no notice before it");
    let (code, text) = desktop.run("cage", &["setup", "--undo", "--yes"]);
    assert!(code == Some(0) && text.contains("done forget the key bound by hand"), "{text}");
    let (code, text) = desktop.run("cage", &["status"]);
    assert!(code == Some(1) && text.starts_with("Ready: no, because no agent serves "), "{text}");
}

#[test]
fn a_silent_or_absent_portal_gives_the_line_to_add() {
    let desktop = Desktop::start();
    let (code, text) = desktop.run("labwc:wlroots", &["setup", "--yes"]);
    let line = r#"labwc/rc.xml: <keybind key="C-A-minus"><action name="Execute" command=""#;
    assert!(code == Some(1) && text.contains("by hand add to ") && text.contains(line), "{text}");
    assert!(text.contains("Ready: no, because labwc has no key for tipme; add to "), "{text}");

    let _portal = SilentPortal::start(&desktop.bus.address);
    let begun = Instant::now();
    let (code, text) = desktop.run("cage", &["status"]);
    let why =
        "Ready: no, because no agent serves display wayland-7; start one there: tipme agent &";
    assert!(code == Some(1) && text.starts_with(why), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    let (code, text) = desktop.run("cage", &["setup", "--yes"]);
    let waits = "Ready: no, because the desktop has not answered the agent's request for a key \
                 yet; in a minute, run: tipme status";
    assert!(
        code == Some(1) && text.contains(waits) && !text.contains("bind Ctrl+Alt+Minus"),
        "{text}"
    );
}

#[test]
fn a_line_in_the_configuration_is_found_there() {
    let desktop = Desktop::start();
    let folder = desktop.home.path().join(".config/hypr");
    std::fs::create_dir_all(&folder).unwrap();
    let line = "bind = CTRL ALT, minus, exec, tipme agent --press mark\n";
    std::fs::write(folder.join("hyprland.conf"), format!("# {line}")).unwrap();
    let (code, text) = desktop.run("Hyprland", &["status"]);
    assert!(
        code == Some(1)
            && text.starts_with("Ready: no, because Hyprland has no key for tipme; add to "),
        "{text}"
    );
    std::fs::write(folder.join("hyprland.conf"), line).unwrap();
    let (code, text) = desktop.run("Hyprland", &["status"]);
    let ready = "Ready: yes, the key of tipme in Hyprland marks, bound in the configuration of \
                 Hyprland; the first press starts";
    assert!(code == Some(0) && text.starts_with(ready), "{text}");
}
