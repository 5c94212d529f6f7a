// SPDX-License-Identifier: MIT OR Apache-2.0
//! The copy taken at the moment of a mark, in the recorder's main thread.

use crate::answered::LastPresses;
use crate::details::Details;
use crate::identity::realtime_now;
use crate::ids::IncidentIds;
use crate::inputs::Inputs;
use crate::learning::Learning;
use crate::losses::LossWatch;
use crate::sampler::Sampler;
use crate::unrecorded::Unrecorded;
use anyhow::{Context, Result};
use tipme_control::Trigger;
use tipme_desktop::clock;
use tipme_kernel::{CommandLine, Kernel};
use tipme_record::incident::{ClassHeld, Cost, Losses, Meta, Section, StoredBaseline};
use tipme_record::{Nanos, RingClass};
use tipme_store::PackedIncident;

/// Time for which the identity of an ended process stays known; a longer window extends it.
pub(crate) const EXITS_KEPT: Nanos = Nanos::from_secs(600);

/// Time after arming in which records may be incomplete.
const TAINT: Nanos = Nanos::from_millis(100);

/// Error context of a mark without enough memory.
pub(crate) const NO_MEMORY: &str = "cannot keep the incident in memory";

/// Maximum number of threads in a mark, at up to 400 bytes each with their waits; the rest are
/// counted as lost.
const THREADS_MAX: u32 = 65_536;

/// Text and circumstances of one mark.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) text: String,
    pub(crate) trigger: String,
    pub(crate) uid: u32,
    /// Time of the request, if known more precisely than the time of capture.
    pub(crate) at: Option<Nanos>,
}

impl Mark {
    /// Returns `true` if a hot key was pressed, which is answered on the screen.
    pub(crate) fn is_press(&self) -> bool {
        self.trigger == Trigger::Hotkey.name()
    }

    /// Returns `true` for a mark by a signal or by a hot key that the recorder read itself: there
    /// is no client to report the result.
    pub(crate) fn is_own(&self) -> bool {
        self.trigger == "signal" || self.at.is_some()
    }
}

/// Raw contents of an incident before it is sealed.
pub(crate) struct Capture {
    pub(crate) meta: Meta,
    /// Chunks of all classes.
    pub(crate) packed: PackedIncident,
    pub(crate) tasks: Vec<u8>,
    pub(crate) stacks: Vec<u8>,
    pub(crate) command_lines: Vec<CommandLine>,
    pub(crate) samples: Vec<u8>,
    pub(crate) inputs: Vec<u8>,
    pub(crate) losses: Losses,
    pub(crate) cost: Cost,
    pub(crate) baselines: Vec<StoredBaseline>,
}

/// State of the recorder that a capture reads.
pub(crate) struct CaptureSources<'a, 'k> {
    pub(crate) kernel: &'a mut Kernel<'k>,
    pub(crate) sampler: &'a Sampler,
    pub(crate) watch: &'a mut LossWatch,
    pub(crate) inputs: &'a Inputs,
    pub(crate) unrecorded: &'a Unrecorded,
    pub(crate) learning: &'a Learning,
    pub(crate) armed: Nanos,
    /// Window requested.
    pub(crate) window: Nanos,
    pub(crate) details: &'a Details,
    pub(crate) ids: &'a mut IncidentIds,
    pub(crate) answered: &'a LastPresses,
}

impl Capture {
    /// Copies everything from the start of the window on. Recording goes on meanwhile; records
    /// overwritten during the copy were the oldest. The chunks may be as large as the rings, so
    /// they are packed while they are copied.
    pub(crate) fn take(sources: CaptureSources<'_, '_>, mark: &Mark) -> Result<Capture> {
        let at = clock::now();
        let marked = mark.at.map_or(at, |asked| asked.min(at).max(sources.armed));
        let from = marked.before(sources.window);
        let (mut tasks, left_out) = sources.kernel.walk(THREADS_MAX)?;
        let kernel = &*sources.kernel;
        tasks.extend(kernel.requests(at));
        let mut packed = PackedIncident::in_memory().context(NO_MEMORY)?;
        let mut classes = Vec::new();
        for class in RingClass::ALL {
            let from = if class == RingClass::Exits { exits_from(from, marked) } else { from };
            let bytes = packed.pack(section(class), |take: &(dyn Fn(&[u8]) + Sync)| {
                kernel.copy_chunks(class, from, take)
            });
            let bytes = bytes.context(NO_MEMORY)?;
            // Read after the copy, so that it holds for the copied records.
            let held = held(class, sources.armed, kernel.overwritten_until(class), from);
            classes.push(ClassHeld { bytes, ..held });
        }
        let mut meta = meta(&sources, mark, marked, classes);
        meta.id = sources.ids.next(meta.mark_realtime_ns);
        let (inputs, withheld) = sources.inputs.bytes(from, mark.uid);
        meta.withheld = withheld;
        Ok(Capture {
            meta,
            packed,
            tasks,
            stacks: kernel.stacks()?,
            command_lines: kernel.command_lines()?,
            samples: sources.sampler.at_mark(from),
            losses: sources.watch.losses(kernel, sources.inputs.overruns(), from, left_out)?,
            cost: sources.watch.cost(),
            inputs,
            baselines: sources.learning.stored(),
        })
    }
}

fn section(class: RingClass) -> Section {
    match class {
        RingClass::Sched => Section::Sched,
        RingClass::Rare => Section::Rare,
        RingClass::Exits => Section::Exits,
    }
}

/// Returns the time from which on a mark covers ended processes, for a window that begins at
/// `from`.
pub(crate) fn exits_from(from: Nanos, marked: Nanos) -> Nanos {
    from.min(marked.before(EXITS_KEPT))
}

/// Returns the time back to which a class reaches if `from` was requested, and the reason for that
/// bound.
pub(crate) fn held(
    class: RingClass,
    armed: Nanos,
    overwritten_until: Nanos,
    from: Nanos,
) -> ClassHeld {
    let (held, bound) = match overwritten_until.max(armed) {
        held if held <= from => (held, "time"),
        held if held == armed => (held, "start"),
        held => (held, "memory"),
    };
    // The file keeps nothing older of this class.
    let held = if class == RingClass::Exits { held.max(from) } else { held };
    ClassHeld {
        name: class.name().to_owned(),
        held_from_ns: held.0,
        bytes: 0,
        bound: bound.to_owned(),
    }
}

fn meta(
    sources: &CaptureSources<'_, '_>,
    mark: &Mark,
    marked: Nanos,
    classes: Vec<ClassHeld>,
) -> Meta {
    let asked = marked.before(sources.window).0;
    let kept = classes
        .iter()
        .filter(|class| class.name != RingClass::Exits.name())
        .map(|class| class.held_from_ns);
    let details = sources.details.times(Nanos(asked), marked);
    let realtime = realtime_now().saturating_sub(clock::now().since(marked).0);
    Meta {
        mark_ns: marked.0,
        mark_realtime_ns: realtime,
        window_requested_ns: sources.window.0,
        held_from_ns: kept.fold(asked, u64::max),
        classes,
        armed_ns: sources.armed.0,
        tainted_until_ns: sources.armed.after(TAINT).0,
        classes_on: sources.kernel.classes_on().iter().map(|class| (*class).to_owned()).collect(),
        details: details.names(),
        detail_spans: details.asked,
        missing: sources.kernel.missing().to_vec(),
        input_stopped_ns: sources.unrecorded.within(Nanos(asked).max(sources.armed), marked).0,
        recorder_pid: std::process::id(),
        marked_by_uid: mark.uid,
        trigger: mark.trigger.clone(),
        answered_ns: if mark.is_press() { sources.answered.last(mark.uid, marked).0 } else { 0 },
        user_text: mark.text.clone(),
        page_size: rustix::param::page_size() as u64,
        ..Meta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_says_what_bounds_it() {
        for (class, armed, overwritten, held_from_ns, bound) in [
            (RingClass::Exits, 100, 0, 900, "time"),
            (RingClass::Sched, 100, 700, 700, "time"),
            (RingClass::Exits, 100, 950, 950, "memory"),
            (RingClass::Rare, 990, 0, 990, "start"),
        ] {
            let held = held(class, Nanos(armed), Nanos(overwritten), Nanos(900));
            assert_eq!((held.held_from_ns, held.bound.as_str()), (held_from_ns, bound));
        }
    }

    #[test]
    fn ended_processes_are_known_for_ten_minutes_or_the_window() {
        let seconds = Nanos::from_secs;
        assert_eq!(exits_from(seconds(4_960), seconds(5_000)), seconds(4_400));
        assert_eq!(exits_from(seconds(1_400), seconds(5_000)), seconds(1_400));
        assert_eq!(exits_from(seconds(0), seconds(40)), seconds(0));
    }
}
