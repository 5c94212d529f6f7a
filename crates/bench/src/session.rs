// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private display with Xvfb, a window manager and a terminal, which exists as long as the value.

use crate::files::temporary_folder;
use crate::process::{ProcessGroup, missing, poll_for};
use crate::units::in_unit;
use crate::worker::{self, first_line};
use anyhow::{Context, Result, bail};
use rustix::fs::FlockOperation;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::window::{DamageWatch, Watcher};
use tipme_desktop::{DisplayTarget, authority_file};

/// Maximum time until a program of the session is ready; a first font cache takes fifteen seconds,
/// and longer on an emulated machine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Options of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionOptions {
    /// CPU to which the X server, the window manager and the terminal are pinned.
    pub cpu: Option<usize>,
    pub manager: SessionWindowManager,
    /// Runs each of these programs in a systemd unit of its own.
    pub units: bool,
}

impl SessionOptions {
    /// Puts a program of the session into a unit of its own if requested.
    pub(crate) fn place(self, command: Command) -> Command {
        if self.units { in_unit(&command) } else { command }
    }
}

/// Window manager of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SessionWindowManager {
    #[default]
    Openbox,
    /// With its compositor, and with a session bus of its own, which it requires.
    Xfwm4,
}

impl SessionWindowManager {
    fn words(self) -> &'static [&'static str] {
        match self {
            SessionWindowManager::Openbox => &["openbox", "--sm-disable"],
            SessionWindowManager::Xfwm4 => &["dbus-run-session", "--", "xfwm4"],
        }
    }
}

/// A private display. Dropping it ends its programs and removes its files.
pub struct PrivateSession {
    options: SessionOptions,
    display: u32,
    focused: Option<FocusedProgram>,
    _manager: ProcessGroup,
    _server: ProcessGroup,
    folder: TempDir,
}

/// A program with the keyboard focus: usually a terminal emulator.
struct FocusedProgram {
    process: ProcessGroup,
    window: u32,
}

impl PrivateSession {
    /// Starts an X server on a free display number, and a window manager on it.
    ///
    /// Returns when both respond to protocol requests; fails if something is missing, or after a
    /// minute.
    pub fn start(options: SessionOptions) -> Result<PrivateSession> {
        let (manager, arguments) =
            options.manager.words().split_first().context("a window manager has a name")?;
        require(&["Xvfb", manager, "xterm"])?;
        let folder = temporary_folder("tipme-session-")?;
        write_authority(&folder.path().join("authority"))?;
        let (server, display) = start_server(folder.path(), options)?;
        let target = target(folder.path(), display);
        let watcher = Watcher::open(&target)?;
        let mut command = Command::new(manager);
        command.args(arguments);
        let mut command = options.place(command);
        clean(&mut command, folder.path(), display);
        let manager = ProcessGroup::start("the window manager", command, options.cpu)?;
        watcher.wait_for_manager(START_TIMEOUT)?;
        Ok(PrivateSession {
            options,
            display,
            focused: None,
            _manager: manager,
            _server: server,
            folder,
        })
    }

    /// The display, with its authority file.
    pub fn target(&self) -> DisplayTarget {
        target(self.folder.path(), self.display)
    }

    /// As in `:99`.
    pub fn display_name(&self) -> String {
        format!(":{}", self.display)
    }

    /// CPU to which its programs are pinned, if any.
    pub fn cpu(&self) -> Option<usize> {
        self.options.cpu
    }

    /// Folder that is removed with the session.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the environment variables that locate the display, and a home in the session's folder.
    pub fn prepare(&self, command: &mut Command) {
        clean(command, self.folder.path(), self.display);
    }

    /// Sets only the environment variables that locate the display.
    pub fn show(&self, command: &mut Command) {
        command
            .env("DISPLAY", self.display_name())
            .env("XAUTHORITY", self.folder.path().join("authority"));
    }

    /// Opens a terminal that runs `program`, and waits until it is visible and focused.
    ///
    /// `prefix` is put before the terminal's own command, for instance to enter a name space.
    pub fn open_terminal(&mut self, prefix: &[OsString], program: &[OsString]) -> Result<()> {
        let xterm =
            ["xterm", "-geometry", "100x30+20+20", "+sb", "-xrm", "XTerm*cursorBlink: false", "-e"];
        let words: Vec<OsString> = prefix
            .iter()
            .cloned()
            .chain(xterm.map(OsString::from))
            .chain(program.iter().cloned())
            .collect();
        let command = worker::command(&words).context("no terminal to start")?;
        let mut command = self.options.place(command);
        self.prepare(&mut command);
        self.open_program("the terminal", command)
    }

    /// Opens a program with a window in place of the terminal, and waits until it is visible and
    /// focused.
    pub fn open_program(&mut self, name: &str, command: Command) -> Result<()> {
        let watcher = Watcher::open(&self.target())?;
        let mut process = ProcessGroup::start(name, command, self.options.cpu)?;
        let window = watcher.wait_for_focus(process.pid(), START_TIMEOUT);
        process.expect_alive()?;
        self.focused = Some(FocusedProgram { window: window?, process });
        Ok(())
    }

    /// Closes the terminal, or the program in its place.
    pub(crate) fn close_terminal(&mut self) {
        self.focused = None;
    }

    /// Process of the terminal emulator, or of the program that stands in for it, if there is one.
    pub fn terminal_pid(&self) -> Option<u32> {
        self.focused.as_ref().map(|focused| focused.process.pid())
    }

    /// Adds a process to the process set of the terminal, or of the program that stands in for it,
    /// by a property of that program's window.
    pub(crate) fn add_to_set(&self, pid: u32) -> Result<()> {
        let focused = self.focused.as_ref().context("no terminal is open")?;
        Ok(Watcher::open(&self.target())?.add_to_set(focused.process.pid(), focused.window, pid)?)
    }

    /// Starts watching the drawings of the terminal, or of the program in its place.
    pub(crate) fn watch_terminal(&self) -> Result<DamageWatch> {
        let focused = self.focused.as_ref().context("no terminal is open")?;
        Ok(DamageWatch::open(&self.target(), focused.window)?)
    }
}

/// Fails with the names of missing programs and the command to install them.
pub fn require(programs: &[&str]) -> Result<()> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|name| package(name)).collect();
    bail!(
        "not installed: {}; on Debian and Ubuntu: apt-get install {}",
        missing.join(", "),
        packages.join(" ")
    )
}

/// Returns the Debian package of a program.
fn package(program: &str) -> &str {
    match program {
        "Xvfb" => "xvfb",
        "dbus-run-session" => "dbus-daemon",
        "mke2fs" => "e2fsprogs",
        "mount" => "mount",
        "flock" | "taskset" | "unshare" | "nsenter" | "setpriv" | "blockdev" | "findmnt" => {
            "util-linux"
        }
        "ip" => "iproute2",
        "dbus-send" => "dbus-bin",
        "foot" => "foot fonts-dejavu-core",
        "xargs" => "findutils",
        "nice" | "sleep" | "date" | "chrt" | "dd" | "sync" => "coreutils",
        other => other,
    }
}

fn target(folder: &Path, display: u32) -> DisplayTarget {
    DisplayTarget {
        authority: Some(folder.join("authority")),
        timeout: Duration::from_secs(10),
        ..DisplayTarget::new(display)
    }
}

/// Writes a random cookie for this session's programs.
fn write_authority(path: &Path) -> Result<()> {
    let mut cookie = [0; 16];
    rustix::rand::getrandom(&mut cookie, rustix::rand::GetRandomFlags::empty())
        .context("no random numbers")?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(&authority_file("", &cookie))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn start_server(folder: &Path, options: SessionOptions) -> Result<(ProcessGroup, u32)> {
    let log = folder.join("server.log");
    let errors = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = options.place(Command::new("Xvfb"));
    let words = "-displayfd 1 -nolisten tcp -noreset -screen 0 1024x768x24 -auth";
    command.args(words.split(' ')).arg(folder.join("authority"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    let _alone = wait_for_others();
    let mut server = ProcessGroup::start("the X server", command, options.cpu)?;
    let output = server.child().stdout.take().context("the X server has no output")?;
    let line = first_line(output, START_TIMEOUT);
    let display = line.and_then(|line| Ok(line.trim().parse()?)).with_context(|| {
        let errors = std::fs::read_to_string(&log).unwrap_or_default();
        format!("the X server did not start: {}", errors.trim())
    })?;
    Ok((server, display))
}

/// Lets only one server at a time choose its number: two that choose at once may both take the same
/// one, since servers that choose their number themselves use no lock files. Does not wait for a
/// process that holds the lock for longer.
fn wait_for_others() -> Option<File> {
    let folder = File::open(std::env::temp_dir()).ok()?;
    let is_locked = poll_for(START_TIMEOUT, POLL_INTERVAL, || {
        Ok(rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok())
    });
    is_locked.ok()?.then_some(folder)
}

/// Sets the display and a private home for a program.
fn clean(command: &mut Command, folder: &Path, display: u32) {
    let authority: PathBuf = folder.join("authority");
    own_home(command, folder);
    command.env("DISPLAY", format!(":{display}")).env("XAUTHORITY", authority);
}

/// Sets a private home for a program, and neither display nor session, so that no user settings
/// have an effect.
pub(crate) fn own_home(command: &mut Command, folder: &Path) {
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder).env("XDG_CACHE_HOME", folder);
    command.env("HISTFILE", "/dev/null").env("LESSHISTFILE", "-").env("SHELL", "/bin/sh");
    let removed = "LESS LESSOPEN XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS WAYLAND_DISPLAY ENV \
                   DISPLAY XAUTHORITY";
    for variable in removed.split(' ') {
        command.env_remove(variable);
    }
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
}
