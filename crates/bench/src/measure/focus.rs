// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a window of the application has the keyboard focus.

use crate::seen::DrawingWatch;
use anyhow::Result;
use std::time::Duration;
use tipme_control::{Client, RecorderRequest, RecorderResponse};
use tipme_desktop::window::Watcher;
use tipme_desktop::{DisplayError, clock};
use tipme_record::Nanos;

/// Between two questions to the recorder.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// Who sees it.
pub(super) enum FocusWatch<'a> {
    /// A display of X11, of which anybody may ask it.
    Display(Box<Watcher>),
    /// Of a compositor of Wayland the recorder knows whom it tells that a keyboard enters.
    Recorder(Client),
    /// On a private compositor whatever is shown is the application's, and a new window has the focus.
    Screen(&'a DrawingWatch),
}

impl FocusWatch<'_> {
    /// Waits until a window of a process that `belongs` has it; false where that takes longer. The application was
    /// started at `begun`.
    pub(super) fn wait(&self, begun: Nanos, belongs: impl Fn(u32) -> bool, timeout: Duration) -> Result<bool> {
        match self {
            FocusWatch::Display(watcher) => match watcher.wait_for_focus_of(belongs, timeout) {
                Ok(_) => Ok(true),
                Err(DisplayError::Late { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            },
            FocusWatch::Recorder(recorder) => poll(timeout, || has_focus(recorder, &belongs)),
            FocusWatch::Screen(seen) => poll(timeout, || Ok(seen.answered(begun))),
        }
    }
}

/// Asks until something is so; false where that takes longer.
fn poll(timeout: Duration, mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
    while !is_so()? {
        if clock::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(ASK_INTERVAL);
    }
    Ok(true)
}

fn has_focus(recorder: &Client, belongs: impl Fn(u32) -> bool) -> Result<bool> {
    let RecorderResponse::Status(status) = recorder.call(&RecorderRequest::Status)? else { return Ok(false) };
    Ok(status.focus.iter().filter_map(|focused| focused.client).any(belongs))
}
