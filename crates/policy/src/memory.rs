// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory shortage: finds the sets above their share and throttles them.
//!
//! Memory is *short* when less than 1/16 of it is available, or tasks wait for it more than 10% of
//! the time. It is *plentiful* when more than 1/8 is available and tasks wait less than 1% of the
//! time. A shortage begins at once and ends when memory has been plentiful for 10 s. During a
//! shortage, a set that has more than 1/32 of all memory, is not part of the core and does not have
//! the keyboard focus is a *hog* until the shortage ends or the set gets the focus.
//!
//! Each second the groups of a hog are limited to nine tenths of their memory, down to 1/32 of all
//! memory for the hog; in addition they give back the amount that is missing to 1/16. A group in
//! which all tasks wait for memory more than 80% of the time is not squeezed further and gets a
//! tenth of its limit back each 30 s: it is slowed down, not stopped.
//!
//! A program can fill all memory between two samples. Each sample therefore also sets the room left
//! for all processes without attention, up to the point of shortage: if they share one group, the
//! kernel enforces it at once.

use crate::event::{GroupMemory, MemoryAction, MemoryGroup};
use crate::identity::{Identity, SetId};
use std::collections::BTreeMap;
use tipme_record::Nanos;

/// A limit of infinity, which removes an existing limit.
pub const UNLIMITED: u64 = u64::MAX;
/// Maximum number of groups considered per sample.
pub const GROUPS_MAX: usize = 1024;
/// Maximum number of concurrent hogs.
pub const HOGS_MAX: usize = 64;
/// Maximum number of concurrently limited groups.
pub(crate) const PRESSED_MAX: usize = 256;

/// Memory is short if less than this fraction of it is available.
const SHORT_DIVISOR: u64 = 16;
/// Memory is also short if tasks wait for it for a larger share of the time, in percent.
const SHORT_PERCENT: f32 = 10.0;
/// Fraction of memory that processes without attention keep, however short memory is.
const LEAST_DIVISOR: u64 = 8;
/// Memory is plentiful only if more than this fraction of it is available.
const PLENTY_DIVISOR: u64 = 8;
/// Memory is plentiful only if tasks wait for it for a smaller share of the time, in percent.
const PLENTY_PERCENT: f32 = 1.0;
/// Time for which memory must be plentiful before the hogs are released.
const PLENTY_FOR: Nanos = Nanos::from_secs(10);
/// A set with more than this fraction of memory is a hog. It keeps that much, divided among its
/// groups in proportion to their size.
const HOG_DIVISOR: u64 = 32;
/// A hog's group smaller than this fraction of such a share is left alone: it has little to give
/// back.
const SMALL_DIVISOR: u64 = 16;
/// Minimum time between two steps: a second, minus the margin by which a caller's timer may be
/// early.
const STEP: Nanos = Nanos::from_millis(900);
/// A group is strained if all its tasks wait for memory for a larger share of the time.
const STRAINED_PERCENT: f32 = 80.0;
/// Time for which a group must be strained before it gets memory back.
const STRAINED_FOR: Nanos = Nanos::from_secs(30);

/// Owner of memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum MemorySubject {
    Set(SetId),
    /// A cgroup without a known set.
    Group(String),
}

/// A sample, with its groups sorted by owner.
pub(crate) struct MemoryLook<'a> {
    pub(crate) now: Nanos,
    pub(crate) total: u64,
    pub(crate) available: u64,
    pub(crate) some_percent: f32,
    pub(crate) subjects: BTreeMap<MemorySubject, Vec<&'a GroupMemory>>,
}

impl MemoryLook<'_> {
    fn is_short(&self) -> bool {
        self.available < self.total / SHORT_DIVISOR || self.some_percent > SHORT_PERCENT
    }

    fn is_plentiful(&self) -> bool {
        self.available > self.total / PLENTY_DIVISOR && self.some_percent < PLENTY_PERCENT
    }

    /// Returns the room that processes without attention have until memory is short.
    pub(crate) fn room(&self) -> MemoryAction {
        let available = i64::try_from(self.available).unwrap_or(i64::MAX);
        MemoryAction::Room {
            more: available.saturating_sub_unsigned(self.total / SHORT_DIVISOR),
            least: self.total / LEAST_DIVISOR,
        }
    }

    fn share(&self) -> u64 {
        self.total / HOG_DIVISOR
    }
}

/// Returns the total size of the groups in bytes.
pub(crate) fn sum(groups: &[&GroupMemory]) -> u64 {
    groups.iter().fold(0, |sum, group| sum.saturating_add(group.bytes))
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Throttle {
    short: bool,
    plentiful_since: Option<Nanos>,
    /// Size of each hog in bytes at the time when it was found.
    hogs: BTreeMap<MemorySubject, u64>,
    /// Groups of hogs. A group that changes its owner is limited for one of them only.
    pressed: BTreeMap<MemoryGroup, GroupPressure>,
    pub(crate) dropped: u64,
}

/// Limits placed on a group.
#[derive(Clone, Debug)]
struct GroupPressure {
    /// The owning hog.
    of: MemorySubject,
    limit: Option<u64>,
    stepped: Option<Nanos>,
    strained_since: Option<Nanos>,
}

impl Throttle {
    pub(crate) fn is_short(&self) -> bool {
        self.short
    }

    /// Returns the sets that are hogs, each with its size in bytes at the time when it was found.
    pub(crate) fn hogs(&self) -> BTreeMap<SetId, u64> {
        let sets = self.hogs.iter().filter_map(|(subject, bytes)| match subject {
            MemorySubject::Set(id) => Some((*id, *bytes)),
            MemorySubject::Group(_) => None,
        });
        sets.collect()
    }

    /// Evaluates a sample of a machine with non-zero memory. Sets that are `exempt` never become
    /// hogs.
    pub(crate) fn look(
        &mut self,
        look: &MemoryLook,
        exempt: impl Fn(SetId) -> bool,
    ) -> Vec<MemoryAction> {
        self.judge(look);
        if !self.short {
            return self.stop();
        }
        self.find_hogs(look, exempt);
        let mut actions = self.hand_over(look);
        let mut missing = (look.total / SHORT_DIVISOR).saturating_sub(look.available);
        for (subject, groups) in by_size(look) {
            if self.hogs.contains_key(subject) {
                actions.extend(self.press(look, subject, groups, &mut missing));
            }
        }
        actions
    }

    /// Releases the hogs selected by `free`.
    pub(crate) fn release(&mut self, free: impl Fn(SetId) -> bool) -> Vec<MemoryAction> {
        self.hogs.retain(|subject, _| !matches!(subject, MemorySubject::Set(id) if free(*id)));
        self.relieve()
    }

    /// Releases all hogs; the next sample is judged from scratch.
    pub(crate) fn stop(&mut self) -> Vec<MemoryAction> {
        (self.short, self.plentiful_since) = (false, None);
        self.hogs.clear();
        self.relieve()
    }

    fn judge(&mut self, look: &MemoryLook) {
        self.short |= look.is_short();
        if !look.is_plentiful() {
            self.plentiful_since = None;
        } else if self.short {
            let since = *self.plentiful_since.get_or_insert(look.now);
            self.short = look.now.since(since) < PLENTY_FOR;
        }
    }

    fn find_hogs(&mut self, look: &MemoryLook, exempt: impl Fn(SetId) -> bool) {
        for (subject, groups) in by_size(look) {
            let spared = matches!(subject, MemorySubject::Set(id) if exempt(*id));
            let bytes = sum(groups);
            if spared
                || bytes <= look.share()
                || look.is_plentiful()
                || self.hogs.contains_key(subject)
            {
                continue;
            }
            if self.hogs.len() < HOGS_MAX {
                self.hogs.insert(subject.clone(), bytes);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Updates the owners of all groups and removes the limits of those that no longer belong to a
    /// hog.
    fn hand_over(&mut self, look: &MemoryLook) -> Vec<MemoryAction> {
        for (subject, groups) in &look.subjects {
            for group in groups {
                self.pressed
                    .entry(group.group.clone())
                    .and_modify(|pressed| pressed.of = subject.clone());
            }
        }
        self.relieve()
    }

    /// Squeezes each group of a hog by one step; `missing` is the number of bytes still to reclaim.
    fn press(
        &mut self,
        look: &MemoryLook,
        subject: &MemorySubject,
        groups: &[&GroupMemory],
        missing: &mut u64,
    ) -> Vec<MemoryAction> {
        let (all, small) = (sum(groups).max(1), look.share() / SMALL_DIVISOR);
        let mut actions = Vec::new();
        for group in groups.iter().filter(|group| group.bytes > small) {
            if self.pressed.len() >= PRESSED_MAX && !self.pressed.contains_key(&group.group) {
                self.dropped += 1;
                continue;
            }
            let floor =
                (u128::from(look.share()) * u128::from(group.bytes) / u128::from(all)) as u64;
            let floor = floor.max(small);
            let pressed = self
                .pressed
                .entry(group.group.clone())
                .or_insert_with(|| GroupPressure::new(subject));
            actions.extend(pressed.step(look, group, floor, missing));
        }
        actions
    }

    /// Removes the limits of processes selected by `free`, whichever hog they belonged to.
    pub(crate) fn release_processes(
        &mut self,
        free: impl Fn(Identity) -> bool,
    ) -> Vec<MemoryAction> {
        relieve(
            &mut self.pressed,
            |group, _| !matches!(group, MemoryGroup::Process(who) if free(*who)),
        )
    }

    /// Removes the limits of all groups that belong to no hog.
    fn relieve(&mut self) -> Vec<MemoryAction> {
        relieve(&mut self.pressed, |_, pressed| self.hogs.contains_key(&pressed.of))
    }
}

/// Removes the limits of all groups for which `stays` is false.
fn relieve(
    pressed: &mut BTreeMap<MemoryGroup, GroupPressure>,
    stays: impl Fn(&MemoryGroup, &GroupPressure) -> bool,
) -> Vec<MemoryAction> {
    let mut actions = Vec::new();
    pressed.retain(|group, pressed| {
        let stays = stays(group, pressed);
        if !stays && pressed.limit.is_some() {
            actions.push(MemoryAction::Relieve { group: group.clone(), bytes: UNLIMITED });
        }
        stays
    });
    actions
}

/// Returns the subjects with their groups, largest first.
fn by_size<'a, 'b>(look: &'b MemoryLook<'a>) -> Vec<(&'b MemorySubject, &'b [&'a GroupMemory])> {
    let mut list: Vec<_> =
        look.subjects.iter().map(|(subject, groups)| (subject, groups.as_slice())).collect();
    list.sort_by_key(|(_, groups)| std::cmp::Reverse(sum(groups)));
    list
}

impl GroupPressure {
    fn new(of: &MemorySubject) -> GroupPressure {
        GroupPressure { of: of.clone(), limit: None, stepped: None, strained_since: None }
    }

    fn step(
        &mut self,
        look: &MemoryLook,
        group: &GroupMemory,
        floor: u64,
        missing: &mut u64,
    ) -> Vec<MemoryAction> {
        if group.full_percent > STRAINED_PERCENT {
            return self.spare(look, &group.group).into_iter().collect();
        }
        self.strained_since = None;
        let rests = self.stepped.is_some_and(|stepped| look.now.since(stepped) < STEP);
        if rests || look.is_plentiful() {
            return Vec::new();
        }
        let first = self.stepped.replace(look.now).is_none();
        let cold = match &group.group {
            MemoryGroup::Process(who) if first => Some(MemoryAction::Cold(*who)),
            _ => None,
        };
        let gives = group.bytes.saturating_sub(floor).min(*missing);
        *missing -= gives;
        let reclaim =
            (gives > 0).then(|| MemoryAction::Reclaim { group: group.group.clone(), bytes: gives });
        let high = self.lower(look, group, floor);
        cold.into_iter().chain(high).chain(reclaim).collect()
    }

    /// Lowers the limit, never raises it.
    fn lower(
        &mut self,
        look: &MemoryLook,
        group: &GroupMemory,
        floor: u64,
    ) -> Option<MemoryAction> {
        let has = group.bytes.min(look.total);
        let bytes = (has - has / 10).max(floor);
        if self.limit.is_some_and(|limit| limit <= bytes) {
            return None;
        }
        self.limit = Some(bytes);
        Some(MemoryAction::High { group: group.group.clone(), bytes })
    }

    /// Leaves a strained group alone, and returns some memory to it once it has been strained for
    /// long enough.
    fn spare(&mut self, look: &MemoryLook, group: &MemoryGroup) -> Option<MemoryAction> {
        let since = *self.strained_since.get_or_insert(look.now);
        let limit = self
            .limit
            .filter(|limit| *limit < look.total && look.now.since(since) >= STRAINED_FOR)?;
        self.strained_since = Some(look.now);
        let bytes = limit.saturating_add((limit / 10).max(1)).min(look.total);
        self.limit = Some(bytes);
        Some(MemoryAction::Relieve { group: group.clone(), bytes })
    }
}
