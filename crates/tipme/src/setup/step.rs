// SPDX-License-Identifier: MIT OR Apache-2.0
//! A step of a set-up: what has to be done, or is so already.

use anyhow::Result;

/// One thing to be done.
pub struct SetupStep {
    what: String,
    work: StepWork,
}

enum StepWork {
    /// It is so already.
    Nothing,
    /// Something to know.
    Note,
    /// It has to be done by hand.
    ByHand,
    Do(Box<dyn FnOnce() -> Result<()>>),
}

impl SetupStep {
    /// Nothing is left to do.
    pub fn already(what: impl Into<String>) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::Nothing }
    }

    /// Something to know, which takes no work.
    pub fn note(what: impl Into<String>) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::Note }
    }

    /// Somebody has to do it.
    pub fn by_hand(what: impl Into<String>) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::ByHand }
    }

    /// It is done when it is performed.
    pub fn to_do(what: impl Into<String>, work: impl FnOnce() -> Result<()> + 'static) -> SetupStep {
        SetupStep { what: what.into(), work: StepWork::Do(Box::new(work)) }
    }

    /// A line of the plan.
    pub fn plan(&self) -> String {
        let how = match self.work {
            StepWork::Nothing => "so already",
            StepWork::Note => "note",
            StepWork::ByHand => "by hand",
            StepWork::Do(_) => "to do",
        };
        format!("{how:12}{}", self.what)
    }

    /// Whether there is something to be done.
    pub fn is_to_do(&self) -> bool {
        matches!(self.work, StepWork::Do(_))
    }

    /// Does it, and says how it went; whether nothing is left of it.
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
