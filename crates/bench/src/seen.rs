// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency that a user in front of the terminal sees: the time from a key to the next drawing.
//!
//! It comes from the DAMAGE extension of X11, or from the screen events of a Wayland compositor,
//! and so does not depend on any recorder.

use crate::session::PrivateSession;
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::compositor::FrameWatch;
use tipme_desktop::window::DamageWatch;
use tipme_record::Nanos;

/// Interval between checks for the end of the thread.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Source of drawing events.
pub trait DrawingSource: Send {
    /// Waits for the next drawing; returns its time, or `None` on a timeout.
    fn next(&mut self, timeout: Duration) -> Result<Option<Nanos>>;
}

impl DrawingSource for DamageWatch {
    fn next(&mut self, timeout: Duration) -> Result<Option<Nanos>> {
        Ok(DamageWatch::next(self, timeout)?)
    }
}

impl DrawingSource for FrameWatch {
    fn next(&mut self, timeout: Duration) -> Result<Option<Nanos>> {
        Ok(FrameWatch::next(self, timeout)?)
    }
}

/// Thread that records the times at which the terminal draws.
pub struct DrawingWatch {
    stop: Arc<AtomicBool>,
    last: Arc<AtomicU64>,
    thread: JoinHandle<Result<Vec<Nanos>>>,
}

impl DrawingWatch {
    /// Starts recording the drawings of the session's terminal, once it has been quiet for `quiet`.
    pub fn start(session: &PrivateSession, quiet: Duration) -> Result<DrawingWatch> {
        DrawingWatch::watch(Box::new(session.watch_terminal()?), quiet)
    }

    /// Starts recording all drawings, once there have been none for `quiet`.
    ///
    /// The thread inherits the caller's priority.
    pub fn watch(mut watch: Box<dyn DrawingSource>, quiet: Duration) -> Result<DrawingWatch> {
        while watch.next(quiet)?.is_some() {}
        let (stop, last) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&stop), Arc::clone(&last));
        let thread = std::thread::spawn(move || note(&mut *watch, &shared.0, &shared.1));
        Ok(DrawingWatch { stop, last, thread })
    }

    /// Time of the last drawing.
    pub fn last(&self) -> Nanos {
        Nanos(self.last.load(Ordering::Relaxed))
    }

    /// Time since the last drawing.
    pub fn quiet_for(&self) -> Duration {
        Duration::from_nanos(clock::now().since(self.last()).0)
    }

    /// Returns `true` if there was a drawing after `press`.
    pub fn answered(&self, press: Nanos) -> bool {
        self.last() > press
    }

    /// Ends the thread; returns the times of all drawings, in order.
    pub fn finish(self) -> Result<Vec<Nanos>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the thread that watched the terminal has failed"))?
    }
}

fn note(watch: &mut dyn DrawingSource, stop: &AtomicBool, last: &AtomicU64) -> Result<Vec<Nanos>> {
    let mut drawn = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if let Some(at) = watch.next(POLL_INTERVAL)? {
            last.store(at.0, Ordering::Relaxed);
            drawn.push(at);
        }
    }
    Ok(drawn)
}

/// Returns the time from each press to the first drawing after it; `None` if there was none.
///
/// Both lists are in order. A drawing that answers an earlier key also counts for a later one, so a
/// key behind a slow one may look faster than it is, never slower.
pub fn latencies(presses: &[Nanos], drawn: &[Nanos]) -> Vec<Option<Nanos>> {
    let first_after = presses
        .iter()
        .map(|press| drawn.get(drawn.partition_point(|at| at < press)).map(|at| at.since(*press)));
    first_after.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_press_gets_the_first_drawing_after_it() {
        let found = latencies(&[10, 20, 30, 40].map(Nanos), &[5, 12, 31, 35].map(Nanos));
        assert_eq!(found, vec![Some(Nanos(2)), Some(Nanos(11)), Some(Nanos(1)), None]);
    }
}
