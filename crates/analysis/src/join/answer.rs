// SPDX-License-Identifier: MIT OR Apache-2.0
//! An input with its answer, and how far its handling has come.

use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::join::server_drawings::Drawing;
use tipme_measure::ThresholdProfile;
use tipme_record::Nanos;

/// How input and drawing were joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Join {
    /// Over wake-ups and messages.
    Exact,
    /// By time only.
    Speculative,
    /// There was no drawing to join.
    Open,
}

/// A state in the handling of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Milestone {
    /// The first drawing that the input caused is shown.
    Response,
    /// Whoever dequeued the input waits for the next one.
    Handled,
    /// The last drawing that the input caused is shown, or the command that it started is done.
    Completed,
}

/// When a milestone was reached, and on which way.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reached {
    pub milestone: Milestone,
    /// The mark where it was not.
    pub at: Nanos,
    pub drawing: Option<Drawing>,
    /// The stays on the way, the latest first; the earliest begins with the receipt.
    pub hops: Vec<Hop>,
    /// A person notices it from this latency on.
    pub noticed: Nanos,
    pub task: Task,
}

/// The work that an input set off, as far as its delay is judged by that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Task {
    /// Work of the program that took the input.
    Input,
    /// A command in a terminal, which may well take its time.
    Command,
    /// Work of a program that takes the keys of its terminal one by one: a command that was typed into it, or a key that hangs.
    Typed,
    /// A new shell up to its first prompt, or an application up to its first window.
    Start,
    /// Programs that a shell runs on its own account, for its prompt or a completion.
    Prompt,
}

impl Task {
    /// Returns `true` for work that may take long because the user asked for it.
    pub(crate) fn is_command(self) -> bool {
        matches!(self, Task::Command | Task::Typed | Task::Start)
    }
}

/// From which time on it is noticed that something is not completed.
pub const COMPLETED: Nanos = Nanos::from_secs(1);
/// The same for what is not handled: menus and the like take up to 400 ms where nothing is wrong.
pub const NOTICED: Nanos = Nanos::from_millis(500);

/// Response latency from which on a later milestone of the same delay is not reported as well.
pub(crate) const TELLING: Nanos = Nanos::from_millis(200);

/// One input and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    pub delivery: Delivery,
    pub join: Join,
    pub drawing: Option<Drawing>,
    /// The way from the drawing back to the input, latest stay first; empty without an exact join.
    pub hops: Vec<Hop>,
    pub end: Nanos,
    /// End of the last drawing that the input caused, where there is more than one.
    pub settled: Option<Nanos>,
    /// Unfinished at the mark.
    pub censored: bool,
    /// What `end` is the end of.
    pub milestone: Milestone,
    /// A person notices a latency from this one on.
    pub noticed: Nanos,
    /// The work that `end` is the end of.
    pub task: Task,
    /// When the input was handled, where it was dequeued.
    pub handled: Option<Nanos>,
    /// Milestones after the response that came late.
    pub later: Vec<Reached>,
}

impl Interaction {
    /// From the input to its end.
    pub(crate) fn latency(&self) -> Nanos {
        self.end.since(self.delivery.input)
    }

    /// When the input was completed, where that was long after the response.
    pub(crate) fn completed(&self) -> Option<Nanos> {
        self.later.iter().find(|reached| reached.milestone == Milestone::Completed).map(|reached| reached.at)
    }

    /// Whether some of it lies in `lo..hi`.
    pub(crate) fn overlaps(&self, lo: Nanos, hi: Nanos) -> bool {
        self.delivery.input < hi && self.end > lo
    }

    /// With the drawing that answers it.
    pub(crate) fn answered(delivery: Delivery, join: Join, first: Drawing, hops: Vec<Hop>) -> Interaction {
        Interaction { join, drawing: Some(first), hops, censored: false, ..Interaction::open(delivery, first.end) }
    }

    /// Without an answer, until a time.
    pub(crate) fn open(delivery: Delivery, end: Nanos) -> Interaction {
        Interaction {
            delivery,
            join: Join::Open,
            drawing: None,
            hops: Vec::new(),
            end,
            settled: None,
            censored: true,
            milestone: Milestone::Response,
            noticed: Nanos(delivery.class.limits(ThresholdProfile::Default).threshold),
            task: Task::Input,
            handled: None,
            later: Vec::new(),
        }
    }

    /// The interaction as one that ends with a later milestone.
    pub(crate) fn until(&self, reached: &Reached, mark: Nanos) -> Interaction {
        Interaction {
            join: Join::Exact,
            drawing: reached.drawing,
            hops: reached.hops.clone(),
            end: reached.at,
            settled: None,
            censored: reached.at >= mark,
            milestone: reached.milestone,
            noticed: reached.noticed,
            task: reached.task,
            later: Vec::new(),
            ..self.clone()
        }
    }
}

impl Join {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Join::Exact => "exact",
            Join::Speculative => "speculative",
            Join::Open => "none",
        }
    }
}

impl Milestone {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Milestone::Response => "response",
            Milestone::Handled => "handled",
            Milestone::Completed => "completed",
        }
    }
}
