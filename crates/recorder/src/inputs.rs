// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input events of the window, read from evdev devices ten times a second where there are any.

use crate::seat::Seat;
use std::collections::{BTreeSet, VecDeque};
use tipme_desktop::chords::{Chords, HotKeyPress};
use tipme_desktop::input::Devices;
use tipme_record::Nanos;
use tipme_record::incident::Withheld;
use tipme_record::records::Input;
use zerocopy::IntoBytes;

/// Events kept at most: a pointer that reports 1000 times a second for a minute.
const EVENTS_MAX: usize = 65536;

/// The devices and what they reported.
#[derive(Default)]
pub(crate) struct Inputs {
    devices: Option<Devices>,
    /// Each with the user whose it is, where one is known.
    kept: VecDeque<(Input, Option<u32>)>,
    seat: Seat,
    /// The user in front of the machine at the last look.
    seated: Option<u32>,
    /// Times that a device lost events because it was read too late.
    overruns: u64,
}

impl Inputs {
    /// Opens all devices; a machine without any has no input events of its own.
    pub(crate) fn open(chords: Chords) -> Inputs {
        Inputs::of(Devices::open().ok(), chords)
    }

    /// Reads these, and looks for hot keys in them.
    pub(crate) fn of(mut devices: Option<Devices>, chords: Chords) -> Inputs {
        if let Some(devices) = &mut devices {
            devices.watch(chords);
        }
        Inputs { devices, ..Inputs::default() }
    }

    /// Devices that are read.
    pub(crate) fn count(&self) -> usize {
        self.devices.as_ref().map_or(0, Devices::count)
    }

    /// Hot keys that were pressed since the last call, whether input is recorded or not.
    pub(crate) fn pressed(&mut self) -> Vec<HotKeyPress> {
        self.devices.as_mut().map(Devices::pressed).unwrap_or_default()
    }

    /// Another place to ask who sits in front of the machine.
    #[cfg(test)]
    pub(crate) fn ask(&mut self, seat: Seat) {
        self.seat = seat;
    }

    /// Takes in what came since the last call. Where somebody else sits there since, it is nobody's.
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

    /// Forgets what is older than `from`: to be called once hot keys are answered, whose windows reach further back.
    pub(crate) fn forget(&mut self, from: Nanos) {
        while self.kept.front().is_some_and(|(input, _)| input.head.ts < from) {
            self.kept.pop_front();
        }
    }

    /// Reads and forgets: while the user does not want input to be recorded.
    pub(crate) fn discard(&mut self) {
        if let Some(devices) = &mut self.devices {
            self.overruns = devices.drain(&mut Vec::new());
        }
    }

    /// Overruns since the start.
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns
    }

    /// The records from `from` on, as the incident of this user has them, and what it has not. Root has all.
    pub(crate) fn bytes(&self, from: Nanos, user: u32) -> (Vec<u8>, Withheld) {
        let recent = self.kept.iter().filter(|(input, _)| input.head.ts >= from);
        let (own, others): (Vec<_>, Vec<_>) = recent.partition(|(_, owner)| user == 0 || *owner == Some(user));
        let users: BTreeSet<u32> = others.iter().filter_map(|(_, owner)| *owner).collect();
        let withheld = Withheld { users: users.len() as u32, inputs: others.len() as u64, ..Withheld::default() };
        (own.into_iter().flat_map(|(input, _)| input.as_bytes().to_vec()).collect(), withheld)
    }
}
