// SPDX-License-Identifier: MIT OR Apache-2.0
//! A step of the setup: pending, or already done.

use anyhow::Result;

/// A single step.
pub struct SetupStep {
    what: String,
    work: StepWork,
}

enum StepWork {
    /// Already done.
    Nothing,
    /// Information only.
    Note,
    /// Must be done by hand.
    ByHand,
    Do(Box<dyn FnOnce() -> Result<()>>),
}

impl SetupStep {
    /// Creates a step that is already done.
    pub fn already(what: impl Into<String>) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::Nothing }
    }

    /// Creates an informational step without work.
    pub fn note(what: impl Into<String>) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::Note }
    }

    /// Creates a step that the user must do by hand.
    pub fn by_hand(what: impl Into<String>) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::ByHand }
    }

    /// Creates a step with work to perform.
    pub fn to_do(
        what: impl Into<String>,
        work: impl FnOnce() -> Result<()> + 'static,
    ) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::Do(Box::new(work)) }
    }

    /// Returns a line of the plan.
    pub fn plan(&self) -> String {
        let how = match self.work {
            StepWork::Nothing => "already",
            StepWork::Note => "note",
            StepWork::ByHand => "by hand",
            StepWork::Do(_) => "to do",
        };
        format!("{how:12}{}", self.what)
    }

    /// Returns `true` if the step has work to perform.
    pub fn is_to_do(&self) -> bool {
        matches!(self.work, StepWork::Do(_))
    }

    /// Performs the step and reports the result; returns `true` if nothing remains.
    pub fn perform(self) -> bool {
        let SetupStep { what, work } = self;
        match work {
            StepWork::Nothing | StepWork::Note => true,
            StepWork::ByHand => false,
            StepWork::Do(work) => match work() {
                Ok(()) => {
                    println!("done        {what}");
                    true
                }
                Err(error) => {
                    println!("failed      {what}: {error:#}");
                    false
                }
            },
        }
    }
}
