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
        self.places.want(number, press);
        let begun = self.workers.start(move || {
            if let Err(error) = places.show(number, &target, &text, &ending) {
                journal::warning(error).tell();
            }
            places.give_up(number);
        });
        if !begun {
            self.places.give_up(number);
            journal::warning(format!("{POPUPS_MAX} popups are open; click on them")).tell();
        }
    }
}

impl PopupPlaces {
    fn all(&self) -> MutexGuard<'_, Vec<PopupPlace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, number: u64, press: Option<PressNumber>) {
        let mut all = self.all();
        all.retain(|place| press.is_none() || place.press != press);
        all.push(PopupPlace { number, press, rows: 0..0 });
    }

    fn is_wanted(&self, number: u64) -> bool {
        self.all().iter().any(|place| place.number == number)
    }

    fn give_up(&self, number: u64) {
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
    let taken = || taken.iter().map(|place| &place.rows).filter(|rows| !rows.is_empty());
    let below = |rows: &Range<u16>| rows.end.saturating_add(MARGIN);
    let is_free = |top: &u16| {
        let bottom = top.saturating_add(height).saturating_add(MARGIN);
        taken().all(|rows| bottom <= rows.start || *top >= below(rows))
    };
    std::iter::once(MARGIN).chain(taken().map(below)).filter(is_free).min().unwrap_or(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popups_stand_below_each_other_and_fill_gaps() {
        let places = PopupPlaces::default();
        let take = |number, press, height| {
            places.want(number, press);
            places.take(number, height)
        };
        assert_eq!([take(0, None, 100), take(1, Some(PressNumber(7)), 50)], [Some(12), Some(124)]);
        assert_eq!(take(2, None, 30), Some(186));
        places.give_up(0);
        assert_eq!([take(3, None, 60), take(4, None, 40)], [Some(12), Some(228)]);
        assert_eq!(
            take(5, Some(PressNumber(7)), 20),
            Some(84),
            "it takes the place of what was told of its press"
        );
        assert_eq!((places.is_wanted(1), places.take(1, 9)), (false, None));
    }
}
