// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the handling of an input has come: the first response is shown, the input is handled, its work is completed.
//!
//! *Handled* is the backbone: the thread that took the input waits for the next event again. It stands on receipts and on
//! the states of threads alone. Where that thread hands its inputs to another one of its process, that one counts as
//! well. Behind a terminal the program that reads it has the last word: see [`crate::join::commands`].

use crate::join::answer::{COMPLETED, Interaction, Join, Milestone, NOTICED, Reached};
use crate::join::cause::Hop;
use crate::join::commands;
use crate::join::compositors::{self, compositors};
use crate::join::inputs::Told;
use crate::join::selections;
use crate::join::stops::Stops;
use crate::join::work::{self, Drawings};
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{Signature, signature};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_measure::Class;
use tipme_record::{Nanos, Pid, Tid};

/// A thread that works for the one that takes the inputs is woken in so many percent of them, and at least so often.
const HANDED_PERCENT: usize = 60;
const HANDED_MIN: usize = 5;

/// A wait of such a thread counts that was ended so often.
const HOMES_MIN: usize = 3;

/// Segments in which such a thread's return is looked for.
const SEGMENTS_MAX: usize = 65_536;

/// Wake-ups of one burst that are looked at.
const WAKES_MAX: usize = 64;

/// What an input is handed over within.
const HANDED_WITHIN: Nanos = Nanos::from_millis(500);

/// Another input was waiting: then to be busy is noticed earlier.
const NOTICED_WAITING: Nanos = Nanos::from_millis(200);

/// Finds out when each input was handled.
pub struct Handling<'a> {
    recording: &'a Recording,
    /// By thread that takes input, the threads that it hands over to, and the waits that this ends.
    helpers: HashMap<Tid, Vec<Helper>>,
    /// When inputs of each client were sent and taken, by the time of sending.
    waiting: BTreeMap<usize, Vec<(Nanos, Nanos)>>,
}

struct Helper {
    tid: Tid,
    homes: BTreeSet<Signature>,
}

impl<'a> Handling<'a> {
    pub fn new(recording: &'a Recording, told: &[Told]) -> Handling<'a> {
        let mut receipts: BTreeMap<Tid, Vec<Nanos>> = BTreeMap::new();
        let mut waiting: BTreeMap<usize, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for told in told {
            let taken = told.taken.map_or(recording.mark, |(at, _)| at);
            if told.class != Class::Motion {
                waiting.entry(told.stream).or_default().push((told.sent, taken));
            }
            receipts.entry(told.taken.map_or(Tid(0), |(_, tid)| tid)).or_default().push(taken);
        }
        waiting.values_mut().for_each(|list| list.sort_unstable());
        let helpers = receipts.iter().map(|(tid, receipts)| (*tid, helpers(recording, *tid, receipts)));
        Handling { recording, helpers: helpers.collect(), waiting }
    }

    /// When an input that was taken is handled.
    pub fn handled(&self, told: &Told) -> Option<Reached> {
        let (at, tid) = told.taken.filter(|_| told.class != Class::Motion)?;
        let own = self.recording.pause_after(tid, at, Pause::Home);
        let direct = (own, vec![Hop { tid, lo: at, hi: own }]);
        let helpers = self.helpers.get(&tid).map_or(&[][..], Vec::as_slice).iter();
        let handed = helpers.filter_map(|helper| self.handed(helper, tid, at, own));
        let (at, hops) = handed.chain([direct]).max_by_key(|(at, _)| *at)?;
        let noticed = self.noticed(told, at);
        Some(Reached { milestone: Milestone::Handled, at, drawing: None, hops, noticed, command: false })
    }

    /// When a helper that was woken for an input is back where such wake-ups find it.
    fn handed(&self, helper: &Helper, tid: Tid, at: Nanos, own: Nanos) -> Option<(Nanos, Vec<Hop>)> {
        let recording = self.recording;
        let (woken, _) = recording.wakes.by(tid, at, own).find(|(_, wakee)| *wakee == helper.tid)?;
        let first = recording.timeline.at(helper.tid, woken)?.index;
        let spans = (first..).map_while(|index| recording.timeline.span(helper.tid, index));
        let mut spans = spans.take(SEGMENTS_MAX);
        let home = |span: &Span| {
            let wait = recording.waits.find(span);
            wait.is_some_and(|wait| helper.homes.contains(&signature(wait))) || recording.is_home(span)
        };
        let end = spans.find(|span| span.start >= woken && home(span)).map_or(recording.mark, |span| span.start);
        Some((end, vec![Hop { tid: helper.tid, lo: woken, hi: end }, Hop { tid, lo: at, hi: woken }]))
    }

    /// From which time on it is noticed that an input is not handled.
    fn noticed(&self, told: &Told, handled: Nanos) -> Nanos {
        let all = self.waiting.get(&told.stream).map_or(&[][..], Vec::as_slice);
        let last = all[..all.partition_point(|(sent, _)| *sent < handled)].last();
        let waited = last.is_some_and(|(sent, taken)| *sent > told.sent && *taken >= handled);
        if waited { NOTICED_WAITING } else { NOTICED }
    }
}

/// The threads of the same process that a thread wakes for most of its inputs, where they wait in some way that those
/// wake-ups end again and again.
fn helpers(recording: &Recording, tid: Tid, receipts: &[Nanos]) -> Vec<Helper> {
    let mut counts: BTreeMap<Tid, (usize, HashMap<Signature, usize>)> = BTreeMap::new();
    for at in receipts {
        let until = recording.pause_after(tid, *at, Pause::Home).min(at.after(HANDED_WITHIN));
        let mut seen = BTreeSet::new();
        for (woken, wakee) in recording.wakes.by(tid, *at, until).take(WAKES_MAX) {
            let same = recording.tasks.pid(wakee, woken) == recording.tasks.pid(tid, woken);
            if !same || !seen.insert(wakee) {
                continue;
            }
            let (count, waits) = counts.entry(wakee).or_default();
            *count += 1;
            let span = recording.timeline.before(wakee, woken);
            if let Some(wait) = span.and_then(|span| recording.waits.find(&span)) {
                *waits.entry(signature(wait)).or_default() += 1;
            }
        }
    }
    let often = |count: usize| count >= HANDED_MIN && count * 100 >= receipts.len() * HANDED_PERCENT;
    let helper = |(tid, (_, waits)): (Tid, (usize, HashMap<_, _>))| {
        let homes: BTreeSet<_> =
            waits.into_iter().filter(|(_, count)| *count >= HOMES_MIN).map(|(signature, _)| signature).collect();
        (!homes.is_empty()).then_some(Helper { tid, homes })
    };
    counts.into_iter().filter(|(_, (count, _))| often(*count)).filter_map(helper).collect()
}

/// A response this long tells of the delay by itself.
const TELLING: Nanos = Nanos::from_millis(200);

/// A later milestone that is this many times as long as a response which tells of the delay is told instead.
const LONGER: u64 = 3;
const MOST: u64 = 2;

/// Adds the milestones after the response that came late, and the inputs without an answer that were handled late.
pub fn add(recording: &Recording, told: &[Told], found: &mut Vec<Interaction>) {
    let (handling, drawings) = (Handling::new(recording, told), Drawings::new(recording));
    let (compositors, stops) = (compositors(recording), Stops::find(recording, told));
    let places: HashMap<(usize, Nanos, Class), usize> =
        found.iter().enumerate().map(|(index, one)| (key(&one.told), index)).collect();
    let responses = responses(found);
    for told in told {
        let Some(handled) = handling.handled(told) else { continue };
        let index = places.get(&key(told)).copied();
        let known = index.and_then(|index| found.get(index)).filter(|one| one.join != Join::Speculative);
        let (response, at) = (known.map(|one| one.end), handled.at);
        let uncovered = |reached: &Reached| reached.command || !is_covered(&responses, told, reached.at);
        let completed = completed(recording, &drawings, told, response, at).filter(uncovered);
        let handled = Some(handled).filter(|handled| is_late(told, response, handled) && uncovered(handled));
        let shown = index.and_then(|index| compositors::shown(recording, &compositors, &found[index]));
        let held_up = if response.is_none() && !is_terminal(recording, told) { stops.held_up(told) } else { None };
        let later = shown.into_iter().chain(handled).chain(completed).chain(selections::pasted(recording, told));
        let later = later.chain(held_up.filter(uncovered));
        let later: Vec<Reached> = later.collect();
        match index {
            Some(index) => (found[index].handled, found[index].later) = (Some(at), later),
            None => found.extend(without_answer(recording, told, at, later)),
        }
    }
}

/// When the work of an input, or the command that it started, was completed, where something was left long after the
/// response. Without a response it is the first that the person sees.
fn completed(
    recording: &Recording,
    drawings: &Drawings,
    told: &Told,
    response: Option<Nanos>,
    handled: Nanos,
) -> Option<Reached> {
    let reached = match is_terminal(recording, told) {
        true => commands::command(recording, told, handled),
        false => work::completed(recording, drawings, told, handled),
    };
    let noticed = if response.is_some() { COMPLETED } else { NOTICED };
    reached.filter(|reached| is_left(told, response, reached)).map(|reached| Reached { noticed, ..reached })
}

fn key(told: &Told) -> (usize, Nanos, Class) {
    (told.stream, told.sent, told.class)
}

/// An input that nothing answers counts only where it was handled or completed late.
fn without_answer(recording: &Recording, told: &Told, handled: Nanos, later: Vec<Reached>) -> Option<Interaction> {
    let first = later.first()?;
    let open = Interaction::open(*told, handled).until(first, recording.mark);
    Some(Interaction { join: Join::Open, handled: Some(handled), later, ..open })
}

/// Exact responses that tell of a delay, by client.
fn responses(found: &[Interaction]) -> HashMap<Pid, Vec<(Nanos, Nanos)>> {
    let mut responses: HashMap<Pid, Vec<(Nanos, Nanos)>> = HashMap::new();
    for one in found.iter().filter(|one| one.join == Join::Exact && one.latency() > TELLING) {
        responses.entry(one.told.client).or_default().push((one.told.input, one.end));
    }
    responses
}

fn is_late(told: &Told, response: Option<Nanos>, handled: &Reached) -> bool {
    let span = handled.at.since(told.input);
    let told_by_response = response.is_some_and(|end| {
        let latency = end.since(told.input);
        handled.at <= end.after(TELLING) || latency > TELLING && span.0 < LONGER * latency.0
    });
    span > handled.noticed && !told_by_response
}

/// Whether the response of some input tells of the same delay: keys that pile up are handled one after the other. That
/// of a later input has to tell of most of it.
fn is_covered(responses: &HashMap<Pid, Vec<(Nanos, Nanos)>>, told: &Told, handled: Nanos) -> bool {
    let span = handled.since(told.input).0;
    let of = responses.get(&told.client).map_or(&[][..], Vec::as_slice);
    of.iter().any(|(lo, hi)| {
        let times = if *lo <= told.input { LONGER } else { MOST };
        *lo < handled && *hi > told.input && times * hi.since(*lo).0 > span
    })
}

/// Whether something was left to be seen long after the response.
fn is_left(told: &Told, response: Option<Nanos>, completed: &Reached) -> bool {
    completed.at.since(told.input) >= NOTICED && response.is_none_or(|end| completed.at > end.after(TELLING))
}

fn is_terminal(recording: &Recording, told: &Told) -> bool {
    told.taken.is_some_and(|(_, tid)| recording.terminals.writes(tid))
}
