// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacked popups in a corner of the screen. Each has a thread of its own, on which no other thread
//! waits.

use super::press::PressNumber;
use super::workers::Workers;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tipme_control::journal;
use tipme_desktop::popup::{MARGIN, Popup};
use tipme_desktop::{DisplayError, DisplayTarget, clock};
use tipme_record::Nanos;

/// Maximum number of open popups.
const POPUPS_MAX: usize = 8;
/// Time for which a popup stays open.
const READ_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of the display: its server may be the one that hangs.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum delay until an obsolete or replaced popup closes.
const POLL_INTERVAL: Nanos = Nanos::from_millis(250);
/// Last line of each popup.
const ENDING: &str = "A click closes this.";

/// The popups of a display.
pub struct Popups {
    target: DisplayTarget,
    workers: Workers,
    places: PopupPlaces,
    /// Number of popups so far.
    count: u64,
}

/// Positions of the wanted popups.
#[derive(Clone, Default)]
struct PopupPlaces(Arc<Mutex<Vec<PopupPlace>>>);

struct PopupPlace {
    number: u64,
    press: Option<PressNumber>,
    /// Rows of the screen; empty before the popup is shown.
    rows: Range<u16>,
}

impl Popups {
    pub fn on(target: DisplayTarget) -> Popups {
        let target = DisplayTarget { timeout: SERVER_TIMEOUT, ..target };
        Popups {
            target,
            workers: Workers::new(POPUPS_MAX),
            places: PopupPlaces::default(),
            count: 0,
        }
    }

    /// Shows a text with `more` below it, in place of an earlier popup of the same press.
    pub fn show(&mut self, text: String, more: &str, press: Option<PressNumber>) {
        let (target, places, number) = (self.target.clone(), self.places.clone(), self.count);
        let ending = format!("{more}{ENDING}");
        self.count += 1;
        self.places.request(number, press);
        let begun = self.workers.start(move || {
            if let Err(error) = places.show(number, &target, &text, &ending) {
                journal::warning(error).tell();
            }
            places.release(number);
        });
        if !begun {
            self.places.release(number);
            journal::warning(format!("{POPUPS_MAX} popups are open; click on them to close them"))
                .tell();
        }
    }
}

impl PopupPlaces {
    fn all(&self) -> MutexGuard<'_, Vec<PopupPlace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, number: u64, press: Option<PressNumber>) {
        let mut all = self.all();
        all.retain(|place| press.is_none() || place.press != press);
        all.push(PopupPlace { number, press, rows: 0..0 });
    }

    fn is_wanted(&self, number: u64) -> bool {
        self.all().iter().any(|place| place.number == number)
    }

    fn release(&self, number: u64) {
        self.all().retain(|place| place.number != number);
    }

    /// Reserves rows for a popup of this height and returns the first; `None` if it is no longer
    /// wanted.
    fn take(&self, number: u64, height: u16) -> Option<u16> {
        let mut all = self.all();
        let top = free_row(&all, height);
        let own = all.iter_mut().find(|place| place.number == number)?;
        own.rows = top..top.saturating_add(height);
        Some(top)
    }

    fn show(
        &self,
        number: u64,
        target: &DisplayTarget,
        text: &str,
        ending: &str,
    ) -> Result<(), DisplayError> {
        let popup = Popup::make(target, text, ending)?;
        let Some(top) = self.take(number, popup.height()) else { return Ok(()) };
        popup.show(top)?;
        serve(&popup, &|| self.is_wanted(number))
    }
}

/// Shows a text, and waits until it is closed.
pub fn show_alone(
    target: &DisplayTarget,
    text: &str,
    wanted: &dyn Fn() -> bool,
) -> Result<(), DisplayError> {
    let popup = Popup::make(target, text, ENDING)?;
    popup.show(MARGIN)?;
    serve(&popup, wanted)
}

fn serve(popup: &Popup, wanted: &dyn Fn() -> bool) -> Result<(), DisplayError> {
    let until = Instant::now() + READ_TIMEOUT;
    while wanted() && Instant::now() < until && popup.serve(clock::now().after(POLL_INTERVAL))? {}
    Ok(())
}

/// Returns the first row with enough free rows below it.
fn free_row(taken: &[PopupPlace], height: u16) -> u16 {
    let taken: Vec<&Range<u16>> =
        taken.iter().map(|place| &place.rows).filter(|rows| !rows.is_empty()).collect();
    let below = taken.iter().map(|rows| rows.end.saturating_add(MARGIN));
    let tops = std::iter::once(MARGIN).chain(below);
    let free = tops.filter(|top| {
        let bottom = top.saturating_add(height).saturating_add(MARGIN);
        taken.iter().all(|rows| bottom <= rows.start || *top >= rows.end.saturating_add(MARGIN))
    });
    free.min().unwrap_or(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popups_stand_below_each_other_and_fill_gaps() {
        let places = PopupPlaces::default();
        for (number, press, height, top) in
            [(0, None, 100, 12), (1, Some(PressNumber(7)), 50, 124), (2, None, 30, 186)]
        {
            places.request(number, press);
            assert_eq!(places.take(number, height), Some(top));
        }
        places.release(0);
        // The last one replaces popup 1, of the same press.
        for (number, press, height, top) in
            [(3, None, 60, 12), (4, None, 40, 228), (5, Some(PressNumber(7)), 20, 84)]
        {
            places.request(number, press);
            assert_eq!(places.take(number, height), Some(top));
        }
        assert_eq!((places.is_wanted(1), places.take(1, 9)), (false, None));
    }
}
