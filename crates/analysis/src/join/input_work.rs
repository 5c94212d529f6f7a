// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work caused by an input: the way forward over wakeups to its last drawing.
//!
//! A thread works from its wakeup until its first wait that is neither for a device nor a lock nor
//! a frame: then it waits for another thread, and its later work belongs to that one. A thread that
//! inputs usually find at one place is not done while it waits for an answer at another place. The
//! search follows threads of the client and its descendants, bounded in depth and number.
//!
//! If an input has no answer otherwise, the search also follows the other processes woken in that
//! work, and the packets that may bring a thread the answer to its request: see
//! [`crate::join::network_answers`].

use crate::decode::messages::PartPlace;
use crate::join::answer::Reached;
use crate::join::drawing_cause::{Hop, Receipts, Steps, Trace};
use crate::join::inputs::Delivery;
use crate::join::network_answers::{Asker, NetworkAnswer, NetworkAnswers};
use crate::join::requests::{found_by_request, heard_again, works_on_request_until};
use crate::join::server_drawings::drawing;
use crate::join::work_steps::{COMPOSED_MAX, Replies, WaitPlaces, WorkStep, packets, way};
use crate::timeline::bursts::FRAME;
use crate::timeline::packets::in_softirq;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::Waited;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use tipme_record::{Nanos, Pid, Tid};

/// Maximum depth of wakeups that are followed.
const DEPTH_MAX: usize = 12;
/// Maximum depth for requests, which go to and fro with their replies, and maximum number of
/// stretches of work.
const REQUESTS_DEPTH_MAX: usize = 64;
const STEPS_MAX: usize = 2_000;

/// Maximum number of wakeups followed from one stretch of work.
const WAKES_MAX: usize = 64;

/// Maximum number of frame waits on one way: timers begin, draw and show a frame.
const FRAMES_MAX: usize = 3;

/// Maximum time for which a terminal emulator waits for more output before it draws.
const MORE_OUTPUT_MAX: Nanos = Nanos::from_millis(2);

/// Maximum time since the previous drawing of a thread that waits for a frame.
const DREW_BEFORE: Nanos = Nanos::from_millis(50);

/// Maximum time for which a thread works on an input before its next event.
const WORK_MAX: Nanos = Nanos::from_secs(10);

/// Minimum number of frames, within the time below, of a program that draws a spinner while it
/// waits.
const FRAMES_MIN: usize = 5;
const FRAMES_WITHIN: Nanos = Nanos::from_millis(500);

/// Maximum time from an input to a packet that it is assumed to have requested.
const ASKED_WITHIN: Nanos = Nanos::from_secs(1);

/// Maximum number of drawings that are searched for a preceding reply.
const REPLIED_MAX: usize = 1_024;

/// Maximum number of stretches of work followed to other processes, for all inputs together;
/// further inputs get no such answer.
const ASKED_STEPS_MAX: usize = 200_000;

/// Work caused by the inputs of a recording.
pub(crate) struct Work<'a> {
    recording: &'a Recording,
    places: WaitPlaces,
    /// Receipts of inputs by the threads of each client.
    receipts: HashMap<Pid, Receipts>,
    network: NetworkAnswers<'a>,
    asked_steps: Cell<usize>,
}

/// Drawing caused by other processes or hosts that were asked because of an input.
pub(crate) struct AskedAnswer {
    pub place: PartPlace,
    pub hops: Vec<Hop>,
    /// There is more evidence than the order in time.
    pub sure: bool,
}

/// Scope of the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Followed {
    /// Threads of the client and its descendants.
    Own,
    /// Processes that these asked as well.
    Asked(Ways),
}

/// Further ways to others and back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Waits of the input thread for its own timers: for the next frame, or for a blinking caret.
    pub timers: bool,
    /// Terminals: to a remote shell.
    pub terminals: bool,
    /// Processes that received a request, up to their next wait for one.
    pub requests: bool,
}

impl<'a> Work<'a> {
    /// Learns from all inputs, and from those with a known time of handling.
    pub(crate) fn new(
        recording: &'a Recording,
        deliveries: &[Delivery],
        handled: impl Iterator<Item = (&'a Delivery, Nanos)>,
    ) -> Work<'a> {
        let mut receipts: HashMap<Pid, Receipts> = HashMap::new();
        for (client, (at, tid)) in
            deliveries.iter().filter_map(|one| Some((one.client, one.dequeued?)))
        {
            receipts.entry(client).or_default().add(tid, at);
        }
        let (network, asked_steps) = (NetworkAnswers::new(recording), Cell::new(0));
        let mut work =
            Work { recording, places: WaitPlaces::default(), receipts, network, asked_steps };
        let all: Vec<WorkStep> =
            handled.flat_map(|(delivery, handled)| work.own_steps(delivery, handled)).collect();
        work.places = WaitPlaces::new(&all, recording);
        work
    }

    /// Returns the last drawing in the work that an input led to, and the way there.
    pub(crate) fn completed(&self, delivery: &Delivery, handled: Nanos) -> Option<Reached> {
        let steps = self.own_steps(delivery, handled);
        let last = steps.iter().enumerate().filter_map(|(index, step)| {
            let drawn = self.recording.drawings().within(step.tid, step.lo, step.hi).last();
            drawn.map(|(sent, place)| (*sent, *place, index))
        });
        let (sent, place, index) = last.max()?;
        let drawing = drawing(self.recording, place)?;
        Some(Reached::drawn(drawing, way(&steps, index, sent)))
    }

    /// Returns the first of the given drawings that an input, or the release of its button, led to
    /// by way of the network, or of processes that asked a remote host and got its answer. `blinks`
    /// identifies the drawings of a caret.
    pub(crate) fn answered_by_others(
        &self,
        delivery: &Delivery,
        release: Option<(Nanos, Tid)>,
        drawings: &[(Nanos, Tid, PartPlace)],
        terminals: bool,
        blinks: impl Fn(Nanos) -> bool,
    ) -> Option<AskedAnswer> {
        if drawings.is_empty() {
            return None;
        }
        let receipts = delivery.dequeued.into_iter().chain(release);
        let begins: Vec<WorkStep> =
            receipts.map(|at| self.begin(delivery, at, Followed::Own)).collect();
        // The way over a timer of the program proves less.
        [false, true].into_iter().find_map(|timers| {
            let ways = Ways { timers, terminals, requests: false };
            let steps = self.asked_steps(delivery, begins.clone(), ways);
            let answer =
                self.drawn_after_packet(&steps, drawings, |sent| timers && blinks(sent))?;
            self.network.keep(&answer.hops);
            Some(AskedAnswer { sure: answer.sure && !timers, ..answer })
        })
    }

    /// Returns the first of some drawings caused by the reply of another process that worked on a
    /// request for most of the time since the input.
    pub(crate) fn answered_by_request(
        &self,
        delivery: &Delivery,
        drawings: &[(Nanos, Tid, PartPlace)],
        terminals: bool,
    ) -> Option<AskedAnswer> {
        let ways = Ways { timers: false, terminals, requests: true };
        let begin = delivery.dequeued.map(|at| self.begin(delivery, at, Followed::Asked(ways)));
        let steps = self.asked_steps(delivery, begin.into_iter().collect(), ways);
        let replies = Replies::new(&steps);
        drawings.iter().take(REPLIED_MAX).find_map(|(sent, tid, place)| {
            let delay = sent.since(delivery.input);
            let woken = replies
                .woken(&steps, *tid, *sent)
                .find(|index| is_most(replies.waited(&steps, *index, *sent), delay));
            let hops = match woken {
                Some(index) => way(&steps, index, *sent),
                None => {
                    let index = replies.before(&steps, *sent).find(|index| {
                        let step = &steps[*index];
                        is_most(replies.waited(&steps, *index, step.hi), delay)
                            && self.sends(delivery, step, *sent)
                    })?;
                    let replied = steps[index].hi;
                    std::iter::once(Hop::new(*tid, replied, *sent))
                        .chain(way(&steps, index, replied))
                        .collect()
                }
            };
            Some(AskedAnswer { place: *place, hops, sure: true })
        })
    }

    /// Returns `true` if the process that was asked sends to the program over loopback. A program
    /// that polls for replies and draws right after one is not woken by the reply.
    fn sends(&self, delivery: &Delivery, step: &WorkStep, sent: Nanos) -> bool {
        self.recording.packet_reached(delivery.client, step.tid, step.lo, sent.after(COMPOSED_MAX))
    }

    /// Returns all stretches of work, including other processes, within the limit for all inputs.
    fn asked_steps(&self, delivery: &Delivery, begins: Vec<WorkStep>, ways: Ways) -> Vec<WorkStep> {
        if self.asked_steps.get() > ASKED_STEPS_MAX {
            return Vec::new();
        }
        let steps = self.steps(delivery, begins, Followed::Asked(ways));
        self.asked_steps.update(|all| all + steps.len());
        steps
    }

    /// Returns the first of some drawings in the stretches of work caused by packets, except those
    /// that are left out.
    fn drawn_after_packet(
        &self,
        steps: &[WorkStep],
        drawings: &[(Nanos, Tid, PartPlace)],
        is_left_out: impl Fn(Nanos) -> bool,
    ) -> Option<AskedAnswer> {
        let mut after_packet: HashMap<Tid, Vec<usize>> = HashMap::new();
        for (index, step) in
            steps.iter().enumerate().filter(|(index, _)| packets(steps, *index).next().is_some())
        {
            after_packet.entry(step.tid).or_default().push(index);
        }
        let drawn = drawings.iter().find_map(|drawing| {
            let mut indices = after_packet.get(&drawing.1)?.iter().copied();
            let index =
                indices.find(|index| (steps[*index].lo..=steps[*index].hi).contains(&drawing.0))?;
            (!is_left_out(drawing.0)).then_some((index, *drawing))
        });
        let (index, (sent, _, place)) =
            drawn.or_else(|| self.frame_after_packet(steps, drawings))?;
        let (hops, sure) =
            (way(steps, index, sent), packets(steps, index).all(|packet| packet.sure));
        Some(AskedAnswer { place, hops, sure })
    }

    /// Returns the frame in which a program that draws frame after frame, such as a spinner, shows
    /// the data of a sender that was asked: no wakeup leads from the packet to it.
    fn frame_after_packet(
        &self,
        steps: &[WorkStep],
        drawings: &[(Nanos, Tid, PartPlace)],
    ) -> Option<(usize, (Nanos, Tid, PartPlace))> {
        let begins = steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.packet.is_some_and(|packet| packet.sure));
        let (index, at) = begins.map(|(index, step)| (index, step.lo)).min_by_key(|(_, at)| *at)?;
        let place = drawings.partition_point(|(sent, ..)| *sent <= at);
        let next = *drawings.get(place)?;
        let before = drawings[..place]
            .iter()
            .rev()
            .take_while(|(sent, ..)| at.since(*sent) <= FRAMES_WITHIN);
        let frames = before.filter(|(_, tid, _)| *tid == next.1).count();
        (next.0.since(at) <= COMPOSED_MAX && frames >= FRAMES_MIN).then_some((index, next))
    }

    /// Returns the stretches of work of the client and its descendants after the receipt of an
    /// input.
    fn own_steps(&self, delivery: &Delivery, handled: Nanos) -> Vec<WorkStep> {
        let begin = delivery.dequeued.map(|at| self.first_step(delivery, at, handled));
        self.steps(delivery, begin.into_iter().collect(), Followed::Own)
    }

    /// Returns the stretch of work that begins where a thread received an input, at least until the
    /// input was handled. It ends earlier if the thread received and answered its next input within
    /// it: that input begins its own work.
    fn first_step(&self, delivery: &Delivery, at: (Nanos, Tid), handled: Nanos) -> WorkStep {
        let begin = self.begin(delivery, at, Followed::Own);
        if begin.lo < handled && handled < begin.hi && self.takes_input(delivery, handled) {
            return WorkStep { hi: handled, ..begin };
        }
        WorkStep { hi: begin.hi.max(handled.min(begin.lo.after(WORK_MAX))), ..begin }
    }

    /// Returns `true` if the client received an input at this time.
    fn takes_input(&self, delivery: &Delivery, at: Nanos) -> bool {
        self.receipts.get(&delivery.client).is_some_and(|receipts| receipts.any(at, at))
    }

    /// Returns the stretch of work that begins where a thread received an input.
    fn begin(&self, delivery: &Delivery, (at, tid): (Nanos, Tid), followed: Followed) -> WorkStep {
        let mut frames = 0;
        let hi = self.works_until(delivery, (tid, at), followed, &mut frames);
        WorkStep {
            tid,
            lo: at,
            hi,
            parent: usize::MAX,
            depth: 0,
            frames,
            packet: None,
            asked: false,
            behind_terminal: false,
        }
    }

    /// Returns all stretches of work from some on, each after the one that led to it.
    fn steps(
        &self,
        delivery: &Delivery,
        begins: Vec<WorkStep>,
        followed: Followed,
    ) -> Vec<WorkStep> {
        let mut reached: HashMap<Tid, Nanos> =
            begins.iter().rev().map(|step| (step.tid, step.lo)).collect();
        let (mut steps, mut seen, mut next) = (begins, HashSet::new(), 0);
        while next < steps.len() && steps.len() < STEPS_MAX {
            let step = steps[next];
            for (at, tid, packet) in self.leads_to(delivery, &step, reached[&step.tid], followed) {
                let mut frames = step.frames;
                if !self.is_followed(delivery, followed, tid, at) || !seen.insert((tid, at)) {
                    continue;
                }
                reached.entry(tid).or_insert(at);
                let asked = self.is_asked(delivery, &step, (tid, at), followed);
                let hi = match asked {
                    true => works_on_request_until(self.recording, tid, at),
                    false => self.works_until(delivery, (tid, at), followed, &mut frames),
                };
                // The way from an answer to the screen may be as deep as that to the question.
                let depth = if packet.is_some() { 1 } else { step.depth + 1 };
                let behind_terminal = step.behind_terminal || self.recording.terminals.reads(tid);
                steps.push(WorkStep {
                    tid,
                    lo: at,
                    hi,
                    parent: next,
                    depth,
                    frames,
                    packet,
                    asked,
                    behind_terminal,
                });
            }
            next += 1;
        }
        steps
    }

    /// Returns the threads that a stretch of work woke, and the packets that may have brought it an
    /// answer; `reached` is the first time at which its thread was reached.
    fn leads_to(
        &self,
        delivery: &Delivery,
        step: &WorkStep,
        reached: Nanos,
        followed: Followed,
    ) -> Vec<Lead> {
        let depth_max = if requests(followed) { REQUESTS_DEPTH_MAX } else { DEPTH_MAX };
        if step.depth >= depth_max {
            return Vec::new();
        }
        let wakes = self.recording.wakes.by(step.tid, step.lo, step.hi).take(WAKES_MAX);
        let wakes = wakes.map(|(at, wakee)| (at, wakee, None));
        let Followed::Asked(ways) = followed else { return wakes.collect() };
        let terminals = if ways.terminals {
            self.recording.terminals.reached(step.tid, step.lo, step.hi)
        } else {
            Vec::new()
        };
        let sent =
            self.recording.reached_by_packet(step.tid, step.lo, step.hi).filter(|_| ways.requests);
        let sent = sent.take(WAKES_MAX).map(|(at, wakee)| (at, wakee, None));
        let further = if ways.requests && step.asked {
            heard_again(self.recording, step.tid, step.hi)
        } else {
            None
        };
        let further = further.map(|at| (at, step.tid, None));
        let leads = wakes
            .chain(terminals.into_iter().map(|(reader, at)| (at, reader, None)))
            .chain(sent)
            .chain(further);
        if step.packet.is_some() || ways.requests {
            return leads.collect();
        }
        let takes_input = step.depth == 0 || self.recording.takes_display_input(step.tid);
        let passes_on = takes_input && self.network.draws_for_packets(step.tid, reached);
        let asker = Asker {
            tid: step.tid,
            reached,
            done: step.hi,
            until: reached.after(WORK_MAX).min(self.recording.mark),
            works_for_program: (!takes_input || passes_on)
                && is_near(self.recording, delivery.client, step.tid, step.lo),
        };
        // The process that reads a terminal echoes the typed keys, or a process to which it relays
        // them.
        let receipts =
            self.receipts.get(&delivery.client).filter(|_| step.behind_terminal || passes_on);
        let packets = self.network.answers_to(&asker, |at| {
            receipts.is_some_and(|receipts| receipts.any(at.before(ASKED_WITHIN), at))
        });
        leads.chain(packets.into_iter().map(|packet| (packet.at, step.tid, Some(packet)))).collect()
    }

    /// Returns `true` if another process works on a request that reached this thread or another of
    /// its threads. Processes of one program wake each other all the time, so among them only
    /// requests over loopback count.
    fn is_asked(
        &self,
        delivery: &Delivery,
        step: &WorkStep,
        (tid, at): (Tid, Nanos),
        followed: Followed,
    ) -> bool {
        let pid = self.recording.tasks.pid(tid, at);
        if !requests(followed) || pid == delivery.client {
            return false;
        }
        if pid == self.recording.tasks.pid(step.tid, at) {
            return step.asked;
        }
        let own = is_near(self.recording, delivery.client, tid, at);
        found_by_request(self.recording, tid, at, own)
    }

    fn is_followed(&self, delivery: &Delivery, followed: Followed, tid: Tid, at: Nanos) -> bool {
        is_near(self.recording, delivery.client, tid, at)
            || followed != Followed::Own && may_be_asked(self.recording, tid, at)
    }

    /// Returns the time until which a thread works without waiting for anything but a device, a
    /// lock, the next frame, or, in the middle of its work, an answer. A restless thread works
    /// until its next drawing.
    fn works_until(
        &self,
        delivery: &Delivery,
        (tid, at): (Tid, Nanos),
        followed: Followed,
        frames: &mut usize,
    ) -> Nanos {
        let recording = self.recording;
        if recording.is_restless(tid, Pause::EventWait, at) {
            let drawn = recording.drawings().next(tid, at);
            return drawn
                .filter(|drawn| !recording.may_answer_nobody(tid, at, *drawn))
                .unwrap_or(at);
        }
        let Some(first) = recording.timeline.at(tid, at) else { return at };
        for span in recording.timeline.spans_from(tid, first.index) {
            let waits = span.is_blocked() && span.start >= at;
            match span.segment.state {
                ThreadState::Absent => return span.start.max(at),
                _ if waits && !self.is_part(delivery, &span, followed, frames) => {
                    return span.start;
                }
                _ => {}
            }
        }
        recording.mark
    }

    fn is_part(
        &self,
        delivery: &Delivery,
        span: &Span,
        followed: Followed,
        frames: &mut usize,
    ) -> bool {
        if matches!(followed, Followed::Asked(ways) if !ways.timers) && self.is_own_timer_wait(span)
        {
            return false;
        }
        let short = span.length() <= FRAME;
        if requests(followed)
            && short
            && span.task_waker().is_some()
            && !self.recording.is_event_wait(span)
        {
            return true;
        }
        // The rest of an answer comes in further packets.
        let rest = followed != Followed::Own && in_softirq(span) && short;
        rest || is_part_of_work(self.recording, span, frames)
            || self.places.is_elsewhere(self.recording, span) && !self.is_next_job(delivery, span)
    }

    /// Returns `true` if a timer woke an input thread that drew nothing just before: a blinking
    /// caret, as opposed to a frame that it had to wait for, or a terminal emulator that waits for
    /// more output.
    fn is_own_timer_wait(&self, span: &Span) -> bool {
        if span.length() <= MORE_OUTPUT_MAX {
            return false;
        }
        let unwoken = span.task_waker().is_none()
            && !in_softirq(span)
            && self.recording.waits.kind(span) >= Waited::Futex;
        let before = span.start.before(DREW_BEFORE);
        unwoken
            && self.recording.takes_display_input(span.tid)
            && self.recording.drawings().within(span.tid, before, span.start).is_empty()
    }

    /// Returns `true` if a wait ended with the work on a later input, which no thread had begun
    /// when this one was received.
    fn is_next_job(&self, delivery: &Delivery, span: &Span) -> bool {
        let receipts = self.receipts.get(&delivery.client);
        let (Some((taken, _)), Some(waker), Some(receipts)) =
            (delivery.dequeued, span.task_waker(), receipts)
        else {
            return false;
        };
        let later = receipts.any(taken.after(Nanos(1)), span.end);
        let cause = later
            .then(|| Steps::new(self.recording, receipts, delivery.stream).back(waker, span.end));
        matches!(cause, Some(Trace::Input(bursts)) if bursts.iter().all(|burst| burst.from > taken))
    }
}

/// Returns `true` if a time is at least half of a delay.
fn is_most(waited: Nanos, delay: Nanos) -> bool {
    2 * waited.0 >= delay.0
}

/// Returns `true` if the work of other processes on requests is followed to its end.
fn requests(followed: Followed) -> bool {
    matches!(followed, Followed::Asked(ways) if ways.requests)
}

/// Transition from a stretch of work to the next: time, thread, and the packet in between.
type Lead = (Nanos, Tid, Option<NetworkAnswer>);

/// Returns `true` if a thread of another program may have been woken for a request. Requests to
/// display servers are recorded, and input injectors are no programs of the user.
fn may_be_asked(recording: &Recording, tid: Tid, at: Nanos) -> bool {
    let life = recording.tasks.life(tid, at.after(Nanos(1))).filter(|life| !life.is_kernel());
    let messages = &recording.messages;
    life.is_some_and(|life| {
        !messages.is_server(life.pid) && !messages.injectors().contains(&life.pid)
    })
}

fn is_near(recording: &Recording, client: Pid, tid: Tid, at: Nanos) -> bool {
    let life = recording.tasks.life(tid, at.after(Nanos(1)));
    life.is_some_and(|life| !life.is_kernel() && recording.tasks.descends(life.pid, client, at))
}

fn is_part_of_work(recording: &Recording, span: &Span, frames: &mut usize) -> bool {
    let kind = recording.waits.kind(span);
    let recorded = recording.waits.find(span).is_some();
    let lock = kind == Waited::Futex && recorded && !recording.waits.is_for_condition(span);
    if recording.is_handover(span) || kind < Waited::Futex || lock {
        return true;
    }
    let unwoken = span.task_waker().is_none() && span.length() <= FRAME;
    let ended = span.end < recording.mark && *frames < FRAMES_MAX;
    let frame = ended && (unwoken || recording.frame_wait(span.tid, span.end).is_some());
    *frames += usize::from(frame);
    frame
}
