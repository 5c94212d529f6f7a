// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application that is measured: started for each repeat, in a home of its own, and not changed.

use super::counters::{Counters, Usage};
use super::stage::Stage;
use crate::interrupt::Interrupt;
use crate::process::{Process, is_group_member};
use crate::script::{HOME, Script};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::window::Watcher;
use tipme_desktop::{Error, clock};
use tipme_record::Nanos;

/// How long a wait for a window goes on without a look whether the application is still there.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Settings under which nothing draws by itself.
const GTK_SETTINGS: &str = "[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n";

/// An application that runs. Dropping it ends it and removes its home.
pub(super) struct Application {
    process: Process,
    counters: Counters,
    log: PathBuf,
    /// When it was started.
    pub(super) begun: Nanos,
    /// Ends the thread that started it, which may not end earlier: the application would end with it.
    _keeper: Sender<()>,
    _home: TempDir,
}

impl Application {
    /// Starts it; it has no window yet.
    pub(super) fn start(words: &[String], script: &Script, stage: &Stage) -> Result<Application> {
        let home = tempfile::Builder::new().prefix("tipme-home-").tempdir().context("cannot make a home folder")?;
        script.make_files(home.path())?;
        let log = home.path().join(".errors");
        let mut command = command(words, home.path())?;
        stage.prepare(&mut command);
        settle_in(&mut command, home.path())?;
        command.stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?);
        let (give, take) = channel();
        let (keeper, released) = channel::<()>();
        std::thread::spawn(move || {
            let counters = Counters::open();
            let begun = clock::now();
            let started = Process::start("the application", command, None);
            if give.send((started, counters, begun)).is_ok() {
                // It returns when the application is dropped.
                let _ = released.recv();
            }
        });
        let (started, counters, begun) = take.recv().context("the application could not be started")?;
        Ok(Application { process: started?, counters, log, begun, _keeper: keeper, _home: home })
    }

    /// Waits until a window of its own has the focus; when that was.
    pub(super) fn wait_for_window(
        &mut self,
        watcher: &Watcher,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Nanos> {
        let group = self.process.pid();
        let belongs = move |pid: u32| is_group_member(pid, group);
        let deadline = self.begun.after(Nanos(timeout.as_nanos() as u64));
        loop {
            interrupt.check()?;
            self.expect_alive("before it had a window with the keyboard focus")?;
            let left = Duration::from_nanos(deadline.since(clock::now()).0);
            match watcher.wait_for_focus_of(belongs, left.min(POLL_INTERVAL)) {
                Ok(_) => return Ok(clock::now()),
                Err(Error::Late { .. }) if !left.is_zero() => {}
                Err(Error::Late { .. }) => bail!(
                    "the application showed no window with the keyboard focus within {} s{}; name one that \
                     opens a window by itself, or raise start_within_s in the script",
                    timeout.as_secs(),
                    self.complaint()
                ),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Fails where it has ended; `when` says how far it came.
    pub(super) fn expect_alive(&mut self, when: &str) -> Result<()> {
        match self.process.ended()? {
            None => Ok(()),
            Some(status) => bail!("the application ended {when}: {status}{}", self.complaint()),
        }
    }

    /// What its processes used so far.
    pub(super) fn usage(&self) -> Usage {
        self.counters.read(self.process.pid())
    }

    /// Its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.process.members()
    }

    /// The last thing that it said on its error output.
    fn complaint(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.map_or_else(String::new, |line| format!("; it said: {}", line.chars().take(300).collect::<String>()))
    }
}

fn command(words: &[String], home: &Path) -> Result<Command> {
    let home = home.to_string_lossy();
    let words: Vec<String> = words.iter().map(|word| word.replace(HOME, &home)).collect();
    let (first, rest) = words.split_first().context("no application is named; put it behind --")?;
    let mut command = Command::new(first);
    command.args(rest);
    Ok(command)
}

/// Gives it the home: no setting of the user's counts, no bus, no assistive services.
fn settle_in(command: &mut Command, home: &Path) -> Result<()> {
    let settings = home.join("gtk-3.0");
    std::fs::create_dir_all(&settings).with_context(|| format!("cannot make {}", settings.display()))?;
    let file = settings.join("settings.ini");
    std::fs::write(&file, GTK_SETTINGS).with_context(|| format!("cannot write {}", file.display()))?;
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env(variable, home);
    }
    command.env("GSETTINGS_BACKEND", "memory").env("NO_AT_BRIDGE", "1").env("GTK_IM_MODULE", "gtk-im-context-simple");
    // Without an address a bus would be started.
    command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:").env_remove("WAYLAND_DISPLAY");
    command.env("HISTFILE", "/dev/null").env("LESSHISTFILE", "-");
    command.current_dir(home).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(())
}
