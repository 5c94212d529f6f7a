// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session bus with a real notification daemon that logs its notifications.

use crate::session_agent::program;
use crate::{Running, tipme};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_bench::until;

/// A bus without activation, for all users with an account.
const BUS: &str = r#"<busconfig><type>session</type><listen>unix:dir=/tmp</listen><policy context="default">
<allow user="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#;

/// Environment variable with the address of the session bus.
pub const ADDRESS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// A session bus of the test.
pub struct Bus {
    pub address: String,
    _daemon: Running,
    folder: TempDir,
}

impl Bus {
    pub fn start() -> Bus {
        let folder = TempDir::new().unwrap();
        let settings = folder.path().join("bus.conf");
        std::fs::write(&settings, BUS).unwrap();
        let mut command = Command::new("dbus-daemon");
        command
            .args(["--nofork", "--nopidfile", "--print-address=1", "--config-file"])
            .arg(&settings);
        let (daemon, address) = Running::start_saying(command.stderr(Stdio::null()));
        assert!(!address.is_empty(), "the bus did not start");
        Bus { address: address.trim().to_owned(), _daemon: daemon, folder }
    }

    /// Starts a notification daemon that logs its notifications to a file, and waits until it shows
    /// one.
    pub fn start_notifications(&self, session: &PrivateSession) -> (Running, PathBuf) {
        let (settings, shown) =
            (self.folder.path().join("dunstrc"), self.folder.path().join("shown"));
        let keep = r#"echo "$DUNST_ID $(date +%s%3N) $DUNST_SUMMARY" >> "${0%/*}/ids"
            printf '%s\n%s\n' "$DUNST_SUMMARY" "$DUNST_BODY" >> "${0%/*}/shown""#;
        program(self.folder.path(), "keep", keep);
        // Presses the button named in a file when the buttons are shown.
        program(
            self.folder.path(),
            "menu",
            r#"tee -a "${0%/*}/menus" | grep -F -m 1 "$(cat "${0%/*}/button")""#,
        );
        let [keep, menu] =
            ["keep", "menu"].map(|name| self.folder.path().join(name).display().to_string());
        let rules = format!(
            "[global]\nmarkup = full\ndmenu = {menu}\nalways_run_script = true\n\
             [all]\nsummary = \"*\"\nscript = {keep}\n"
        );
        std::fs::write(&settings, rules).unwrap();
        let mut command = Command::new("dunst");
        session.prepare(command.arg("-conf").arg(&settings));
        let daemon =
            Running(command.env(ADDRESS, &self.address).spawn().expect("dunst is installed"));
        let mut greet = Command::new("notify-send");
        greet.arg("ready").env(ADDRESS, &self.address).stderr(Stdio::null());
        until("the daemon takes a notification", || greet.status().unwrap().success());
        wait_for(&shown, "ready");
        (daemon, shown)
    }
}

impl Bus {
    /// Starts the other daemon, GNOME's, and a monitor that logs its messages to a file.
    pub fn start_other_notifications(&self, session: &PrivateSession) -> ([Running; 2], PathBuf) {
        let heard = self.folder.path().join("heard");
        let mut ear = Command::new("dbus-monitor");
        ear.arg("member=Notify")
            .env(ADDRESS, &self.address)
            .stdout(std::fs::File::create(&heard).unwrap());
        let mut daemon = Command::new("/usr/lib/notification-daemon/notification-daemon");
        session.prepare(daemon.stderr(Stdio::null()));
        daemon.env(ADDRESS, &self.address);
        let running =
            [ear, daemon].map(|mut command| Running(command.spawn().expect("both are installed")));
        let mut greet = Command::new("notify-send");
        greet.arg("hello").env(ADDRESS, &self.address).stderr(Stdio::null());
        until("the daemon takes a notification that is heard", || {
            greet.status().unwrap().success()
                && std::fs::read_to_string(&heard).unwrap().contains("hello")
        });
        (running, heard)
    }

    /// Presses a button of the shown notification, with the daemon's own tool.
    pub fn push(&self, label: &str) {
        std::fs::write(self.folder.path().join("button"), label).unwrap();
        self.control("context");
    }

    /// Closes all notifications.
    pub fn close_all(&self) {
        self.control("close-all");
    }

    fn control(&self, verb: &str) {
        let mut command = Command::new("dunstctl");
        assert!(command.arg(verb).env(ADDRESS, &self.address).status().unwrap().success());
    }

    /// Returns the process of the agent on this bus.
    pub fn agent(&self) -> Option<u32> {
        let builder = zbus::blocking::connection::Builder::address(self.address.as_str());
        let connection = builder.unwrap().build().unwrap();
        let daemon = zbus::blocking::fdo::DBusProxy::new(&connection).unwrap();
        daemon.get_connection_unix_process_id("org.tipme.Agent".try_into().unwrap()).ok()
    }

    /// Kills the agent on this bus, if a failed test has left one.
    pub fn kill_agent(&self) {
        if let Some(pid) = self.agent().and_then(|pid| Pid::from_raw(pid as i32)) {
            kill_process(pid, Signal::KILL).ok();
        }
    }

    /// Returns the program in the session of a desktop; GNOME's settings are then in a file of the
    /// home folder.
    pub fn program_of(&self, desktop: &str, home: &Path) -> Command {
        let mut command = tipme();
        for unset in
            ["SUDO_UID", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"]
        {
            command.env_remove(unset);
        }
        command.env_remove("DISPLAY").env_remove("SWAYSOCK").env(ADDRESS, &self.address);
        command.env("HOME", home).env("GSETTINGS_BACKEND", "keyfile");
        command.env("XDG_CURRENT_DESKTOP", desktop).env("WAYLAND_DISPLAY", "wayland-7");
        command
    }

    /// Returns id, wall-clock time in milliseconds and summary of all notifications.
    pub fn ids(&self) -> Vec<(u32, u128, String)> {
        let text = std::fs::read_to_string(self.folder.path().join("ids")).unwrap_or_default();
        let rows = text.lines().filter_map(|line| {
            let (id, rest) = line.split_once(' ')?;
            let (at_ms, summary) = rest.split_once(' ')?;
            Some((id.parse().ok()?, at_ms.parse().ok()?, summary.to_owned()))
        });
        rows.collect()
    }
}

/// Waits until a file contains these words; returns its text.
pub fn wait_for(file: &Path, words: &str) -> String {
    let mut text = String::new();
    until(&format!("{} has {words:?}", file.display()), || {
        text = std::fs::read_to_string(file).unwrap_or_default();
        text.contains(words)
    });
    text
}
