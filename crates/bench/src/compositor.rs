// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wayland compositor to type at: a private one without a screen, or one that already runs.
//!
//! Compositor and terminal are unmodified. A private compositor runs without privileges, in a user
//! name space of its own: sway does not start as root and need not. On a running compositor, all
//! programs to type at run as its user.

use crate::files::temporary_folder;
use crate::process::{ProcessGroup, poll_for};
use crate::screen::TerminalScreen;
use crate::seen::DrawingSource;
use crate::session::{START_TIMEOUT, SessionOptions, own_home, require};
use crate::worker;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::ops::RangeInclusive;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_desktop::DisplayTarget;
use tipme_desktop::compositor::{self, CompositorOwner, FrameWatch};
use tipme_desktop::hotkeys::Chord;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::server::find_compositors;

/// Interval between checks for a program to be ready.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Configuration with a virtual screen and nothing but the terminal on it.
const CONFIGURATION: &str = "output HEADLESS-1 resolution 800x600\nxwayland disable\n";

/// Environment in which sway uses no screen, graphics card or input devices.
const HEADLESS: [(&str, &str); 3] =
    [("WLR_BACKENDS", "headless"), ("WLR_LIBINPUT_NO_DEVICES", "1"), ("WLR_RENDERER", "pixman")];

/// Display numbers that sway tries in sequence.
const NUMBERS: RangeInclusive<u32> = 1..=32;

/// Key pressed until the terminal has the focus; it does nothing in other windows.
const HARMLESS: &str = "left";

/// Interval between these presses.
const PRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Script on the terminal: waits for a key, reports it by the file 1, drops further input until a
/// pause, and executes the program that follows.
const AWAIT_KEY: &str = r#"file=$1
shift
IFS= read -rsn1
while IFS= read -rsn1 -t 0.3; do :; done
: >"$file"
exec "$@"
"#;

/// A private compositor, which ends with the value, or a running one, which is left as it is.
pub struct Compositor {
    socket: PathBuf,
    owner: CompositorOwner,
    options: SessionOptions,
    terminal: Option<ProcessGroup>,
    _server: Option<ProcessGroup>,
    folder: TempDir,
}

impl Compositor {
    /// Starts a private compositor; fails if something is missing, or after a minute.
    pub fn start(options: SessionOptions) -> Result<Compositor> {
        require(&["sway", "foot", "bash", "unshare"])?;
        let folder = folder()?;
        let (server, socket) = start_server(folder.path(), options)?;
        let owner = compositor::owner(&socket)?;
        Ok(Compositor { socket, owner, options, terminal: None, _server: Some(server), folder })
    }

    /// Connects to a running compositor, by the path or the name of its socket, such as
    /// `wayland-0`. Its terminal runs as the user of the compositor.
    pub fn running(name: &str, options: SessionOptions) -> Result<Compositor> {
        require(&["foot", "bash", "setpriv"])?;
        let socket = compositor::socket(name)?;
        let (owner, folder) = (compositor::owner(&socket)?, folder()?);
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .context("cannot make the folder readable")?;
        let new = Compositor { socket, owner, options, terminal: None, _server: None, folder };
        new.give(&new.home())?;
        Ok(new)
    }

    /// Process that listens at its socket.
    pub fn pid(&self) -> u32 {
        self.owner.pid
    }

    /// Opens a terminal that runs `program`, and waits until keys of `typist` arrive there. The
    /// terminal ends with the returned value.
    ///
    /// `prefix` is put before the terminal's own command, for instance to enter a name space.
    pub fn open(
        &self,
        typist: &mut Typist,
        prefix: &[OsString],
        program: &[OsString],
    ) -> Result<ProcessGroup> {
        let arrived = self.home().join("key-arrived");
        // Left by an earlier terminal.
        let _ = std::fs::remove_file(&arrived);
        let mut terminal = ProcessGroup::start(
            "the terminal",
            self.terminal(prefix, program, &arrived)?,
            self.options.cpu,
        )?;
        self.wait_for_keys(&mut terminal, typist, &arrived)?;
        Ok(terminal)
    }

    fn terminal(
        &self,
        prefix: &[OsString],
        program: &[OsString],
        arrived: &Path,
    ) -> Result<Command> {
        let script = self.folder.path().join("await-key");
        std::fs::write(&script, AWAIT_KEY).context("cannot write the script of the terminal")?;
        let foot = ["foot", "-c", "/dev/null", "bash", "--norc", "--noprofile"].map(OsString::from);
        let words = prefix
            .iter()
            .cloned()
            .chain(self.as_owner())
            .chain(foot)
            .chain([script.into(), arrived.into()]);
        let words: Vec<OsString> = words.chain(program.iter().cloned()).collect();
        let command = worker::command(&words).context("no terminal to start")?;
        let mut command = self.options.place(command);
        own_home(&mut command, &self.home());
        command.env("XDG_RUNTIME_DIR", self.home());
        self.show(&mut command);
        Ok(command)
    }

    /// Folder of the compositor's user; this process only checks that files exist in it.
    fn home(&self) -> PathBuf {
        home(self.folder.path())
    }

    /// Prefix of a command that runs as the user of the compositor.
    pub(crate) fn as_owner(&self) -> Vec<OsString> {
        let (user_word, group_word) = (self.owner.user.to_string(), self.owner.group.to_string());
        let drop = ["setpriv", "--reuid", &user_word, "--regid", &group_word, "--clear-groups"];
        let words = drop.into_iter().chain(["--inh-caps=-all", "--pdeathsig", "KILL", "--"]);
        if self.owner.user == geteuid().as_raw() {
            Vec::new()
        } else {
            words.map(OsString::from).collect()
        }
    }

    /// Gives a folder that is still private, with its contents, to the user of the compositor.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        let failed = || format!("cannot give {} to the user", path.display());
        if path.is_dir() {
            for entry in std::fs::read_dir(path).with_context(failed)? {
                self.give(&entry.with_context(failed)?.path())?;
            }
        }
        chown(path, Some(self.owner.user), Some(self.owner.group)).with_context(failed)
    }

    /// Presses a key until the program on the terminal has read it: then the terminal is open and
    /// focused.
    fn wait_for_keys(
        &self,
        terminal: &mut ProcessGroup,
        typist: &mut Typist,
        arrived: &Path,
    ) -> Result<()> {
        let key: Chord = HARMLESS.parse()?;
        let mut press_at = Instant::now() + PRESS_INTERVAL;
        let arrives = poll_for(START_TIMEOUT, POLL_INTERVAL, || {
            if arrived.exists() {
                return Ok(true);
            }
            terminal.expect_alive()?;
            if Instant::now() >= press_at {
                typist.chord(&key)?;
                press_at = Instant::now() + PRESS_INTERVAL;
            }
            Ok(false)
        })?;
        ensure!(
            arrives,
            "no key arrives at the terminal on {}; check that no other window has the focus",
            self.socket.display()
        );
        Ok(())
    }
}

impl TerminalScreen for Compositor {
    fn name(&self) -> String {
        self.socket.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn address(&self) -> String {
        self.socket.to_string_lossy().into_owned()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn show(&self, command: &mut Command) {
        command.env("WAYLAND_DISPLAY", &self.socket).env_remove("DISPLAY");
    }

    fn typist(&self, pace: Pace) -> Result<Typist> {
        Ok(Typist::on_compositor(&self.socket, pace)?)
    }

    fn open_terminal(
        &mut self,
        typist: &mut Typist,
        prefix: &[OsString],
        program: &[OsString],
    ) -> Result<()> {
        self.terminal = Some(self.open(typist, prefix, program)?);
        Ok(())
    }

    fn close_terminal(&mut self) {
        self.terminal = None;
    }

    fn x11(&self) -> Option<DisplayTarget> {
        None
    }

    fn terminal_pid(&self) -> Option<u32> {
        self.terminal.as_ref().map(ProcessGroup::pid)
    }

    fn server_pid(&self) -> Result<u32> {
        Ok(self.owner.pid)
    }

    fn watch(&self) -> Result<Option<Box<dyn DrawingSource>>> {
        let watch = FrameWatch::open(&self.socket)?;
        Ok(watch.map(|watch| Box::new(watch) as Box<dyn DrawingSource>))
    }
}

/// Explains why nothing can be timed on a compositor without display events.
pub(crate) fn unobservable(name: &str) -> String {
    format!(
        "cannot see when {name} shows something: it has no zwlr_screencopy_v1, as sway has; try a private \
         compositor: --display wayland"
    )
}

/// Makes a folder with a home in it, readable by its owner only.
fn folder() -> Result<TempDir> {
    let folder = temporary_folder("tipme-session-")?;
    std::fs::create_dir(home(folder.path())).context("cannot make a folder")?;
    std::fs::set_permissions(home(folder.path()), Permissions::from_mode(0o700))
        .context("cannot make a folder private")?;
    Ok(folder)
}

fn home(folder: &Path) -> PathBuf {
    folder.join("home")
}

/// Starts sway, and waits until it accepts connections; returns its socket.
fn start_server(folder: &Path, options: SessionOptions) -> Result<(ProcessGroup, PathBuf)> {
    let (configuration, log) = (folder.join("configuration"), folder.join("server.log"));
    std::fs::write(&configuration, CONFIGURATION)
        .context("cannot write the compositor's configuration")?;
    let errors = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = options.place(Command::new("unshare"));
    command.args(["--user", "sway", "-c"]).arg(&configuration);
    own_home(&mut command, &home(folder));
    command.envs(HEADLESS).env("XDG_RUNTIME_DIR", home(folder)).stderr(errors);
    let socket = leave_one(&home(folder), &find_compositors())?;
    let mut server = ProcessGroup::start("the compositor", command, options.cpu)?;
    wait_for(&mut server, &socket).with_context(|| {
        let errors = std::fs::read_to_string(&log).unwrap_or_default();
        format!("the compositor did not start: {}", errors.trim())
    })?;
    Ok((server, socket))
}

/// Takes the lock files of lower numbers, so that sway chooses a number that no other compositor of
/// this machine has: the recorder distinguishes them by it. Returns the path of its future socket.
fn leave_one(runtime: &Path, others: &[String]) -> Result<PathBuf> {
    for name in NUMBERS.map(|number| format!("wayland-{number}")) {
        if !others.iter().any(|path| Path::new(path).ends_with(&name)) {
            return Ok(runtime.join(name));
        }
        std::fs::create_dir(runtime.join(format!("{name}.lock")))
            .context("cannot take the lock file of a display")?;
    }
    bail!("too many compositors run on this machine")
}

/// Waits until a process listens at the compositor's socket.
fn wait_for(server: &mut ProcessGroup, socket: &Path) -> Result<()> {
    let listens = poll_for(START_TIMEOUT, POLL_INTERVAL, || {
        server.expect_alive()?;
        Ok(compositor::owner(socket).is_ok())
    })?;
    ensure!(listens, "nothing listens at {} after {START_TIMEOUT:?}", socket.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_compositor_has_a_number_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let others =
            ["/run/user/1/wayland-1", "/tmp/wayland-2", "/tmp/wayland-33"].map(str::to_owned);
        let socket = leave_one(folder.path(), &others).expect("one is free");
        assert_eq!(socket, folder.path().join("wayland-3"));
        assert!(
            ["wayland-1.lock", "wayland-2.lock"]
                .iter()
                .all(|name| folder.path().join(name).is_dir())
        );
        let all = NUMBERS.map(|number| format!("/tmp/wayland-{number}")).collect::<Vec<_>>();
        assert!(leave_one(&folder.path().join("none"), &all).is_err());
    }
}
