// SPDX-License-Identifier: MIT OR Apache-2.0
//! An input with its answer, and the progress of its handling.

use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::join::server_drawings::Drawing;
use tipme_measure::ThresholdProfile;
use tipme_record::Nanos;

/// Method by which input and drawing were joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Join {
    /// By wakeups and messages.
    Exact,
    /// By order in time only.
    Speculative,
    /// No drawing to join.
    Open,
}

/// Milestone in the handling of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Milestone {
    /// The first drawing caused by the input is shown.
    Response,
    /// The thread that dequeued the input waits for the next one.
    Handled,
    /// The last drawing caused by the input is shown, or the command that it started has finished.
    Completed,
}

/// Time of a milestone, and the way to it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reached {
    pub milestone: Milestone,
    /// The mark, if the milestone was not reached.
    pub at: Nanos,
    pub drawing: Option<Drawing>,
    /// Hops on the way, latest first; the earliest begins with the receipt.
    pub hops: Vec<Hop>,
    /// Threshold from which a person notices the latency.
    pub noticed: Nanos,
    pub task: Task,
}

/// Kind of work that an input started, which determines the verdict on its delay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Task {
    /// Work of the program that received the input.
    Input,
    /// A command in a terminal, which may well take its time.
    Command,
    /// Work of a program that reads the keys of its terminal one by one: a command typed into it,
    /// or a slow key.
    Typed,
    /// A new shell up to its first prompt, or an application up to its first window.
    Start,
    /// Programs that a shell runs by itself, for its prompt or a completion.
    Prompt,
}

impl Task {
    /// Returns `true` for work that may take long because the user asked for it.
    pub(crate) fn is_command(self) -> bool {
        matches!(self, Task::Command | Task::Typed | Task::Start)
    }
}

/// Threshold from which a person notices a missing completion.
pub const COMPLETED: Nanos = Nanos::from_secs(1);
/// The same for an input that is not handled: menus and the like take up to 400 ms even without a
/// problem.
pub const NOTICED: Nanos = Nanos::from_millis(500);

/// Minimum response latency that reports a delay by itself, and minimum time from a response to a
/// later milestone that is reported as well.
pub(crate) const SEPARATE_MIN: Nanos = Nanos::from_millis(200);

/// An input and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    pub delivery: Delivery,
    pub join: Join,
    pub drawing: Option<Drawing>,
    /// Way from the drawing back to the input, latest hop first; empty without an exact join.
    pub hops: Vec<Hop>,
    pub end: Nanos,
    /// End of the last drawing caused by the input, if there is more than one.
    pub settled: Option<Nanos>,
    /// Unfinished at the mark.
    pub censored: bool,
    /// Milestone at `end`.
    pub milestone: Milestone,
    /// Threshold from which a person notices the latency.
    pub noticed: Nanos,
    /// Kind of work that ends at `end`.
    pub task: Task,
    /// Time at which the input was handled, if it was dequeued.
    pub handled: Option<Nanos>,
    /// Late milestones after the response.
    pub later: Vec<Reached>,
}

impl Reached {
    /// Creates the completion of an input, without a drawing.
    pub(crate) fn completed(at: Nanos, hops: Vec<Hop>) -> Reached {
        Reached {
            milestone: Milestone::Completed,
            at,
            drawing: None,
            hops,
            noticed: COMPLETED,
            task: Task::Input,
        }
    }

    /// Creates the completion of an input by a drawing.
    pub(crate) fn drawn(drawing: Drawing, hops: Vec<Hop>) -> Reached {
        Reached { drawing: Some(drawing), ..Reached::completed(drawing.end, hops) }
    }

    /// Creates the time at which an input was handled.
    pub(crate) fn handled(at: Nanos, hops: Vec<Hop>) -> Reached {
        let completed = Reached::completed(at, hops);
        Reached { milestone: Milestone::Handled, noticed: NOTICED, ..completed }
    }
}

impl Interaction {
    /// Returns the time from the input to its end.
    pub(crate) fn latency(&self) -> Nanos {
        self.end.since(self.delivery.input)
    }

    /// Returns the completion time of the input, if it was long after the response.
    pub(crate) fn completed(&self) -> Option<Nanos> {
        self.later
            .iter()
            .find(|reached| reached.milestone == Milestone::Completed)
            .map(|reached| reached.at)
    }

    /// Returns `true` if the interaction overlaps `lo..hi`.
    pub(crate) fn overlaps(&self, lo: Nanos, hi: Nanos) -> bool {
        self.delivery.input < hi && self.end > lo
    }

    /// Creates an interaction with the drawing that answers it.
    pub(crate) fn answered(
        delivery: Delivery,
        join: Join,
        first: Drawing,
        hops: Vec<Hop>,
    ) -> Interaction {
        Interaction {
            join,
            drawing: Some(first),
            hops,
            censored: false,
            ..Interaction::open(delivery, first.end)
        }
    }

    /// Creates an interaction without an answer up to `end`.
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

    /// Returns a copy that ends with a later milestone.
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
    /// Returns the name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Join::Exact => "exact",
            Join::Speculative => "speculative",
            Join::Open => "none",
        }
    }
}

impl Milestone {
    /// Returns the name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Milestone::Response => "response",
            Milestone::Handled => "handled",
            Milestone::Completed => "completed",
        }
    }
}
