// SPDX-License-Identifier: MIT OR Apache-2.0
//! A headless compositor with a terminal and a virtual keyboard: unmodified programs of a user.

use crate::Running;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_desktop::inject::{Pace, Typist};

/// User of the compositor and its clients, without an account.
pub const USER: u32 = 4242;

/// An account on every Debian system: an X server admits only users that it can name.
pub const ACCOUNT: u32 = 9;

/// Name of the display, unique in this folder.
pub const DISPLAY: &str = "wayland-1";

const CONFIGURATION: &str = "output HEADLESS-1 resolution 800x600\nxwayland disable\n";

/// Same with an X server, which starts with its first client and writes its display name to a file.
const CONFIGURATION_WITH_X: &str = "output HEADLESS-1 resolution 800x600\nxwayland enable\n\
                                    exec sh -c 'echo $DISPLAY > x && mv x x-display'\n";

/// Fast typing in which the keys of a word do not overlap.
const PACE: Pace = Pace { words_per_minute: 500.0, variation: 0.0, seed: 1 };

pub struct Compositor {
    dir: TempDir,
    user: u32,
    pub sway: Running,
}

impl Compositor {
    pub fn start() -> Compositor {
        Compositor::start_as(USER, &[])
    }

    /// Starts a compositor of this user, with additional environment variables.
    pub fn start_as(user: u32, more: &[(&str, &str)]) -> Compositor {
        Compositor::configured(user, CONFIGURATION, more)
    }

    /// Starts a compositor with an X server for X11 programs.
    pub fn start_with_x() -> Compositor {
        // A user other than root can create a display only if root owns the folder of the sockets.
        std::fs::create_dir_all("/tmp/.X11-unix").unwrap();
        std::fs::set_permissions("/tmp/.X11-unix", Permissions::from_mode(0o1777)).unwrap();
        Compositor::configured(ACCOUNT, CONFIGURATION_WITH_X, &[])
    }

    fn configured(user: u32, configuration: &str, more: &[(&str, &str)]) -> Compositor {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        std::fs::write(dir.path().join("configuration"), configuration).unwrap();
        chown(dir.path(), Some(user), Some(user)).unwrap();
        chown(dir.path().join("configuration"), Some(user), Some(user)).unwrap();
        let mut command = user_program(dir.path(), user, "sway");
        command.envs([
            ("WLR_BACKENDS", "headless"),
            ("WLR_LIBINPUT_NO_DEVICES", "1"),
            ("WLR_RENDERER", "pixman"),
        ]);
        command.envs(more.iter().copied()).arg("-c").arg(dir.path().join("configuration"));
        let sway = Running(command.spawn().expect("sway is installed: make test-deps"));
        let compositor = Compositor { dir, user, sway };
        until("the compositor's sockets", || {
            compositor.socket().exists() && compositor.control().is_some()
        });
        compositor
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(DISPLAY)
    }

    /// Returns the socket of sway's own protocol.
    pub fn control(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(self.dir.path()).unwrap().flatten().map(|file| file.path());
        files.into_iter().find(|path| path.to_string_lossy().contains("sway-ipc."))
    }

    /// Creates a virtual keyboard on the compositor.
    pub fn keyboard(&self) -> Typist {
        Typist::on_compositor(&self.socket(), PACE).unwrap()
    }

    /// Returns a program of the user, with the compositor as its display.
    pub fn command(&self, name: &str) -> Command {
        let mut command = user_program(self.dir.path(), self.user, name);
        command.env("WAYLAND_DISPLAY", DISPLAY);
        command
    }

    /// Opens a focused terminal with this title that shows typed text.
    pub fn terminal(&self, title: &str) -> Running {
        self.terminal_with(title, &["cat"])
    }

    /// Same with another program in it.
    pub fn terminal_with(&self, title: &str, program: &[&str]) -> Running {
        let file = self.dir.path().join("terminal");
        std::fs::write(&file, format!("title={title}\nlocked-title=yes\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let terminal = self.command("foot").arg("-c").arg(&file).args(program).spawn();
        let terminal = Running(terminal.expect("foot is installed: make test-deps"));
        self.wait_for_window(&terminal);
        terminal
    }

    /// Waits until a program has a window.
    pub fn wait_for_window(&self, program: &Running) {
        let listed = format!("\"pid\": {},", program.0.id());
        until("a window", || self.tree().contains(&listed));
    }

    /// Opens a focused X11 terminal that shows typed text; also returns the X server's process.
    pub fn x_terminal(&self) -> (Running, u32) {
        let name = self.dir.path().join("x-display");
        until("the X display's name", || name.exists());
        let display = std::fs::read_to_string(name).unwrap();
        let terminal =
            self.command("xterm").env("DISPLAY", display.trim()).args(["-e", "cat"]).spawn();
        let terminal = Running(terminal.expect("xterm is installed: make test-deps"));
        until("a window", || self.tree().contains("\"class\": \"XTerm\""));
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut own = processes
            .filter(|process| process.metadata().is_ok_and(|process| process.uid() == self.user));
        let server = own.find(|process| {
            std::fs::read_to_string(process.path().join("comm"))
                .is_ok_and(|name| name == "Xwayland\n")
        });
        let server = server.expect("an X server of the user's").file_name();
        (terminal, server.to_str().unwrap().parse().unwrap())
    }

    /// Returns the user's only folder.
    pub fn home(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the compositor's window tree.
    pub fn tree(&self) -> String {
        let mut command = self.command("swaymsg");
        command.arg("-s").arg(self.control().unwrap()).args(["-t", "get_tree", "-r"]);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }
}

fn user_program(dir: &Path, user: u32, name: &str) -> Command {
    let mut command = Command::new(name);
    command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")]);
    command.env("HOME", dir).env("XDG_RUNTIME_DIR", dir).current_dir(dir).uid(user).gid(user);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}
