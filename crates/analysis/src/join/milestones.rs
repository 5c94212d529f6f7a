// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the handling of an input has come: the first response is shown, the input is handled, its work is completed.
//!
//! *Handled* is the backbone: the thread that dequeued the input waits for the next event again. It stands on
//! receipts and on the states of threads alone. Where that thread hands its inputs to another one of its process,
//! that one counts as well. Behind a terminal the program that reads it has the last word: see
//! [`crate::join::commands`].

use crate::join::answer::{COMPLETED, Interaction, Join, Milestone, NOTICED, Reached, TELLING, Task};
use crate::join::commands;
use crate::join::compositing_managers::{self, compositors};
use crate::join::drawing_cause::Hop;
use crate::join::input_work::Work;
use crate::join::inputs::Delivery;
use crate::join::prompt_answers::PromptAnswers;
use crate::join::selections;
use crate::join::sleeping_threads;
use crate::join::starts;
use crate::join::stopped_processes::Stops;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{Signature, is_condition, is_lone};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// A thread that works for the one that takes the inputs is woken in so many percent of them, from the same wait so
/// often at least.
const HANDED_PERCENT: usize = 60;
const HANDED_MIN: usize = 3;

/// Segments in which such a thread's return is looked for.
const SEGMENTS_MAX: usize = 65_536;

/// Wake-ups of one burst that are looked at.
const WAKES_MAX: usize = 64;

/// What an input is handed over within.
const HANDED_WITHIN: Nanos = Nanos::from_millis(500);

/// Another input was waiting: then to be busy is noticed earlier.
const NOTICED_WAITING: Nanos = Nanos::from_millis(200);

/// Finds out when each input was handled.
pub(crate) struct Handling<'a> {
    recording: &'a Recording,
    /// By thread that takes input, the threads that it hands over to, and the waits that this ends.
    helpers: HashMap<Tid, Vec<HelperThread>>,
    /// When inputs of each client were sent and dequeued, by the time of sending.
    waiting: BTreeMap<usize, Vec<(Nanos, Nanos)>>,
    prompt: PromptAnswers<'a>,
}

struct HelperThread {
    tid: Tid,
    event_waits: BTreeSet<Signature>,
}

impl HelperThread {
    /// Whether it waits where wake-ups for inputs find it, or for whatever comes next. A wait for a condition elsewhere
    /// that ends, if at all, because its time is up is a sleep in the middle of the work.
    fn is_event_wait(&self, recording: &Recording, span: &Span) -> bool {
        let wait = recording.waits.find(span).filter(|_| span.segment.state == ThreadState::Blocked);
        let Some(wait) = wait else { return recording.is_event_wait(span) };
        let sleeps = is_condition(wait) && span.task_waker().is_none() && !self.waits_for_nobody(recording, span);
        self.event_waits.contains(&recording.signature(wait)) || !sleeps && recording.is_event_wait(span)
    }

    /// The same of a thread that does what its program shows: in a condition elsewhere it waits for another thread, in a
    /// poll of a single file elsewhere for an answer.
    fn is_event_loop(&self, recording: &Recording, span: &Span) -> bool {
        let wait = recording.waits.find(span).filter(|_| span.segment.state == ThreadState::Blocked);
        let Some(wait) = wait else { return recording.is_event_wait(span) };
        let elsewhere = is_lone(wait) || is_condition(wait) && !self.waits_for_nobody(recording, span);
        self.event_waits.contains(&recording.signature(wait)) || !elsewhere && recording.is_event_wait(span)
    }

    /// Whether it still waits at the mark while none is at work that it had woken before. Its place tells nothing then: who
    /// makes a lock for each wait, as Python does, has a new one each time.
    fn waits_for_nobody(&self, recording: &Recording, span: &Span) -> bool {
        let at_work = |tid: Tid| {
            let at_mark = recording.timeline.before(tid, recording.mark).filter(|_| tid != self.tid);
            at_mark.is_some_and(|span| !recording.is_event_wait(&span))
        };
        let mut woken = recording.wakes.by(self.tid, span.start.before(HANDED_WITHIN), span.start).take(WAKES_MAX);
        span.end >= recording.mark && !woken.any(|(_, wakee)| at_work(wakee))
    }
}

impl<'a> Handling<'a> {
    pub(crate) fn new(recording: &'a Recording, deliveries: &[Delivery]) -> Handling<'a> {
        let mut receipts: BTreeMap<Tid, Vec<Nanos>> = BTreeMap::new();
        let mut waiting: BTreeMap<usize, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for delivery in deliveries {
            let dequeued = delivery.dequeued.map_or(recording.mark, |(at, _)| at);
            if delivery.class != InputClass::Motion {
                waiting.entry(delivery.stream).or_default().push((delivery.sent, dequeued));
            }
            receipts.entry(delivery.dequeued.map_or(Tid(0), |(_, tid)| tid)).or_default().push(dequeued);
        }
        waiting.values_mut().for_each(|list| list.sort_unstable());
        let helpers = receipts.iter().map(|(tid, receipts)| (*tid, helpers(recording, *tid, receipts)));
        Handling { recording, helpers: helpers.collect(), waiting, prompt: PromptAnswers::find(recording, deliveries) }
    }

    /// The threads that handle the inputs of each client: those that take them, and those that these hand them over to.
    pub(crate) fn threads(&self, deliveries: &[Delivery]) -> BTreeMap<Pid, BTreeSet<Tid>> {
        let mut threads: BTreeMap<Pid, BTreeSet<Tid>> = BTreeMap::new();
        for (client, tid) in deliveries.iter().filter_map(|delivery| Some((delivery.client, delivery.dequeued?.1))) {
            let helpers = self.helpers.get(&tid).into_iter().flatten().map(|helper| helper.tid);
            threads.entry(client).or_default().extend(helpers.chain([tid]));
        }
        threads
    }

    /// Whether one of these threads takes no input itself.
    pub(crate) fn is_helper(&self, tid: Tid) -> bool {
        !self.helpers.contains_key(&tid)
    }

    /// Tells where one of these threads waits for the next event.
    pub(crate) fn event_waits(&self, tid: Tid) -> impl Fn(&Span) -> bool {
        let of_all = || self.helpers.values().flatten().find(|helper| helper.tid == tid);
        let helper = self.is_helper(tid).then(of_all).flatten();
        move |span| match helper {
            Some(helper) => helper.is_event_loop(self.recording, span),
            None => self.recording.is_event_wait(span),
        }
    }

    /// When an input that was dequeued is handled.
    pub(crate) fn handled(&self, delivery: &Delivery) -> Option<Reached> {
        let (at, tid) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        let own = self.own_return(tid, at);
        let direct = (own, vec![Hop::new(tid, at, own)]);
        let helpers = self.helpers.get(&tid).map_or(&[][..], Vec::as_slice).iter();
        let handed = helpers.filter_map(|helper| self.handed(helper, tid, at, own));
        let (last, hops) = handed.chain([direct.clone()]).max_by_key(|(at, _)| *at)?;
        // A thread that answers the next inputs by itself does not wait for those that it woke.
        let (at, hops) = if self.went_on(tid, at, last).is_some() { direct } else { (last, hops) };
        let noticed = self.noticed(delivery, at);
        Some(Reached { milestone: Milestone::Handled, at, drawing: None, hops, noticed, task: Task::Input })
    }

    /// When a thread that took an input at a time is done with it: it waits for the next event, or answers others at once.
    /// Who computes all the time does not wait: what such a thread still has to do is told by its drawings alone.
    fn own_return(&self, tid: Tid, at: Nanos) -> Nanos {
        if self.recording.is_restless(tid, Pause::EventWait, at) {
            return at;
        }
        let waits = self.recording.pause_after(tid, at, Pause::EventWait);
        self.went_on(tid, at, waits).unwrap_or(waits)
    }

    /// When a thread that had taken an input at a time went on to the next ones, if it did so before another.
    pub(crate) fn went_on(&self, tid: Tid, at: Nanos, until: Nanos) -> Option<Nanos> {
        self.prompt.went_on(tid, at, until)
    }

    /// When an input was handled that a thread dequeued in the middle of a sleep, where it lay until the end of that.
    fn slept_on(&self, delivery: &Delivery, paused: Nanos) -> Option<Reached> {
        let (dequeued, tid) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        let at = sleeping_threads::until(self.recording, tid, dequeued, paused)?;
        let hops = vec![Hop::new(tid, dequeued, at)];
        Some(Reached { milestone: Milestone::Handled, at, drawing: None, hops, noticed: NOTICED, task: Task::Input })
    }

    /// When a helper that was woken for an input is back where such wake-ups find it.
    fn handed(&self, helper: &HelperThread, tid: Tid, at: Nanos, own: Nanos) -> Option<(Nanos, Vec<Hop>)> {
        let recording = self.recording;
        let (woken, _) = recording.wakes.by(tid, at, own).find(|(_, wakee)| *wakee == helper.tid)?;
        if recording.is_restless(helper.tid, Pause::EventWait, woken) {
            return None;
        }
        let first = recording.timeline.at(helper.tid, woken)?.index;
        let spans = (first..).map_while(|index| recording.timeline.span(helper.tid, index));
        let mut spans = spans.take(SEGMENTS_MAX);
        let end = spans.find(|span| span.start >= woken && helper.is_event_wait(recording, span));
        let end = end.map_or(recording.mark, |span| span.start);
        Some((end, vec![Hop::new(helper.tid, woken, end), Hop::new(tid, at, woken)]))
    }

    /// From which time on it is noticed that an input is not handled.
    fn noticed(&self, delivery: &Delivery, handled: Nanos) -> Nanos {
        let all = self.waiting.get(&delivery.stream).map_or(&[][..], Vec::as_slice);
        let last = all[..all.partition_point(|(sent, _)| *sent < handled)].last();
        let waited = last.is_some_and(|(sent, dequeued)| *sent > delivery.sent && *dequeued >= handled);
        if waited { NOTICED_WAITING } else { NOTICED }
    }
}

/// The threads of the same process that a thread wakes for most of its inputs, where they wait in some way that those
/// wake-ups end again and again. Inputs that came while such a thread was busy elsewhere say nothing, if they are fewer.
fn helpers(recording: &Recording, tid: Tid, receipts: &[Nanos]) -> Vec<HelperThread> {
    let mut found: BTreeMap<Tid, HashMap<Signature, usize>> = BTreeMap::new();
    for at in receipts {
        let until = recording.pause_after(tid, *at, Pause::EventWait).min(at.after(HANDED_WITHIN));
        let mut seen = BTreeSet::new();
        for (woken, wakee) in recording.wakes.by(tid, *at, until).take(WAKES_MAX) {
            let same = recording.tasks.pid(wakee, woken) == recording.tasks.pid(tid, woken);
            if !same || !seen.insert(wakee) {
                continue;
            }
            let span = recording.timeline.before(wakee, woken);
            if let Some(signature) = span.and_then(|span| recording.waits_in(&span)) {
                *found.entry(wakee).or_default().entry(signature).or_default() += 1;
            }
        }
    }
    let helper = |(tid, waits): (Tid, HashMap<Signature, usize>)| {
        let often = waits.into_iter().filter(|(_, count)| *count >= HANDED_MIN);
        let (event_waits, counts): (BTreeSet<_>, Vec<_>) = often.unzip();
        let woken: usize = counts.iter().sum();
        let free = receipts.iter().filter(|at| is_at(recording, tid, **at, &event_waits)).count();
        let is_helper = woken > 0 && woken * 100 >= free * HANDED_PERCENT && free * 2 >= receipts.len();
        is_helper.then_some(HelperThread { tid, event_waits })
    };
    found.into_iter().filter_map(helper).collect()
}

/// Whether a thread waits at one of these places at a time.
fn is_at(recording: &Recording, tid: Tid, at: Nanos, event_waits: &BTreeSet<Signature>) -> bool {
    let span = recording.timeline.at(tid, at);
    span.and_then(|span| recording.waits_in(&span)).is_some_and(|signature| event_waits.contains(&signature))
}

/// A later milestone that is this many times as long as a response which tells of the delay is told instead.
const LONGER: u64 = 3;
const MOST: u64 = 2;

/// Adds the milestones after the response that came late, and the inputs without an answer that were handled late.
pub(crate) fn add(
    recording: &Recording,
    handling: &Handling<'_>,
    work: &Work<'_>,
    deliveries: &[Delivery],
    handled: Vec<(&Delivery, Reached)>,
    found: &mut Vec<Interaction>,
) {
    let (compositors, stops) = (compositors(recording), Stops::find(recording, deliveries));
    let mut places: HashMap<DeliveryKey, VecDeque<usize>> = HashMap::new();
    for (index, one) in found.iter().enumerate() {
        places.entry(key(&one.delivery)).or_default().push_back(index);
    }
    let responses = responses(found);
    let mut starts = starts::starts(recording, deliveries);
    for (delivery, handled) in handled {
        let index = places.get_mut(&key(delivery)).and_then(VecDeque::pop_front);
        let known = index.and_then(|index| found.get(index)).filter(|one| one.join != Join::Speculative);
        let response = known.map(|one| one.end);
        let slept_on = if response.is_none() { handling.slept_on(delivery, handled.at) } else { None };
        let handled = slept_on.unwrap_or(handled);
        let pasted = selections::pasted(recording, delivery, response.is_some(), &handled);
        let waits = pasted.as_ref().is_some_and(|pasted| pasted.milestone == Milestone::Handled);
        let (waited, pasted) = if waits { (pasted, None) } else { (None, pasted) };
        let handled = waited.unwrap_or(handled);
        let at = handled.at;
        let uncovered =
            |reached: &Reached| reached.task != Task::Input || !is_covered(&responses, delivery, reached.at);
        let started = delivery.dequeued.and_then(|(at, _)| starts.remove(&(delivery.client, at)));
        let started = started.filter(|started| is_left(delivery, response, started));
        let completed = || completed(recording, work, delivery, response, at).filter(uncovered);
        let completed = started.or_else(completed);
        let handled = Some(handled).filter(|handled| is_late(delivery, response, handled) && uncovered(handled));
        // What was completed while the input was still being handled says nothing more.
        let within = |completed: &Reached| handled.as_ref().is_some_and(|handled| completed.at <= handled.at);
        let completed = completed.filter(|completed| !within(completed));
        let shown = index.and_then(|index| compositing_managers::shown(recording, &compositors, &found[index]));
        let held_up = if is_terminal(recording, delivery) { None } else { stops.held_up(delivery, response.is_some()) };
        let completed = pasted.or(completed);
        let later = shown.into_iter().chain(handled).chain(completed).chain(held_up.filter(uncovered));
        let later: Vec<Reached> = later.collect();
        match index {
            Some(index) => {
                found[index].handled = Some(at);
                // A command tells of what its program asked others for.
                if later.iter().any(|reached| reached.task != Task::Input) {
                    found[index].later.clear();
                }
                found[index].later.extend(later);
            }
            None => found.extend(without_answer(recording, delivery, at, later)),
        }
    }
    found.extend(starts::by_compositors(recording, starts));
}

/// When the work of an input, or the command that it started, was completed, where something was left long after the
/// response. Without a response it is the first that the person sees.
fn completed(
    recording: &Recording,
    work: &Work<'_>,
    delivery: &Delivery,
    response: Option<Nanos>,
    handled: Nanos,
) -> Option<Reached> {
    let reached = match is_terminal(recording, delivery) {
        true => commands::command(recording, delivery, handled).or_else(|| work.completed(delivery, handled)),
        false => work.completed(delivery, handled),
    };
    let noticed = if response.is_some() { COMPLETED } else { NOTICED };
    reached.filter(|reached| is_left(delivery, response, reached)).map(|reached| Reached { noticed, ..reached })
}

/// Several inputs that came in one message may have the same, in their order.
type DeliveryKey = (usize, Nanos, InputClass, Nanos);

fn key(delivery: &Delivery) -> DeliveryKey {
    (delivery.stream, delivery.sent, delivery.class, delivery.input)
}

/// An input that nothing answers counts only where it was handled or completed late.
fn without_answer(
    recording: &Recording,
    delivery: &Delivery,
    handled: Nanos,
    later: Vec<Reached>,
) -> Option<Interaction> {
    let first = later.first()?;
    let open = Interaction::open(*delivery, handled).until(first, recording.mark);
    Some(Interaction { join: Join::Open, handled: Some(handled), later, ..open })
}

/// Exact responses that tell of a delay, by client.
fn responses(found: &[Interaction]) -> HashMap<Pid, Vec<(Nanos, Nanos)>> {
    let mut responses: HashMap<Pid, Vec<(Nanos, Nanos)>> = HashMap::new();
    for one in found.iter().filter(|one| one.join == Join::Exact && one.latency() > TELLING) {
        responses.entry(one.delivery.client).or_default().push((one.delivery.input, one.end));
    }
    responses
}

fn is_late(delivery: &Delivery, response: Option<Nanos>, handled: &Reached) -> bool {
    let span = handled.at.since(delivery.input);
    let told_by_response = response.is_some_and(|end| {
        let latency = end.since(delivery.input);
        handled.at <= end.after(TELLING) || latency > TELLING && span.0 < LONGER * latency.0
    });
    span > handled.noticed && !told_by_response
}

/// Whether the response of some input tells of the same delay: keys that pile up are handled one after the other. That
/// of a later input has to tell of most of it.
fn is_covered(responses: &HashMap<Pid, Vec<(Nanos, Nanos)>>, delivery: &Delivery, handled: Nanos) -> bool {
    let span = handled.since(delivery.input).0;
    let of = responses.get(&delivery.client).map_or(&[][..], Vec::as_slice);
    of.iter().any(|(lo, hi)| {
        let times = if *lo <= delivery.input { LONGER } else { MOST };
        *lo < handled && *hi > delivery.input && times * hi.since(*lo).0 > span
    })
}

/// Whether something was left to be seen long after the response.
fn is_left(delivery: &Delivery, response: Option<Nanos>, completed: &Reached) -> bool {
    completed.at.since(delivery.input) >= NOTICED && response.is_none_or(|end| completed.at > end.after(TELLING))
}

fn is_terminal(recording: &Recording, delivery: &Delivery) -> bool {
    delivery.dequeued.is_some_and(|(at, tid)| commands::writers(recording, tid, at).next().is_some())
}
