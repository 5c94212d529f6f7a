// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys: grabs on the root window of an X display.
//!
//! A key is grabbed with every combination of Caps Lock and Num Lock, on every keycode that gives
//! its symbol, including the keypad's. Grabs that another program holds are left to it and
//! reported; all others are still made. When a server that hung answers again, the grabs are made
//! again. A server that exits takes them with it, and a later server of the same display belongs to
//! another session.

mod bindings;
mod held;

use crate::clock;
use crate::connect::DisplayTarget;
use crate::error::DisplayError;
pub(crate) use bindings::wanted;
pub use bindings::{Bindings, Chord, HotKeyAction};
use held::GrabbedKeys;
pub use held::{HotKeyEvent, HotKeyRefusal, RefusalReason};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tipme_record::Nanos;

/// Interval between attempts to reach a server that hung.
const RETRY: Nanos = Nanos::from_millis(500);

/// Grabbed keys and the connection that holds them.
pub struct HotKeys {
    target: DisplayTarget,
    bindings: Bindings,
    held: Option<GrabbedKeys>,
    retry_at: Nanos,
    /// Ends each wait for a key once it is readable.
    wakeup: Option<OwnedFd>,
}

impl HotKeys {
    /// Grabs the available keys of `bindings`; [`HotKeys::refusals`] returns the others.
    ///
    /// # Errors
    /// Fails if the display is not usable.
    pub fn grab(target: &DisplayTarget, bindings: Bindings) -> Result<HotKeys, DisplayError> {
        let held = Some(GrabbedKeys::take(target, &bindings)?);
        Ok(HotKeys { target: target.clone(), bindings, held, retry_at: Nanos(0), wakeup: None })
    }

    /// Makes [`HotKeys::next`] return as soon as `wakeup` is readable.
    pub fn wake_by(&mut self, wakeup: OwnedFd) {
        self.wakeup = Some(wakeup);
    }

    /// The keys that are not available now.
    pub fn refusals(&self) -> &[HotKeyRefusal] {
        self.held.as_ref().map_or(&[], GrabbedKeys::refusals)
    }

    /// Returns the available keys of an action, in the order in which they were requested.
    pub fn keys(&self, action: HotKeyAction) -> Vec<&Chord> {
        let chords = self.bindings.0.iter().filter(|(known, _)| *known == action);
        chords.map(|(_, chord)| chord).filter(|chord| !self.is_refused(action, chord)).collect()
    }

    /// Returns `true` if a chord is available at none of its positions.
    fn is_refused(&self, action: HotKeyAction, chord: &Chord) -> bool {
        let mut refusals = self.refusals().iter();
        let refusal = refusals.find(|refusal| refusal.action == action && refusal.chord == *chord);
        refusal.is_some_and(|refusal| {
            matches!(refusal.why, RefusalReason::Missing | RefusalReason::Taken)
        })
    }

    /// Adds a key to an action, if the key is available and has no other action; returns `true` if
    /// it was added.
    ///
    /// # Errors
    /// Fails if the display is not usable.
    pub fn add(&mut self, action: HotKeyAction, chord: Chord) -> Result<bool, DisplayError> {
        let Some(held) = &mut self.held else { return Ok(false) };
        if self.bindings.0.iter().any(|(_, known)| *known == chord) {
            return Ok(false);
        }
        self.bindings.0.push((action, chord));
        held.grab_all(&self.bindings)?;
        if held
            .refusals()
            .iter()
            .all(|refusal| Some(&refusal.chord) != self.bindings.0.last().map(|(_, last)| last))
        {
            return Ok(true);
        }
        self.bindings.0.pop();
        held.grab_all(&self.bindings).map(|_| false)
    }

    /// Waits for a hot key, at most for `timeout` or until the wakeup.
    ///
    /// # Errors
    /// Returns permanent errors only: the new server refuses the connection.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<HotKeyEvent>, DisplayError> {
        let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
        let Some(held) = &mut self.held else { return self.restore(deadline) };
        match held.next(deadline, self.wakeup.as_ref().map(AsFd::as_fd), &self.bindings) {
            Err(error) if error.passes() && held.has_ended() => {
                Ok(Some(HotKeyEvent::Gone(error.to_string())))
            }
            Err(error) if error.passes() => {
                self.held = None;
                self.retry_at = clock::now().after(RETRY);
                Ok(Some(HotKeyEvent::Lost(error.to_string())))
            }
            other => other,
        }
    }

    fn restore(&mut self, deadline: Nanos) -> Result<Option<HotKeyEvent>, DisplayError> {
        std::thread::sleep(Duration::from_nanos(self.retry_at.min(deadline).since(clock::now()).0));
        if clock::now() < self.retry_at {
            return Ok(None);
        }
        self.retry_at = clock::now().after(RETRY);
        match GrabbedKeys::take(&self.target, &self.bindings) {
            Ok(held) => self.held = Some(held),
            Err(error @ DisplayError::NoServer { .. }) => {
                return Ok(Some(HotKeyEvent::Gone(error.to_string())));
            }
            Err(error) if error.passes() => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(HotKeyEvent::Restored))
    }
}
