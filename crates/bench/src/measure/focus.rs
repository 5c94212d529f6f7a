// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects the time at which a window of the application gets the keyboard focus.

use crate::process::poll_for;
use crate::seen::DrawingWatch;
use anyhow::Result;
use std::time::Duration;
use tipme_control::{Client, RecorderRequest, RecorderResponse};
use tipme_desktop::DisplayError;
use tipme_desktop::window::Watcher;
use tipme_record::Nanos;

/// Interval between queries of the recorder.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// Source of focus changes.
pub(super) enum FocusWatch<'a> {
    /// An X11 display, which any client can ask for the focus.
    Display(Box<Watcher>),
    /// Recorder of a Wayland compositor, which sees the client to which the compositor sends
    /// keyboard enter events.
    Recorder(Client),
    /// Private compositor: everything on its screen belongs to the application, and a new window
    /// has the focus.
    Screen(&'a DrawingWatch),
}

impl FocusWatch<'_> {
    /// Waits until a window of a process that `belongs` has the focus; returns `false` on a
    /// timeout. The application was started at `begun`.
    pub(super) fn wait(
        &self,
        begun: Nanos,
        belongs: impl Fn(u32) -> bool,
        timeout: Duration,
    ) -> Result<bool> {
        match self {
            FocusWatch::Display(watcher) => match watcher.wait_for_focus_of(belongs, timeout) {
                Ok(_) => Ok(true),
                Err(DisplayError::Late { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            },
            FocusWatch::Recorder(recorder) => {
                poll_for(timeout, ASK_INTERVAL, || has_focus(recorder, &belongs))
            }
            FocusWatch::Screen(seen) => {
                poll_for(timeout, ASK_INTERVAL, || Ok(seen.answered(begun)))
            }
        }
    }
}

fn has_focus(recorder: &Client, belongs: impl Fn(u32) -> bool) -> Result<bool> {
    let RecorderResponse::Status(status) = recorder.call(&RecorderRequest::Status)? else {
        return Ok(false);
    };
    Ok(status.focus.iter().filter_map(|focused| focused.client).any(belongs))
}
