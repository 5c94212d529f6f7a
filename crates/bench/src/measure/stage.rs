// SPDX-License-Identifier: MIT OR Apache-2.0
//! Display on which a script is played, private or existing, and the recorder beside it.

use super::focus::FocusWatch;
use crate::compositor::unobservable;
use crate::display::PrivateDisplay;
use crate::interrupt::InterruptFlag;
use crate::programs::{SidecarRecorder, recorder};
use crate::screen::{Place, TerminalScreen};
use crate::seen::{DrawingSource, DrawingWatch};
use crate::session::SessionOptions;
use crate::worker::command;
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
    Own(PrivateDisplay),
    Existing(DisplayTarget),
}

impl MeasureStage {
    /// Connects to the named display, or starts a new one.
    pub(super) fn open(display: &MeasureDisplay) -> Result<MeasureStage> {
        Ok(match display {
            MeasureDisplay::Own(place) => {
                MeasureStage::Own(PrivateDisplay::open(place, SessionOptions::default())?)
            }
            MeasureDisplay::Display(target) => MeasureStage::Existing(DisplayTarget {
                timeout: Duration::from_secs(10),
                ..target.clone()
            }),
        })
    }

    /// Name for `tipme record --display`.
    fn name(&self) -> String {
        match self {
            MeasureStage::Own(display) => display.screen().name(),
            MeasureStage::Existing(target) => format!(":{}", target.display),
        }
    }

    /// The display, if it is an X11 one.
    fn x11(&self) -> Option<DisplayTarget> {
        match self {
            MeasureStage::Own(display) => display.screen().x11(),
            MeasureStage::Existing(target) => Some(target.clone()),
        }
    }

    /// Opens a keyboard and a pointer on the display.
    pub(super) fn typist(&self) -> Result<Typist> {
        match self {
            MeasureStage::Own(display) => display.screen().typist(Pace::default()),
            MeasureStage::Existing(target) => Ok(Typist::open(target, Pace::default())?),
        }
    }

    /// Opens the source of all drawing events on the display.
    pub(super) fn watch(&self) -> Result<Box<dyn DrawingSource>> {
        match self {
            MeasureStage::Own(PrivateDisplay::Wayland(compositor)) => {
                compositor.watch()?.with_context(|| unobservable(&compositor.name()))
            }
            MeasureStage::Own(PrivateDisplay::X11(session)) => {
                Ok(Box::new(DamageWatch::open_screen(&session.target())?))
            }
            MeasureStage::Existing(target) => Ok(Box::new(DamageWatch::open_screen(target)?)),
        }
    }

    /// Opens the source of focus changes; `seen` watches this display.
    pub(super) fn focus_watch<'a>(
        &self,
        recorder: Option<&SidecarRecorder>,
        seen: &'a DrawingWatch,
    ) -> Result<FocusWatch<'a>> {
        Ok(match (self.x11(), recorder) {
            (Some(target), _) => FocusWatch::Display(Box::new(Watcher::open(&target)?)),
            (None, Some(recorder)) => FocusWatch::Recorder(Client::new(recorder.folder())),
            (None, None) => FocusWatch::Screen(seen),
        })
    }

    /// Returns a command that runs as the user of the display and opens its windows there.
    pub(super) fn command(&self, words: &[String]) -> Result<Command> {
        let before = match self {
            MeasureStage::Own(PrivateDisplay::Wayland(compositor)) => compositor.as_owner(),
            _ => Vec::new(),
        };
        let words: Vec<OsString> =
            before.into_iter().chain(words.iter().map(OsString::from)).collect();
        let mut command = command(&words).context("no application is named; put it behind --")?;
        match self {
            MeasureStage::Own(PrivateDisplay::X11(session)) => session.prepare(&mut command),
            _ => self.show(&mut command),
        }
        Ok(command)
    }

    /// Gives a folder and its contents to the user of the display.
    pub(super) fn give(&self, folder: &Path) -> Result<()> {
        match self {
            MeasureStage::Own(PrivateDisplay::Wayland(compositor)) => compositor.give(folder),
            _ => Ok(()),
        }
    }

    fn show(&self, command: &mut Command) {
        match self {
            MeasureStage::Own(display) => {
                display.screen().show(command);
                if self.x11().is_none() {
                    // Toolkits choose their backend by this.
                    command.env("XDG_SESSION_TYPE", "wayland");
                }
            }
            MeasureStage::Existing(target) => {
                command
                    .env("DISPLAY", format!(":{}", target.display))
                    .env_remove("WAYLAND_DISPLAY");
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
