// SPDX-License-Identifier: MIT OR Apache-2.0
//! Milestones of an input: the first response is shown, the input is handled, its work is
//! completed.
//!
//! *Handled* is the backbone: the thread that dequeued the input waits for the next event again. It
//! depends only on receipts and thread states. If that thread hands its inputs to another one of
//! its process, that one counts as well. Behind a terminal, the program that reads it decides: see
//! [`crate::join::commands`].

use crate::join::answer::{
    COMPLETED, Interaction, Join, Milestone, NOTICED, Reached, SEPARATE_MIN, Task,
};
use crate::join::commands;
use crate::join::compositing_managers::{self, compositors};
use crate::join::drawing_cause::Hop;
use crate::join::ended_children;
use crate::join::input_work::Work;
use crate::join::inputs::Delivery;
use crate::join::prompt_answers::{PromptAnswers, WENT_ON_MIN};
use crate::join::selections;
use crate::join::sleeping_threads;
use crate::join::starts;
use crate::join::stopped_processes::Stops;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{Signature, is_condition, is_lone};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Minimum percentage of the inputs for which an input thread wakes a helper thread, and minimum
/// number of wakeups from the same wait.
const HANDED_PERCENT: usize = 60;
const HANDED_MIN: usize = 3;

/// Maximum number of segments searched for the return of a helper thread.
const SEGMENTS_MAX: usize = 65_536;

/// Maximum number of wakeups considered per burst.
const WAKES_MAX: usize = 64;

/// Maximum time from the receipt of an input to its handover.
const HANDED_WITHIN: Nanos = Nanos::from_millis(500);

/// Threshold from which a busy thread is noticed while another input is waiting.
const NOTICED_WAITING: Nanos = Nanos::from_millis(200);

/// Finds the time at which each input was handled.
pub(crate) struct Handling<'a> {
    recording: &'a Recording,
    /// Helper threads by input thread, with the waits that its wakeups end.
    helpers: HashMap<Tid, Vec<HelperThread>>,
    /// Send and receipt of the inputs of each stream, by the time of the send.
    waiting: BTreeMap<usize, Vec<(Nanos, Nanos)>>,
    prompt: PromptAnswers<'a>,
}

struct HelperThread {
    tid: Tid,
    event_waits: BTreeSet<Signature>,
}

impl HelperThread {
    /// Returns `true` for a wait that wakeups for inputs end, or for unspecified further work. A
    /// wait for a condition elsewhere that ends, if at all, by a timeout is a sleep in the middle
    /// of the work.
    fn is_event_wait(&self, recording: &Recording, span: &Span) -> bool {
        let wait = recording.waits.find(span).filter(|_| span.is_blocked());
        let Some(wait) = wait else { return recording.is_event_wait(span) };
        let sleeps = is_condition(wait)
            && span.task_waker().is_none()
            && !self.waits_for_nobody(recording, span);
        self.event_waits.contains(&recording.signature(wait))
            || !sleeps && recording.is_event_wait(span)
    }

    /// Returns the same for a thread that updates its program's display: in a condition elsewhere
    /// it waits for another thread, in a poll of a single file elsewhere for an answer.
    fn is_event_loop(&self, recording: &Recording, span: &Span) -> bool {
        let wait = recording.waits.find(span).filter(|_| span.is_blocked());
        let Some(wait) = wait else { return recording.is_event_wait(span) };
        let elsewhere =
            is_lone(wait) || is_condition(wait) && !self.waits_for_nobody(recording, span);
        self.event_waits.contains(&recording.signature(wait))
            || !elsewhere && recording.is_event_wait(span)
    }

    /// Returns `true` if the thread still waits at the mark and no thread that it woke before is at
    /// work. The place of such a wait proves nothing: programs that create a lock for each wait,
    /// like Python, have a new one each time.
    fn waits_for_nobody(&self, recording: &Recording, span: &Span) -> bool {
        let from = span.start.before(HANDED_WITHIN);
        let woken = recording.wakes.by(self.tid, from, span.start).take(WAKES_MAX);
        let others = woken.filter(|(_, wakee)| *wakee != self.tid);
        let mut at_mark =
            others.filter_map(|(_, wakee)| recording.timeline.before(wakee, recording.mark));
        span.end >= recording.mark && at_mark.all(|span| recording.is_event_wait(&span))
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
            receipts
                .entry(delivery.dequeued.map_or(Tid(0), |(_, tid)| tid))
                .or_default()
                .push(dequeued);
        }
        waiting.values_mut().for_each(|list| list.sort_unstable());
        let helpers =
            receipts.iter().map(|(tid, receipts)| (*tid, helpers(recording, *tid, receipts)));
        Handling {
            recording,
            helpers: helpers.collect(),
            waiting,
            prompt: PromptAnswers::find(recording, deliveries),
        }
    }

    /// Returns the threads that handle the inputs of each client: those that receive them, and
    /// their helpers.
    pub(crate) fn threads(&self, deliveries: &[Delivery]) -> BTreeMap<Pid, BTreeSet<Tid>> {
        let mut threads: BTreeMap<Pid, BTreeSet<Tid>> = BTreeMap::new();
        for (client, tid) in
            deliveries.iter().filter_map(|delivery| Some((delivery.client, delivery.dequeued?.1)))
        {
            let helpers = self.helpers.get(&tid).into_iter().flatten().map(|helper| helper.tid);
            threads.entry(client).or_default().extend(helpers.chain([tid]));
        }
        threads
    }

    /// Returns `true` if one of these threads receives no input itself.
    pub(crate) fn is_helper(&self, tid: Tid) -> bool {
        !self.helpers.contains_key(&tid)
    }

    /// Returns a predicate for the event waits of one of these threads.
    pub(crate) fn event_waits(&self, tid: Tid) -> impl Fn(&Span) -> bool {
        let mut helpers = self.helpers.values().flatten();
        let helper = match self.is_helper(tid) {
            true => helpers.find(|helper| helper.tid == tid),
            false => None,
        };
        move |span| match helper {
            Some(helper) => helper.is_event_loop(self.recording, span),
            None => self.recording.is_event_wait(span),
        }
    }

    /// Returns the time at which a dequeued input was handled.
    pub(crate) fn handled(&self, delivery: &Delivery) -> Option<Reached> {
        let (at, tid) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        let own = self.own_return(tid, at);
        let direct = (own, vec![Hop::new(tid, at, own)]);
        let helpers = self.helpers.get(&tid).map_or(&[][..], Vec::as_slice).iter();
        let handed = helpers.filter_map(|helper| self.handed(helper, tid, at, own));
        let (last, hops) = handed.chain([direct.clone()]).max_by_key(|(at, _)| *at)?;
        // A thread that answers the next inputs by itself does not wait for the threads that it
        // woke.
        let (at, hops) = if self.went_on(tid, at, last).is_some() { direct } else { (last, hops) };
        let noticed = self.noticed(delivery, at);
        Some(Reached { noticed, ..Reached::handled(at, hops) })
    }

    /// Returns the time at which a thread is done with an input received at `at`: it waits for the
    /// next event, or answers other inputs promptly. A restless thread does not wait: only its
    /// drawings show its remaining work.
    fn own_return(&self, tid: Tid, at: Nanos) -> Nanos {
        if self.recording.is_restless(tid, Pause::EventWait, at) {
            return at;
        }
        let waits = self.recording.pause_after(tid, at, Pause::EventWait);
        self.went_on(tid, at, waits).unwrap_or(waits)
    }

    /// Returns the time at which a thread went on to the next inputs after one received at `at`, if
    /// before `until`.
    pub(crate) fn went_on(&self, tid: Tid, at: Nanos, until: Nanos) -> Option<Nanos> {
        self.prompt.went_on(tid, at, until)
    }

    /// Returns the time at which an input was handled that a thread dequeued in the middle of a
    /// sleep, and left until its end.
    fn slept_on(&self, delivery: &Delivery, paused: Nanos) -> Option<Reached> {
        let (dequeued, tid) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        let at = sleeping_threads::until(self.recording, tid, dequeued, paused)?;
        Some(Reached::handled(at, vec![Hop::new(tid, dequeued, at)]))
    }

    /// Returns the time at which a helper woken for an input is back in a wait that such wakeups
    /// end.
    fn handed(
        &self,
        helper: &HelperThread,
        tid: Tid,
        at: Nanos,
        own: Nanos,
    ) -> Option<(Nanos, Vec<Hop>)> {
        let recording = self.recording;
        let (woken, _) =
            recording.wakes.by(tid, at, own).find(|(_, wakee)| *wakee == helper.tid)?;
        if recording.is_restless(helper.tid, Pause::EventWait, woken) {
            return None;
        }
        let first = recording.timeline.at(helper.tid, woken)?.index;
        let mut spans = recording.timeline.spans_from(helper.tid, first).take(SEGMENTS_MAX);
        let end = spans.find(|span| span.start >= woken && helper.is_event_wait(recording, span));
        let end = end.map_or(recording.mark, |span| span.start);
        Some((end, vec![Hop::new(helper.tid, woken, end), Hop::new(tid, at, woken)]))
    }

    /// Returns the latency from which an unhandled input is noticed.
    fn noticed(&self, delivery: &Delivery, handled: Nanos) -> Nanos {
        let all = self.waiting.get(&delivery.stream).map_or(&[][..], Vec::as_slice);
        let last = all[..all.partition_point(|(sent, _)| *sent < handled)].last();
        let waited =
            last.is_some_and(|(sent, dequeued)| *sent > delivery.sent && *dequeued >= handled);
        if waited { NOTICED_WAITING } else { NOTICED }
    }
}

/// Returns the threads of the same process that a thread wakes for most of its inputs from a wait
/// that these wakeups end again and again. Inputs that came while such a thread was busy elsewhere
/// do not count, if they are the minority.
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
    let helpers = found.into_iter().filter_map(|(tid, waits)| {
        let often = waits.into_iter().filter(|(_, count)| *count >= HANDED_MIN);
        let (event_waits, counts): (BTreeSet<_>, Vec<_>) = often.unzip();
        let woken: usize = counts.iter().sum();
        let free = receipts.iter().filter(|at| is_at(recording, tid, **at, &event_waits)).count();
        let is_helper =
            woken > 0 && woken * 100 >= free * HANDED_PERCENT && free * 2 >= receipts.len();
        is_helper.then_some(HelperThread { tid, event_waits })
    });
    helpers.collect()
}

/// Returns `true` if a thread waits at one of these places at a time.
fn is_at(recording: &Recording, tid: Tid, at: Nanos, event_waits: &BTreeSet<Signature>) -> bool {
    let span = recording.timeline.at(tid, at);
    span.and_then(|span| recording.waits_in(&span))
        .is_some_and(|signature| event_waits.contains(&signature))
}

/// Factor of a response latency from which on a later milestone is reported in its place, and the
/// factor for the response of a later input.
pub(crate) const LONGER: u64 = 3;
const MOST: u64 = 2;

/// Adds late milestones after the response, and inputs without an answer that were handled late.
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
        let known =
            index.and_then(|index| found.get(index)).filter(|one| one.join != Join::Speculative);
        let response = known.map(|one| one.end);
        let slept_on =
            if response.is_none() { handling.slept_on(delivery, handled.at) } else { None };
        let handled = slept_on.unwrap_or(handled);
        let pasted = selections::pasted(recording, delivery, response.is_some(), &handled);
        let waits = pasted.as_ref().is_some_and(|pasted| pasted.milestone == Milestone::Handled);
        let (waited, pasted) = if waits { (pasted, None) } else { (None, pasted) };
        let handled = waited.unwrap_or(handled);
        let at = handled.at;
        let started = delivery.dequeued.and_then(|(at, _)| starts.remove(&(delivery.client, at)));
        let started = started.filter(|started| is_left(delivery, response, started));
        let completed = started
            .or_else(|| {
                let completed = completed(recording, (handling, work), delivery, response, at)?;
                (!is_covered(&responses, delivery, &completed)).then_some(completed)
            })
            .or_else(|| ended_children::completed(recording, delivery, deliveries));
        let handled = Some(handled).filter(|handled| {
            is_late(delivery, response, handled) && !is_covered(&responses, delivery, handled)
        });
        // A completion before the input is handled adds nothing.
        let completed = completed
            .filter(|completed| handled.as_ref().is_none_or(|handled| completed.at > handled.at));
        let shown = index
            .and_then(|index| compositing_managers::shown(recording, &compositors, &found[index]));
        let held_up = if is_terminal(recording, delivery) {
            None
        } else {
            stops.held_up(delivery, response.is_some())
        };
        let completed = pasted.or(completed);
        let held_up = held_up.filter(|reached| !is_covered(&responses, delivery, reached));
        let later: Vec<Reached> =
            shown.into_iter().chain(handled).chain(completed).chain(held_up).collect();
        match index {
            Some(index) => {
                found[index].handled = Some(at);
                // A command covers the requests of its program to others.
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

/// Returns the time at which the work of an input, or the command that it started, was completed,
/// if something was left long after the response. Without a response it is the first visible
/// result. A program that takes key after key from its terminal, and has answered the next ones,
/// went on.
fn completed(
    recording: &Recording,
    (handling, work): (&Handling<'_>, &Work<'_>),
    delivery: &Delivery,
    response: Option<Nanos>,
    handled: Nanos,
) -> Option<Reached> {
    let reached = match is_terminal(recording, delivery) {
        true => {
            let command = commands::command(recording, delivery, handled);
            let command =
                command.filter(|reached| !went_on(recording, handling, delivery, reached));
            command.or_else(|| work.completed(delivery, handled))
        }
        false => work.completed(delivery, handled),
    };
    let noticed = if response.is_some() { COMPLETED } else { NOTICED };
    reached
        .filter(|reached| is_left(delivery, response, reached))
        .map(|reached| Reached { noticed, ..reached })
}

/// Returns `true` if the reader of a terminal answered later keys before it was done with this one:
/// its terminal drew each of them at once, and it wrote there meanwhile. What the kernel echoes is
/// drawn without a write by the reader.
fn went_on(
    recording: &Recording,
    handling: &Handling<'_>,
    delivery: &Delivery,
    reached: &Reached,
) -> bool {
    let hop = reached.hops.first().filter(|_| matches!(reached.task, Task::Input | Task::Typed));
    let (Some((at, tid)), Some(last)) = (delivery.dequeued, hop) else { return false };
    let reader = recording.tasks.pid(last.tid, last.hi);
    let written = recording.terminals.written_to(tid, at, reached.at);
    let own = written.filter(|(writer, at)| recording.tasks.pid(*writer, *at) == reader);
    own.take(WENT_ON_MIN).count() == WENT_ON_MIN && handling.went_on(tid, at, reached.at).is_some()
}

/// Key of an input; several inputs in one message may share it, in their order.
type DeliveryKey = (usize, Nanos, InputClass, Nanos);

fn key(delivery: &Delivery) -> DeliveryKey {
    (delivery.stream, delivery.sent, delivery.class, delivery.input)
}

/// Returns an input without an answer as an interaction, if it was handled or completed late.
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

/// Returns the exact responses that report a delay, by client.
fn responses(found: &[Interaction]) -> HashMap<Pid, Vec<(Nanos, Nanos)>> {
    let mut responses: HashMap<Pid, Vec<(Nanos, Nanos)>> = HashMap::new();
    for one in found.iter().filter(|one| one.join == Join::Exact && one.latency() > SEPARATE_MIN) {
        responses.entry(one.delivery.client).or_default().push((one.delivery.input, one.end));
    }
    responses
}

fn is_late(delivery: &Delivery, response: Option<Nanos>, handled: &Reached) -> bool {
    let span = handled.at.since(delivery.input);
    let is_reported = response.is_some_and(|end| {
        let latency = end.since(delivery.input);
        handled.at <= end.after(SEPARATE_MIN)
            || latency > SEPARATE_MIN && span.0 < LONGER * latency.0
    });
    span > handled.noticed && !is_reported
}

/// Returns `true` if the response of some input reports the same delay: keys that pile up are
/// handled one after the other. The response of a later input has to cover most of it.
fn is_covered(
    responses: &HashMap<Pid, Vec<(Nanos, Nanos)>>,
    delivery: &Delivery,
    reached: &Reached,
) -> bool {
    if reached.task != Task::Input {
        return false;
    }
    let span = reached.at.since(delivery.input).0;
    let of = responses.get(&delivery.client).map_or(&[][..], Vec::as_slice);
    of.iter().any(|(lo, hi)| {
        let times = if *lo <= delivery.input { LONGER } else { MOST };
        *lo < reached.at && *hi > delivery.input && times * hi.since(*lo).0 > span
    })
}

/// Returns `true` if some work was left long after the response.
fn is_left(delivery: &Delivery, response: Option<Nanos>, completed: &Reached) -> bool {
    completed.at.since(delivery.input) >= NOTICED
        && response.is_none_or(|end| completed.at > end.after(SEPARATE_MIN))
}

fn is_terminal(recording: &Recording, delivery: &Delivery) -> bool {
    delivery
        .dequeued
        .is_some_and(|(at, tid)| commands::writers(recording, tid, at).next().is_some())
}
