// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input events of the window, drained from evdev devices ten times a second.

use crate::seat::Seat;
use std::collections::{BTreeSet, VecDeque};
use tipme_desktop::chords::{Chords, HotKeyPress};
use tipme_desktop::input::Devices;
use tipme_record::Nanos;
use tipme_record::incident::Withheld;
use tipme_record::records::Input;
use zerocopy::IntoBytes;

/// Maximum number of events kept: a pointer that reports 1000 times a second for a minute.
const EVENTS_MAX: usize = 65536;

/// Input devices and their recent events.
#[derive(Default)]
pub(crate) struct Inputs {
    devices: Option<Devices>,
    /// Events, each with its user if known.
    kept: VecDeque<(Input, Option<u32>)>,
    seat: Seat,
    /// User of the active session at the last read.
    seated: Option<u32>,
    /// Number of times that a device lost events because it was read too late.
    overruns: u64,
}

impl Inputs {
    /// Opens all devices; a machine without any has no input events.
    pub(crate) fn open(chords: Chords) -> Inputs {
        Inputs::new(Devices::open().ok(), chords)
    }

    /// Reads these devices, and looks for hot keys in their events.
    pub(crate) fn new(mut devices: Option<Devices>, chords: Chords) -> Inputs {
        if let Some(devices) = &mut devices {
            devices.watch(chords);
        }
        Inputs { devices, ..Inputs::default() }
    }

    /// Returns the number of devices.
    pub(crate) fn count(&self) -> usize {
        self.devices.as_ref().map_or(0, Devices::count)
    }

    /// Returns the hot keys pressed since the last call, even while input is not recorded.
    pub(crate) fn pressed(&mut self) -> Vec<HotKeyPress> {
        self.devices.as_mut().map(Devices::pressed).unwrap_or_default()
    }

    /// Replaces the source of the user in front of the machine.
    #[cfg(test)]
    pub(crate) fn ask(&mut self, seat: Seat) {
        self.seat = seat;
    }

    /// Reads new events. If the user in front has changed since the last call, they are attributed
    /// to nobody.
    pub(crate) fn drain(&mut self) {
        let mut new = Vec::new();
        let seated = if self.count() > 0 { self.seat.user() } else { None };
        let owner = seated.filter(|_| seated == self.seated);
        self.seated = seated;
        if let Some(devices) = &mut self.devices {
            self.overruns = devices.drain(&mut new);
        }
        self.kept.extend(new.into_iter().map(|input| (input, owner)));
        self.kept.drain(..self.kept.len().saturating_sub(EVENTS_MAX));
    }

    /// Discards events older than `from`. Call after answering hot keys: their windows reach
    /// further back.
    pub(crate) fn forget(&mut self, from: Nanos) {
        while self.kept.front().is_some_and(|(input, _)| input.head.ts < from) {
            self.kept.pop_front();
        }
    }

    /// Reads and discards events, while input is not to be recorded.
    pub(crate) fn discard(&mut self) {
        if let Some(devices) = &mut self.devices {
            self.overruns = devices.drain(&mut Vec::new());
        }
    }

    /// Returns the number of overruns since the start.
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Returns the records since `from` that this user's incident may contain, and counts of the
    /// rest. Root gets all.
    pub(crate) fn bytes(&self, from: Nanos, user: u32) -> (Vec<u8>, Withheld) {
        let recent = self.kept.iter().filter(|(input, _)| input.head.ts >= from);
        let (own, others): (Vec<_>, Vec<_>) =
            recent.partition(|(_, owner)| user == 0 || *owner == Some(user));
        let users: BTreeSet<u32> = others.iter().filter_map(|(_, owner)| *owner).collect();
        let withheld = Withheld {
            users: users.len() as u32,
            inputs: others.len() as u64,
            ..Withheld::default()
        };
        (own.into_iter().flat_map(|(input, _)| input.as_bytes().to_vec()).collect(), withheld)
    }
}
