// SPDX-License-Identifier: MIT OR Apache-2.0
//! Display on which a script is played, private or existing, and the recorder beside it.

use super::focus::FocusWatch;
use crate::compositor::{Compositor, untold};
use crate::interrupt::InterruptFlag;
use crate::programs::{SidecarRecorder, recorder};
use crate::screen::{Place, TerminalScreen};
use crate::seen::{DrawingSource, DrawingWatch};
use crate::session::{PrivateSession, SessionOptions};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tipme_control::Client;
use tipme_desktop::DisplayTarget;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::window::{DamageWatch, Watcher};

/// Window of an incident, in seconds: more than the time between two marks.
const WINDOW_S: &str = "120";
/// Memory for the records between two marks on a busy machine.
const MEMORY: &str = "192M";
/// Records that a measurement does not need, since it asks for no cause.
const WITHOUT: &str = "samples,locks";

/// Display on which a script is played.
#[derive(Clone, Debug)]
pub enum MeasureDisplay {
    Own(Place),
    /// An existing X display.
    Display(DisplayTarget),
}

impl Default for MeasureDisplay {
    fn default() -> MeasureDisplay {
        MeasureDisplay::Own(Place::X11)
    }
}

impl MeasureDisplay {
    /// Description for output.
    pub(super) fn about(&self) -> String {
        match self {
            MeasureDisplay::Own(place) => place.about(),
            MeasureDisplay::Display(target) => format!("display :{}", target.display),
        }
    }
}

/// The requested display, ready for use.
pub(super) enum MeasureStage {
    Private(Box<PrivateSession>),
    Existing(DisplayTarget),
    Wayland(Box<Compositor>),
}

impl MeasureStage {
    /// Connects to the named display, or starts a new one.
    pub(super) fn set(display: &MeasureDisplay) -> Result<MeasureStage> {
        let options = SessionOptions::default();
        Ok(match display {
            MeasureDisplay::Display(target) => MeasureStage::Existing(DisplayTarget {
                timeout: Duration::from_secs(10),
                ..target.clone()
            }),
            MeasureDisplay::Own(Place::X11) => {
                MeasureStage::Private(Box::new(PrivateSession::start(options)?))
            }
            MeasureDisplay::Own(Place::Wayland) => {
                MeasureStage::Wayland(Box::new(Compositor::start(options)?))
            }
            MeasureDisplay::Own(Place::Compositor(name)) => {
                MeasureStage::Wayland(Box::new(Compositor::running(name, options)?))
            }
        })
    }

    /// Name for `tipme record --display`.
    fn name(&self) -> String {
        match self {
            MeasureStage::Private(session) => session.display_name(),
            MeasureStage::Existing(target) => format!(":{}", target.display),
            MeasureStage::Wayland(compositor) => compositor.name(),
        }
    }

    /// Opens a keyboard and a pointer on the display.
    pub(super) fn typist(&self) -> Result<Typist> {
        match self {
            MeasureStage::Private(session) => session.typist(Pace::default()),
            MeasureStage::Existing(target) => Ok(Typist::open(target, Pace::default())?),
            MeasureStage::Wayland(compositor) => compositor.typist(Pace::default()),
        }
    }

    /// Opens the source of all drawing events on the display.
    pub(super) fn watch(&self) -> Result<Box<dyn DrawingSource>> {
        match self {
            MeasureStage::Private(session) => {
                Ok(Box::new(DamageWatch::open_screen(&session.target())?))
            }
            MeasureStage::Existing(target) => Ok(Box::new(DamageWatch::open_screen(target)?)),
            MeasureStage::Wayland(compositor) => {
                compositor.watch()?.with_context(|| untold(&compositor.name()))
            }
        }
    }

    /// Opens the source of focus changes; `seen` watches this display.
    pub(super) fn focus_watch<'a>(
        &self,
        recorder: Option<&SidecarRecorder>,
        seen: &'a DrawingWatch,
    ) -> Result<FocusWatch<'a>> {
        Ok(match (self, recorder) {
            (MeasureStage::Private(session), _) => {
                FocusWatch::Display(Box::new(Watcher::open(&session.target())?))
            }
            (MeasureStage::Existing(target), _) => {
                FocusWatch::Display(Box::new(Watcher::open(target)?))
            }
            (MeasureStage::Wayland(_), Some(recorder)) => {
                FocusWatch::Recorder(Client::new(recorder.folder()))
            }
            (MeasureStage::Wayland(_), None) => FocusWatch::Screen(seen),
        })
    }

    /// Returns a command that runs as the user of the display and opens its windows there.
    pub(super) fn command(&self, words: &[String]) -> Result<Command> {
        let before = match self {
            MeasureStage::Wayland(compositor) => compositor.as_owner(),
            MeasureStage::Private(_) | MeasureStage::Existing(_) => Vec::new(),
        };
        let words: Vec<OsString> =
            before.into_iter().chain(words.iter().map(OsString::from)).collect();
        let (first, rest) =
            words.split_first().context("no application is named; put it behind --")?;
        let mut command = Command::new(first);
        command.args(rest);
        match self {
            MeasureStage::Private(session) => session.prepare(&mut command),
            MeasureStage::Existing(_) | MeasureStage::Wayland(_) => self.show(&mut command),
        }
        Ok(command)
    }

    /// Gives a folder and its contents to the user of the display.
    pub(super) fn give(&self, folder: &Path) -> Result<()> {
        match self {
            MeasureStage::Wayland(compositor) => compositor.give(folder),
            MeasureStage::Private(_) | MeasureStage::Existing(_) => Ok(()),
        }
    }

    fn show(&self, command: &mut Command) {
        match self {
            MeasureStage::Private(session) => session.show(command),
            MeasureStage::Existing(target) => {
                command
                    .env("DISPLAY", format!(":{}", target.display))
                    .env_remove("WAYLAND_DISPLAY");
            }
            MeasureStage::Wayland(compositor) => {
                compositor.show(command);
                // Toolkits choose their backend by this.
                command.env("XDG_SESSION_TYPE", "wayland");
            }
        }
    }
}

/// Starts a recorder of the display.
pub(super) fn record(
    tipme: &Path,
    stage: &MeasureStage,
    interrupt: &InterruptFlag,
) -> Result<SidecarRecorder> {
    let mut command = recorder(tipme, &stage.name());
    command.args(["--window", WINDOW_S, "--memory", MEMORY, "--without", WITHOUT]);
    stage.show(&mut command);
    SidecarRecorder::start(command, interrupt)
}
