// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured application: unmodified, started for each repeat in a home folder of its own.

use super::counters::{Counters, Usage};
use super::focus::FocusWatch;
use super::stage::MeasureStage;
use crate::files::{make_folder, temporary_folder, write};
use crate::interrupt::InterruptFlag;
use crate::process::{ProcessGroup, is_group_member};
use crate::script::{HOME, Script};
use anyhow::{Context, Result, bail};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::clock;
use tipme_record::Nanos;

/// Maximum wait for a window before a check that the application still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Settings under which nothing draws by itself.
const GTK_SETTINGS: &str = "[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n";

/// A running application. Dropping it ends it and removes its home.
pub(super) struct MeasuredApplication {
    process: ProcessGroup,
    counters: Counters,
    log: PathBuf,
    /// Time of its start.
    pub(super) begun: Nanos,
    /// Ends the thread that started the application. The thread must live as long as the
    /// application, which the kernel kills with it.
    _keeper: Sender<()>,
    _folder: TempDir,
}

impl MeasuredApplication {
    /// Starts the application; it has no window yet.
    pub(super) fn start(
        words: &[String],
        script: &Script,
        stage: &MeasureStage,
    ) -> Result<MeasuredApplication> {
        let folder = temporary_folder("tipme-home-")?;
        let (home, log) = (folder.path().join("home"), folder.path().join("errors"));
        make_home(&home, script, stage)?;
        let mut command = command(words, &home, stage)?;
        settle_in(&mut command, &home);
        command
            .stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?);
        let (give, take) = channel();
        let (keeper, released) = channel::<()>();
        std::thread::spawn(move || {
            let counters = Counters::open();
            let begun = clock::now();
            let started = ProcessGroup::start("the application", command, None);
            if give.send((started, counters, begun)).is_ok() {
                // Returns when the application is dropped.
                let _ = released.recv();
            }
        });
        let (started, counters, begun) = take.recv().context("cannot start the application")?;
        Ok(MeasuredApplication {
            process: started?,
            counters,
            log,
            begun,
            _keeper: keeper,
            _folder: folder,
        })
    }

    /// Waits until a window of the application has the focus; returns the time of that.
    pub(super) fn wait_for_window(
        &mut self,
        watch: &FocusWatch<'_>,
        timeout: Duration,
        interrupt: &InterruptFlag,
    ) -> Result<Nanos> {
        let group = self.process.pid();
        let deadline = self.begun.after(Nanos(timeout.as_nanos() as u64));
        loop {
            interrupt.check()?;
            self.expect_alive("before it had a window with the keyboard focus")?;
            let left = Duration::from_nanos(deadline.since(clock::now()).0);
            if watch.wait(self.begun, |pid| is_group_member(pid, group), left.min(POLL_INTERVAL))? {
                return Ok(clock::now());
            }
            if left.is_zero() {
                bail!(
                    "the application showed no window with the keyboard focus within {} s{}; name one that \
                     opens a window by itself, or raise start_within_s in the script",
                    timeout.as_secs(),
                    self.complaint()
                );
            }
        }
    }

    /// Fails if the application has ended; `when` names the phase.
    pub(super) fn expect_alive(&mut self, when: &str) -> Result<()> {
        match self.process.ended()? {
            None => Ok(()),
            Some(status) => bail!("the application ended {when}: {status}{}", self.complaint()),
        }
    }

    /// Resources that its processes have used so far.
    pub(super) fn usage(&self) -> Usage {
        self.counters.read(self.process.pid())
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.process.members()
    }

    /// Returns the last line of its error output.
    fn complaint(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.map_or_else(String::new, |line| {
            format!("; it said: {}", line.chars().take(300).collect::<String>())
        })
    }
}

fn command(words: &[String], home: &Path, stage: &MeasureStage) -> Result<Command> {
    let home = home.to_string_lossy();
    let words: Vec<String> = words.iter().map(|word| word.replace(HOME, &home)).collect();
    stage.command(&words)
}

/// Makes the home with the script's files, and the settings beside it that the user cannot change.
fn make_home(home: &Path, script: &Script, stage: &MeasureStage) -> Result<()> {
    let settings = home.join("gtk-3.0");
    make_folder(&settings)?;
    write(&settings.join("settings.ini"), GTK_SETTINGS)?;
    script.make_files(home)?;
    for (folder, mode) in [(home, 0o700), (home.parent().unwrap_or(home), 0o711)] {
        let set = std::fs::set_permissions(folder, Permissions::from_mode(mode));
        set.with_context(|| format!("cannot set the mode of {}", folder.display()))?;
    }
    stage.give(home)
}

/// Sets the home, so that no user settings, bus or assistive services have an effect.
fn settle_in(command: &mut Command, home: &Path) {
    for variable in
        ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
    {
        command.env(variable, home);
    }
    command
        .env("GSETTINGS_BACKEND", "memory")
        .env("NO_AT_BRIDGE", "1")
        .env("GTK_IM_MODULE", "gtk-im-context-simple");
    // Without an address a bus would be started.
    command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
    command.env("HISTFILE", "/dev/null").env("LESSHISTFILE", "-");
    command.current_dir(home).stdin(Stdio::null()).stdout(Stdio::null());
}
