// SPDX-License-Identifier: MIT OR Apache-2.0
//! Join of the inputs and drawings of one connection.

use crate::decode::messages::{PartPlace, Side};
use crate::decode::parts::Part;
use crate::join::answer::{COMPLETED, Interaction, Join, NOTICED, Reached};
use crate::join::asked_others::{AskedOthers, HITCH, paused_before};
use crate::join::drawing_cause::{Hop, InputBurst, Receipts, Steps, Trace};
use crate::join::input_work::{AskedAnswer, Work};
use crate::join::inputs::Delivery;
use crate::join::late_answers::{self, AnsweringThreads, worked_below};
use crate::join::milestones::{Handling, LONGER};
use crate::join::server_drawings::{Drawing, drawing};
use crate::join::starts::Presses;
use crate::timeline::bursts::FRAME;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Time after which a dequeued input without an answer counts as open: many are never answered.
const UNANSWERED_MIN: Nanos = Nanos::from_millis(500);

/// Window of the hot key's own presses, which no program answers.
const HOT_KEY: Nanos = Nanos::from_secs(1);

/// Minimum number of answered inputs of a client, for a missing answer to mean anything.
const ANSWERED_MIN: usize = 3;

/// Maximum time from the end of some work to the drawing of its result.
const SHOWN_WITHIN: Nanos = Nanos::from_millis(100);

/// State of the search for one input's answer.
#[derive(Clone, Default)]
struct AnswerSearch {
    first: Option<(PartPlace, Vec<Hop>)>,
    /// Last drawing that may answer it, if other inputs before it were answered first.
    maybe: Option<(PartPlace, Vec<Hop>)>,
    /// Burst that dequeued the input, if an exact join was found.
    burst: Option<(Tid, Nanos)>,
    /// A drawing that would have come anyway may have answered it: later ones are not the first.
    doubted: bool,
}

/// Data known before inputs and drawings are joined.
#[derive(Clone, Copy)]
pub(super) struct JoinContext<'a> {
    pub recording: &'a Recording,
    /// Processes that receive input.
    pub listeners: &'a BTreeSet<Pid>,
    pub handling: &'a Handling<'a>,
    pub work: &'a Work<'a>,
    pub presses: &'a Presses,
    /// Receipts of button releases by connection, with the receiving thread.
    pub releases: &'a HashMap<usize, BTreeMap<Nanos, Tid>>,
}

/// Joins the inputs and drawings of one connection.
pub(super) struct Joiner<'a> {
    context: JoinContext<'a>,
    recording: &'a Recording,
    stream: usize,
    deliveries: Vec<Delivery>,
    /// Receipts by thread and time, with the index of the input.
    dequeued: Vec<(Tid, Nanos, usize)>,
    answers: Vec<AnswerSearch>,
    /// Last drawing of each burst that dequeued input, with the path back from it.
    last: HashMap<(Tid, Nanos), (PartPlace, Vec<Hop>)>,
    /// First drawing of such a burst after a visible gap in the drawings of the connection.
    resumed: HashMap<(Tid, Nanos), (PartPlace, Vec<Hop>)>,
    /// The same after a gap longer than the threshold for completion.
    late: HashMap<(Tid, Nanos), (PartPlace, Vec<Hop>)>,
    /// Drawings with an unknown cause.
    doubtful: Vec<(Nanos, PartPlace)>,
    /// Drawings without a cause within the program itself, with the drawing thread.
    unexplained: Vec<(Nanos, Tid, PartPlace)>,
    /// Send times of answered inputs, by class.
    answered: HashMap<InputClass, Vec<Nanos>>,
    /// All drawings, in chronological order.
    drawn: Vec<(Nanos, PartPlace)>,
    /// Threads on the way of most answers.
    usual: Vec<Tid>,
    /// `true` for each key and click so far that led to a drawing.
    shown: Vec<bool>,
    family: OnceCell<AnsweringThreads>,
}

impl<'a> Joiner<'a> {
    pub(super) fn new(
        context: JoinContext<'a>,
        stream: usize,
        deliveries: Vec<Delivery>,
    ) -> Joiner<'a> {
        let receipts = deliveries
            .iter()
            .enumerate()
            .filter_map(|(index, delivery)| delivery.dequeued.map(|(at, tid)| (tid, at, index)));
        let mut dequeued: Vec<_> = receipts.collect();
        dequeued.sort_unstable();
        let answers = vec![AnswerSearch::default(); deliveries.len()];
        Joiner {
            context,
            recording: context.recording,
            stream,
            deliveries,
            dequeued,
            answers,
            last: HashMap::new(),
            resumed: HashMap::new(),
            late: HashMap::new(),
            doubtful: Vec::new(),
            unexplained: Vec::new(),
            answered: HashMap::new(),
            drawn: Vec::new(),
            usual: Vec::new(),
            shown: Vec::new(),
            family: OnceCell::new(),
        }
    }

    pub(super) fn join(mut self) -> Vec<Interaction> {
        let mut receipts = Receipts::default();
        self.dequeued.iter().for_each(|(tid, at, _)| receipts.add(*tid, *at));
        let (proxies, others) = self.relatives();
        let own: Vec<usize> = std::iter::once(self.stream).chain(proxies).collect();
        let mut steps = Steps::new(self.recording, &receipts, self.stream);
        self.trace(&mut steps, &own);
        if self.answers.iter().all(|answer| answer.first.is_none()) {
            self.trace(&mut steps, &others);
        }
        for answer in &mut self.answers {
            answer.first = answer.first.take().or(answer.maybe.take());
        }
        for (delivery, _) in
            self.deliveries.iter().zip(&self.answers).filter(|(_, answer)| answer.first.is_some())
        {
            self.answered.entry(delivery.class).or_default().push(delivery.sent);
        }
        let ways = self.answers.iter().filter_map(|answer| answer.first.as_ref());
        self.usual = late_answers::usual(ways.map(|(_, hops)| hops.as_slice()));
        (0..self.deliveries.len()).filter_map(|index| self.next(index)).collect()
    }

    /// Finds the cause of each drawing on some connections, in chronological order.
    fn trace(&mut self, steps: &mut Steps<'_>, streams: &[usize]) {
        for (place, sent) in drawings(self.recording, streams) {
            let trace = steps.back(sent.tid, sent.ts);
            self.drawn.push((sent.ts, place));
            self.assign(place, sent, trace);
        }
        self.drawn.sort_unstable();
        self.doubtful.sort_unstable();
        self.unexplained.sort_unstable();
    }

    /// Returns the other connections of the client and its descendants to the same display:
    /// proxies, and the others.
    ///
    /// A browser has its pages drawn by a process that receives no input. A program started from a
    /// terminal receives its own input, and its drawings rarely answer that of the terminal.
    fn relatives(&self) -> (Vec<usize>, Vec<usize>) {
        let messages = &self.recording.messages;
        let Some(own) = messages.stream(self.stream) else { return (Vec::new(), Vec::new()) };
        let near = self
            .recording
            .descendants()
            .streams(own.server, own.client)
            .iter()
            .filter(|index| **index != self.stream);
        let near = near.filter_map(|index| Some((*index, messages.stream(*index)?)));
        let (mut proxies, mut others) = (Vec::new(), Vec::new());
        for (index, other) in near {
            let is_listener = self.context.listeners.contains(&other.client);
            let list =
                if other.client == own.client || !is_listener { &mut proxies } else { &mut others };
            list.push(index);
        }
        (proxies, others)
    }

    /// Assigns a drawing to the inputs that caused it. A drawing on another connection counts only
    /// with a known cause.
    fn assign(&mut self, place: PartPlace, sent: &Part, trace: Trace) {
        match trace {
            Trace::Input(bursts) => return self.assign_bursts(place, sent, &bursts),
            Trace::Lost if place.stream == self.stream => self.doubtful.push((sent.ts, place)),
            Trace::Lost | Trace::Elsewhere => {}
        }
        self.unexplained.push((sent.ts, sent.tid, place));
    }

    /// Assigns a drawing to the earliest burst with unanswered inputs; later bursts may have to
    /// share it, if no further drawing follows.
    fn assign_bursts(&mut self, place: PartPlace, sent: &Part, bursts: &[InputBurst]) {
        let mut given = false;
        for burst in bursts {
            let mut open = self.open_inputs(burst);
            if burst.doubtful {
                self.doubt(place, sent, &open);
                continue;
            }
            let doubtful: Vec<_> = open
                .extract_if(.., |(at, _)| self.recording.may_answer_nobody(burst.tid, *at, sent.ts))
                .collect();
            self.doubt(place, sent, &doubtful);
            open.retain(|(_, input)| !self.answers[*input].doubted);
            if open.is_empty() || !given {
                self.last.insert((burst.tid, burst.from), (place, burst.hops.clone()));
            }
            let paused =
                if open.is_empty() { paused_before(&self.drawn, sent.ts) } else { Nanos(0) };
            for (pauses, noticed) in [(&mut self.resumed, HITCH), (&mut self.late, COMPLETED)] {
                if paused > noticed {
                    pauses
                        .entry((burst.tid, burst.from))
                        .or_insert_with(|| (place, burst.hops.clone()));
                }
            }
            for (at, input) in &open {
                let answer = &mut self.answers[*input];
                let drawing = Some((place, since(&burst.hops, *at)));
                if given {
                    answer.maybe = drawing;
                } else {
                    *answer = AnswerSearch {
                        first: drawing,
                        burst: Some((burst.tid, burst.from)),
                        ..AnswerSearch::default()
                    };
                }
            }
            given |= !open.is_empty();
        }
    }

    /// Notes a drawing that may answer some inputs, but would have come anyway: only the order in
    /// time supports it.
    fn doubt(&mut self, place: PartPlace, sent: &Part, inputs: &[(Nanos, usize)]) {
        if !inputs.is_empty() {
            self.doubtful.push((sent.ts, place));
        }
        inputs.iter().for_each(|(_, input)| self.answers[*input].doubted = true);
    }

    /// Returns the unanswered inputs that a burst dequeued, with the time of their receipt.
    fn open_inputs(&self, burst: &InputBurst) -> Vec<(Nanos, usize)> {
        let after =
            self.dequeued.partition_point(|(by, at, _)| (*by, *at) <= (burst.tid, burst.until));
        let receipts = self.dequeued[..after].iter().rev();
        let own = receipts.take_while(|(by, at, _)| *by == burst.tid && *at >= burst.from);
        let open = own.take_while(|(_, _, input)| self.answers[*input].first.is_none());
        open.map(|(_, at, input)| (*at, *input)).collect()
    }

    /// Returns the interaction of an input, if any, and notes if a key or click led to a drawing.
    fn next(&mut self, index: usize) -> Option<Interaction> {
        let found = self.finish(index);
        if self.deliveries[index].class != InputClass::Motion {
            self.shown.push(found.as_ref().is_some_and(|one| one.drawing.is_some()));
        }
        found
    }

    /// Returns the interaction of an input, if any.
    fn finish(&mut self, index: usize) -> Option<Interaction> {
        let answer = std::mem::take(&mut self.answers[index]);
        let (place, hops) = match self.resumed(index, &answer).or(answer.first) {
            Some(first) => first,
            None => return self.inexact(index),
        };
        let drawing = drawing(self.recording, place)?;
        let found = self.answer(self.deliveries[index], Join::Exact, drawing, hops, answer.burst);
        let completed =
            self.asked(index).then(|| self.others().completed(&self.deliveries[index], found.end));
        let completed = completed
            .flatten()
            .or_else(|| self.late(index, answer.burst?))
            .or_else(|| self.worked(index, answer.burst?, found.end));
        Some(Interaction { later: completed.into_iter().collect(), ..found })
    }

    /// Returns the data for the search for answers of others.
    fn others(&self) -> AskedOthers<'_> {
        let JoinContext { work, presses, releases, .. } = self.context;
        let releases = releases.get(&self.stream);
        let (unexplained, drawn, shown) =
            (self.unexplained.as_slice(), self.drawn.as_slice(), self.shown.as_slice());
        AskedOthers {
            recording: self.recording,
            work,
            presses,
            releases,
            unexplained,
            drawn,
            answered: &self.answered,
            shown,
        }
    }

    /// Returns the answer of others to an input that has no answer otherwise.
    fn by_others(&self, index: usize) -> Option<Interaction> {
        let AskedAnswer { place, hops, sure } =
            self.asked(index).then(|| self.others().any(&self.deliveries[index]))??;
        let join = if sure { Join::Exact } else { Join::Speculative };
        Some(self.answer(self.deliveries[index], join, drawing(self.recording, place)?, hops, None))
    }

    /// Returns `true` for the last of several keys and clicks that were received together: requests
    /// to others count for that one.
    fn asked(&self, index: usize) -> bool {
        let taken = self.deliveries[index].dequeued.map(|(at, _)| at);
        taken.is_some() && self.dequeued_presses(index + 1).next() != taken
    }

    /// Returns the drawing with which a client that drew frame after frame resumed after it had
    /// drawn nothing for most of the time since it received an input: the earlier frames were
    /// already under way, and do not show the answer.
    fn resumed(&self, index: usize, answer: &AnswerSearch) -> Option<(PartPlace, Vec<Hop>)> {
        let (at, _) = self.deliveries[index].dequeued?;
        let (place, hops) = self.resumed.get(&answer.burst?)?;
        let sent = self
            .recording
            .messages
            .stream(place.stream)?
            .side(Side::RequestSent)
            .get(place.part)?;
        let still = paused_before(&self.drawn, sent.ts);
        let stood = still > HITCH
            && still.0 >= sent.ts.since(at).0 / 4 * 3
            && self.recording.draws_frames(sent.tid, at);
        stood.then(|| (*place, since(hops, at)))
    }

    /// Returns a drawing caused by a key or click long after its first one, without a drawing in
    /// between: an echo does not answer a request that takes longer. Drawings after the next key or
    /// click belong to that one.
    fn late(&self, index: usize, burst: (Tid, Nanos)) -> Option<Reached> {
        let delivery = self.deliveries[index];
        let (at, _) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        let (place, hops) = self.late.get(&burst)?;
        let drawing = drawing(self.recording, *place)?;
        let next = self.dequeued_presses(index + 1).find(|next| *next > at);
        let own = next.is_none_or(|next| drawing.sent <= next) && drawing.end < self.recording.mark;
        own.then(|| Reached::drawn(drawing, since(hops, at)))
    }

    /// Returns the last drawing that a key or click caused, if programs below the client, which had
    /// rested, began to work with the input and worked until then.
    fn worked(&self, index: usize, burst: (Tid, Nanos), responded: Nanos) -> Option<Reached> {
        let delivery = self.deliveries[index];
        let (at, _) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        let (place, _) = self.last.get(&burst)?;
        let drawing = drawing(self.recording, *place)?;
        let [took, response] = [drawing.end, responded].map(|end| end.since(delivery.input));
        let next = self.dequeued_presses(index + 1).find(|next| *next > at);
        if took < NOTICED.max(Nanos(response.0.saturating_mul(LONGER)))
            || next.is_some_and(|next| next < drawing.sent)
        {
            return None;
        }
        let (until, hops) = worked_below(self.recording, delivery.client, at)?;
        (until.after(SHOWN_WITHIN) >= drawing.sent).then(|| Reached::drawn(drawing, hops))
    }

    fn inexact(&self, index: usize) -> Option<Interaction> {
        let Some(place) = self.by_time(index).or_else(|| self.piled(index)) else {
            return self.by_others(index).or_else(|| self.unanswered(index));
        };
        let (delivery, drawing) = (self.deliveries[index], drawing(self.recording, place)?);
        let hops = self.busy_meanwhile(&delivery, &drawing);
        Some(self.answer(delivery, Join::Speculative, drawing, hops, None))
    }

    /// Returns the receipts of keys and clicks from an index on.
    fn dequeued_presses(&self, from: usize) -> impl Iterator<Item = Nanos> {
        let presses = self
            .deliveries
            .iter()
            .skip(from)
            .filter(|delivery| delivery.class != InputClass::Motion);
        presses.filter_map(|delivery| delivery.dequeued).map(|(at, _)| at)
    }

    /// Returns the threads that were busy one after the other until a drawing of a thread that was
    /// not.
    fn busy_meanwhile(&self, delivery: &Delivery, drawing: &Drawing) -> Vec<Hop> {
        let Some((at, _)) = delivery.dequeued else { return Vec::new() };
        let rest = self.recording.pause_after(drawing.tid, at, Pause::Rest);
        if rest.after(FRAME) >= drawing.sent {
            return Vec::new();
        }
        let family = self.family(delivery);
        family.busy_one_after_the_other(self.recording, at, drawing.sent).unwrap_or_default()
    }

    /// Returns the next drawing, if the answering threads were busy from the input until then:
    /// inputs that pile up are answered in their order, and the drawing shows the effect of all of
    /// them.
    fn piled(&self, index: usize) -> Option<PartPlace> {
        let delivery = self.deliveries[index];
        let (at, tid) = delivery.dequeued?;
        let (sent, place) = *self.drawn.get(self.drawn.partition_point(|(sent, _)| *sent <= at))?;
        (self.is_pending(&delivery, at, tid, sent) && self.is_busy(&delivery, at, sent))
            .then_some(place)
    }

    /// Returns `true` if an answer may still have been due. Motions and clicks need none: once the
    /// thread that dequeued one went idle, nothing was pending any more.
    fn is_pending(&self, delivery: &Delivery, at: Nanos, tid: Tid, sent: Nanos) -> bool {
        delivery.class == InputClass::Key
            || self.recording.pause_after(tid, at, Pause::Rest).after(FRAME) >= sent
    }

    /// Returns `true` if the threads that answer a client's input were busy all the time: a join by
    /// time alone has no other evidence.
    fn is_busy(&self, delivery: &Delivery, lo: Nanos, hi: Nanos) -> bool {
        self.family(delivery).busy_throughout(self.recording, lo, hi)
    }

    fn family(&self, delivery: &Delivery) -> &AnsweringThreads {
        self.family.get_or_init(|| {
            AnsweringThreads::find(self.recording, delivery.client, delivery.server, &self.usual)
        })
    }

    fn answer(
        &self,
        delivery: Delivery,
        join: Join,
        first: Drawing,
        hops: Vec<Hop>,
        burst: Option<(Tid, Nanos)>,
    ) -> Interaction {
        let last =
            burst.and_then(|burst| self.last.get(&burst)).filter(|(last, _)| *last != first.place);
        let settled =
            last.and_then(|(last, _)| drawing(self.recording, *last)).map(|last| last.end);
        let censored = first.end >= self.recording.mark;
        Interaction { settled, censored, ..Interaction::answered(delivery, join, first, hops) }
    }

    /// Returns the first doubtful drawing, if the client dequeued no other input before it: the
    /// next frame, or a later one until which the client was busy.
    fn by_time(&self, index: usize) -> Option<PartPlace> {
        let delivery = self.deliveries[index];
        let (at, tid) = delivery.dequeued?;
        let first = self.doubtful.partition_point(|(sent, _)| *sent <= at);
        let (sent, place) = *self.doubtful.get(first)?;
        let later = self
            .deliveries
            .iter()
            .filter_map(|other| other.dequeued)
            .any(|(dequeued, _)| dequeued > at && dequeued <= sent);
        let due = sent.since(at) <= FRAME
            || self.is_pending(&delivery, at, tid, sent) && self.is_busy(&delivery, at, sent);
        (!later && due).then_some(place)
    }

    /// Returns an input without an answer as open, if the client did not receive it, or is still at
    /// work on it. Most motions and clicks are never answered: for those, the thread that dequeued
    /// them must not have gone idle since.
    fn unanswered(&self, index: usize) -> Option<Interaction> {
        let delivery = self.deliveries[index];
        let mark = self.recording.mark;
        let alive = self
            .recording
            .tasks
            .process(delivery.client, mark)
            .is_none_or(|life| life.until >= mark);
        let open = match delivery.dequeued {
            _ if !alive => false,
            None => !self.recording.is_idle_at(self.reader(), mark),
            Some((at, tid)) => {
                self.recording.pause_after(tid, at, Pause::Rest) >= mark && !self.went_on(tid, at)
                    || delivery.class == InputClass::Key && self.stuck(index, at)
            }
        };
        open.then(|| Interaction::open(delivery, mark))
    }

    /// Returns `true` if a thread that received an input is done with it, although it did not go
    /// idle: it answered other inputs promptly, or computes all the time.
    fn went_on(&self, tid: Tid, at: Nanos) -> bool {
        let mark = self.recording.mark;
        self.context.handling.went_on(tid, at, mark).is_some()
            || self.recording.is_busy_anyway(tid, at, (at, mark))
    }

    /// Returns the thread that reads this connection. If it is idle, nothing is queued for it: a
    /// record was lost.
    fn reader(&self) -> Tid {
        let stream = self.recording.messages.stream(self.stream);
        stream.map_or(Tid(0), |stream| stream.reader(Side::EventReceived))
    }

    /// Returns `true` if the answer is still due: the client usually answers, has answered nothing
    /// since, and its answering threads were busy or stopped all the time.
    fn stuck(&self, index: usize, at: Nanos) -> bool {
        let delivery = self.deliveries[index];
        let own_keys = if self.recording.meta.trigger == "hotkey" { HOT_KEY } else { Nanos(0) };
        let long = self.recording.mark.since(at) >= UNANSWERED_MIN.after(own_keys);
        let answered = self.answered.get(&delivery.class).map_or(&[][..], Vec::as_slice);
        let usual = answered.len() >= ANSWERED_MIN
            && answered.last().is_some_and(|last| *last < delivery.sent);
        long && usual
            && (self.is_busy(&delivery, at, self.recording.mark)
                || self.is_entrusted(&delivery, at))
    }

    /// Returns `true` if a thread of the client or its descendants has waited since then for
    /// another thread of its process to which it handed the work, and which still works.
    fn is_entrusted(&self, delivery: &Delivery, at: Nanos) -> bool {
        let mark = self.recording.mark;
        let threads = self.recording.descendants().threads(delivery.client).iter();
        let mut last = threads.filter_map(|tid| self.recording.timeline.before(*tid, mark));
        last.any(|span| {
            span.start >= at
                && self.recording.waits.is_for_condition(&span)
                && self.recording.entrusted(&span).is_some()
        })
    }
}

/// Returns the parts that draw on some connections, by time.
fn drawings<'a>(recording: &'a Recording, streams: &[usize]) -> Vec<(PartPlace, &'a Part)> {
    let mut drawings = Vec::new();
    for index in streams {
        let Some(stream) = recording.messages.stream(*index) else { continue };
        let parts = stream.side(Side::RequestSent).iter().enumerate();
        let draws = parts.filter(|(_, sent)| recording.messages.draws(stream, sent));
        drawings.extend(draws.map(|(part, sent)| (PartPlace { stream: *index, part }, sent)));
    }
    drawings.sort_by_key(|(place, sent)| (sent.ts, *place));
    drawings
}

/// Returns the hops from a receipt on: the earliest hop begins there.
fn since(hops: &[Hop], at: Nanos) -> Vec<Hop> {
    let mut hops = hops.to_vec();
    if let Some(last) = hops.last_mut() {
        last.lo = at.min(last.hi);
    }
    hops
}
