// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injected input at a human pace: into an X display by the XTEST extension, into a Wayland
//! compositor by any interface that it offers.

mod device;
mod wayland;
mod xtest;

use crate::clock;
use crate::connect::DisplayTarget;
use crate::error::DisplayError;
use crate::hotkeys::Chord;
use crate::keymap::{ALT, CONTROL, Keymap, MappedKey, SHIFT, SUPER, symbol};
use device::InjectionDevice;
use fastrand::Rng;
use std::path::Path;
use std::time::Duration;
use tipme_record::Nanos;
use x11rb::protocol::xproto::ModMask;
use xtest::Xtest;

/// Delay of the release of modifiers after that of the key.
const MODIFIER_HOLD: Duration = Duration::from_millis(20);

/// Time for which the pointer rests before a click.
const AIM: Duration = Duration::from_millis(100);

/// Interval between motions of a drag.
const DRAG_STEP: Duration = Duration::from_millis(20);

/// Speed and regularity of typing.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A word counts five characters.
    pub words_per_minute: f64,
    /// Largest deviation of an interval from the mean, as a share of the mean; 0 to 0.9.
    pub variation: f64,
    /// The same seed gives the same intervals.
    pub seed: u64,
}

impl Default for Pace {
    /// A practised typist: 60 words per minute.
    fn default() -> Pace {
        Pace { words_per_minute: 60.0, variation: 0.5, seed: 1 }
    }
}

/// Intervals between key presses for a [`Pace`].
#[derive(Clone, Debug)]
struct Rhythm {
    mean_s: f64,
    variation: f64,
    random: Rng,
}

impl Rhythm {
    fn new(pace: Pace) -> Rhythm {
        let mean_s = 60.0 / (pace.words_per_minute.clamp(1.0, 1000.0) * 5.0);
        Rhythm {
            mean_s,
            variation: pace.variation.clamp(0.0, 0.9),
            random: Rng::with_seed(pace.seed),
        }
    }

    /// Returns a random number from -1 to 1, most often near 0.
    fn deviation(&mut self) -> f64 {
        self.random.f64() + self.random.f64() - 1.0
    }

    fn interval(&mut self) -> Duration {
        let factor = 1.0 + self.variation * self.deviation();
        Duration::from_secs_f64(self.mean_s * factor)
    }
}

/// Types, clicks and moves the pointer on a display.
pub struct Typist {
    device: Box<dyn InjectionDevice + Send>,
    keymap: Keymap,
    rhythm: Rhythm,
    next_at: Nanos,
    sent: u64,
}

impl Typist {
    /// Connects to a display that has the XTEST extension.
    pub fn open(target: &DisplayTarget, pace: Pace) -> Result<Typist, DisplayError> {
        let device = Xtest::open(target)?;
        let keymap = Keymap::load(&device.connection)?;
        Ok(Typist::with(Box::new(device), keymap, pace))
    }

    /// Connects to the Wayland compositor behind a socket, with a US keyboard: keys of another
    /// layout are pressed by position. If the compositor has several outputs, the pointer moves on
    /// one of them.
    ///
    /// # Errors
    /// Fails if the compositor is not reachable, or allows no injection; the error names the
    /// remedy.
    pub fn on_compositor(socket: &Path, pace: Pace) -> Result<Typist, DisplayError> {
        Ok(Typist::with(wayland::devices(socket)?, Keymap::of_places(), pace))
    }

    fn with(device: Box<dyn InjectionDevice + Send>, keymap: Keymap, pace: Pace) -> Typist {
        Typist { device, keymap, rhythm: Rhythm::new(pace), next_at: Nanos(0), sent: 0 }
    }

    /// Changes the pace from the next key on.
    pub fn set_pace(&mut self, pace: Pace) {
        self.rhythm = Rhythm::new(pace);
    }

    /// Waits for its turn in the rhythm, then presses and releases the key of a character.
    ///
    /// Returns the time of sending the press.
    pub fn key(&mut self, character: char) -> Result<Nanos, DisplayError> {
        let (held, key) = self.find_character(character)?;
        let interval = self.take_turn();
        self.strike(held.as_slice(), key.code, Nanos(interval.0 / 3))
    }

    /// Presses the key of a character without Shift, and holds it until [`Typist::release`];
    /// returns the time of sending the press.
    pub fn hold(&mut self, character: char) -> Result<Nanos, DisplayError> {
        let (_, key) = self.find_character(character)?;
        self.send_key(key.code, true)
    }

    /// Releases the key of a character; returns the time of sending that.
    pub fn release(&mut self, character: char) -> Result<Nanos, DisplayError> {
        let (_, key) = self.find_character(character)?;
        self.send_key(key.code, false)
    }

    /// Waits for its turn in the rhythm; returns the time until the next one.
    fn take_turn(&mut self) -> Nanos {
        std::thread::sleep(Duration::from_nanos(self.next_at.since(clock::now()).0));
        let interval = Nanos(self.rhythm.interval().as_nanos() as u64);
        self.next_at = clock::now().max(self.next_at).after(interval);
        interval
    }

    /// Waits for its turn, then presses a key with its modifiers; returns the time of sending the
    /// press.
    pub fn press(&mut self, chord: &Chord) -> Result<Nanos, DisplayError> {
        self.take_turn();
        self.chord(chord)
    }

    /// Waits for its turn, then moves the pointer and presses a button there; returns the time of
    /// sending the press.
    pub fn click_at(&mut self, x: i16, y: i16, button: u8) -> Result<Nanos, DisplayError> {
        self.take_turn();
        self.move_to(x, y)?;
        std::thread::sleep(AIM);
        self.click(button)
    }

    /// Waits for its turn, then moves the pointer; returns the time of sending that.
    pub fn point_at(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError> {
        self.take_turn();
        self.move_to(x, y)
    }

    /// Waits for its turn, then turns the wheel by a notch; returns the time of sending that.
    pub fn scroll(&mut self, down: bool) -> Result<Nanos, DisplayError> {
        self.take_turn();
        self.sent += 1;
        self.device.turn_wheel(down)
    }

    /// Number of requests sent to the server so far, as the cost of typing.
    pub fn requests(&self) -> u64 {
        self.sent
    }

    /// Types a text; returns the time of sending each press.
    pub fn text(&mut self, text: &str) -> Result<Vec<Nanos>, DisplayError> {
        text.chars().map(|character| self.key(character)).collect()
    }

    /// Presses a key with its modifiers, outside the rhythm; returns the time of sending the press.
    pub fn chord(&mut self, chord: &Chord) -> Result<Nanos, DisplayError> {
        let known = [
            (ModMask::CONTROL, CONTROL),
            (ModMask::M1, ALT),
            (ModMask::SHIFT, SHIFT),
            (ModMask::M4, SUPER),
        ];
        let held = known
            .into_iter()
            .filter(|(mask, _)| u16::from(chord.modifiers) & u16::from(*mask) != 0);
        let codes: Result<Vec<u8>, DisplayError> =
            held.map(|(_, symbol)| Ok(self.find(symbol, "modifier")?.code)).collect();
        let mut codes = codes?;
        let found =
            chord.symbols.iter().find_map(|symbol| self.keymap.keys(*symbol).first().copied());
        let key = found.ok_or_else(|| self.no_key(&chord.to_string()))?;
        if key.shifted {
            codes.push(self.find(SHIFT, "shift")?.code);
        }
        self.strike(&codes, key.code, Nanos::from_millis(60))
    }

    /// Presses and releases a pointer button; returns the time of sending the press.
    pub fn click(&mut self, button: u8) -> Result<Nanos, DisplayError> {
        let at = self.button(button, true)?;
        std::thread::sleep(Duration::from_millis(60));
        self.button(button, false)?;
        Ok(at)
    }

    /// Presses a button at one position, moves the pointer to another in `steps` steps, and
    /// releases the button there; returns the time of sending the press.
    pub fn drag(
        &mut self,
        from: (i16, i16),
        to: (i16, i16),
        steps: u8,
        button: u8,
    ) -> Result<Nanos, DisplayError> {
        self.move_to(from.0, from.1)?;
        std::thread::sleep(AIM);
        let at = self.button(button, true)?;
        for step in 1..=i32::from(steps) {
            std::thread::sleep(DRAG_STEP);
            let share = (step, i32::from(steps));
            self.move_to(between(from.0, to.0, share), between(from.1, to.1, share))?;
        }
        std::thread::sleep(DRAG_STEP);
        self.button(button, false)?;
        Ok(at)
    }

    /// Moves the pointer to a position on the screen, in pixels; returns the time of sending that.
    pub fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError> {
        self.sent += 1;
        self.device.move_to(x, y)
    }

    fn strike(&mut self, held: &[u8], code: u8, hold: Nanos) -> Result<Nanos, DisplayError> {
        for modifier in held {
            self.send_key(*modifier, true)?;
        }
        let at = self.send_key(code, true)?;
        std::thread::sleep(Duration::from_nanos(hold.0));
        self.send_key(code, false)?;
        if !held.is_empty() {
            std::thread::sleep(MODIFIER_HOLD);
        }
        for modifier in held.iter().rev() {
            self.send_key(*modifier, false)?;
        }
        Ok(at)
    }

    fn send_key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.sent += 1;
        self.device.key(code, pressed)
    }

    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.sent += 1;
        self.device.button(button, pressed)
    }

    /// Returns the key of a character, and its modifier.
    fn find_character(&self, character: char) -> Result<(Option<u8>, MappedKey), DisplayError> {
        let key = self.find(symbol(character), &character.escape_debug().to_string())?;
        let shift = if key.shifted { Some(self.find(SHIFT, "shift")?.code) } else { None };
        Ok((shift, key))
    }

    fn find(&self, symbol: u32, name: &str) -> Result<MappedKey, DisplayError> {
        self.keymap.keys(symbol).first().copied().ok_or_else(|| self.no_key(name))
    }

    fn no_key(&self, name: &str) -> DisplayError {
        DisplayError::NoKey { display: self.device.display(), key: name.to_string() }
    }

    /// Waits until the server has processed everything sent so far.
    pub fn settle(&mut self) -> Result<(), DisplayError> {
        self.device.settle()
    }
}

/// Returns the coordinate at a share, such as 1 of 4, of the way from one to another.
fn between(from: i16, to: i16, (step, steps): (i32, i32)) -> i16 {
    (i32::from(from) + (i32::from(to) - i32::from(from)) * step / steps) as i16
}

impl Drop for Typist {
    /// A server may discard requests that a client sent just before it disconnected, so this waits
    /// for the last release.
    fn drop(&mut self) {
        let _ = self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(pace: Pace) -> Vec<f64> {
        let mut rhythm = Rhythm::new(pace);
        (0..2000).map(|_| rhythm.interval().as_secs_f64()).collect()
    }

    #[test]
    fn the_rhythm_keeps_its_mean_and_its_seed() {
        let pace = Pace { words_per_minute: 60.0, variation: 0.5, seed: 42 };
        let first = intervals(pace);
        let mean = first.iter().sum::<f64>() / first.len() as f64;
        assert!((mean - 0.2).abs() < 0.005, "mean {mean}");
        assert!(first.iter().all(|time| (0.1..=0.3).contains(time)));
        assert_eq!(first, intervals(pace));
        assert_ne!(first, intervals(Pace { seed: 43, ..pace }));
    }
}
