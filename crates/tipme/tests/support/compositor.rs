// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compositor without a screen, a terminal in it, and a virtual keyboard: unmodified programs of a user's.
#![allow(dead_code, reason = "each test target uses a part")]

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_desktop::inject::{Pace, Typist};

/// Who the compositor and its clients are; it has no account.
pub const USER: u32 = 4242;

/// The display's name: nobody else has one in this folder.
pub const DISPLAY: &str = "wayland-1";

/// Only a test that fails waits for so long.
const TIMEOUT: Duration = Duration::from_secs(60);

const CONFIGURATION: &str = "output HEADLESS-1 resolution 800x600\nxwayland disable\n";

/// Quick, and so that the keys of a word do not overlap.
const PACE: Pace = Pace { words_per_minute: 500.0, variation: 0.0, seed: 1 };

/// A program that is killed with the value.
pub struct Program(pub Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub struct Compositor {
    dir: TempDir,
    pub sway: Program,
}

impl Compositor {
    pub fn start() -> Compositor {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        std::fs::write(dir.path().join("configuration"), CONFIGURATION).unwrap();
        chown(dir.path(), Some(USER), Some(USER)).unwrap();
        chown(dir.path().join("configuration"), Some(USER), Some(USER)).unwrap();
        let mut command = user_program(dir.path(), "sway");
        command.envs([("WLR_BACKENDS", "headless"), ("WLR_LIBINPUT_NO_DEVICES", "1"), ("WLR_RENDERER", "pixman")]);
        command.arg("-c").arg(dir.path().join("configuration"));
        let sway = Program(command.spawn().expect("sway is installed: make test-deps"));
        let compositor = Compositor { dir, sway };
        wait_for("the compositor's sockets", || compositor.socket().exists() && compositor.control().is_some());
        compositor
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(DISPLAY)
    }

    fn control(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(self.dir.path()).unwrap().flatten().map(|file| file.path());
        files.into_iter().find(|path| path.to_string_lossy().contains("sway-ipc."))
    }

    /// A keyboard that exists only to the compositor.
    pub fn keyboard(&self) -> Typist {
        Typist::on_compositor(&self.socket(), PACE).unwrap()
    }

    /// A program of the user's, with the compositor as its display.
    pub fn command(&self, name: &str) -> Command {
        let mut command = user_program(self.dir.path(), name);
        command.env("WAYLAND_DISPLAY", DISPLAY);
        command
    }

    /// A terminal with this title that shows what is typed, and has the focus.
    pub fn terminal(&self, title: &str) -> Program {
        let file = self.dir.path().join("terminal");
        std::fs::write(&file, format!("title={title}\nlocked-title=yes\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let terminal = self.command("foot").arg("-c").arg(&file).arg("cat").spawn();
        let terminal = Program(terminal.expect("foot is installed: make test-deps"));
        let listed = format!("\"pid\": {},", terminal.0.id());
        wait_for("the terminal's window", || self.tree().contains(&listed));
        terminal
    }

    /// What the compositor says of its windows.
    fn tree(&self) -> String {
        let socket = self.control().unwrap();
        let output = self.command("swaymsg").arg("-s").arg(socket).args(["-t", "get_tree", "-r"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn user_program(dir: &Path, name: &str) -> Command {
    let mut command = Command::new(name);
    command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")]);
    command.env("HOME", dir).env("XDG_RUNTIME_DIR", dir).current_dir(dir).uid(USER).gid(USER);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < TIMEOUT, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}
