// SPDX-License-Identifier: MIT OR Apache-2.0
//! A step of a set-up: what has to be done, or is so already.

use anyhow::Result;

/// One thing to be done.
pub struct Step {
    what: String,
    work: Work,
}

enum Work {
    /// It is so already.
    Nothing,
    /// It has to be done by hand.
    ByHand,
    Do(Box<dyn FnOnce() -> Result<()>>),
}

impl Step {
    pub fn so(what: impl Into<String>) -> Step {
        Step { what: what.into(), work: Work::Nothing }
    }

    pub fn by_hand(what: impl Into<String>) -> Step {
        Step { what: what.into(), work: Work::ByHand }
    }

    pub fn to_do(what: impl Into<String>, work: impl FnOnce() -> Result<()> + 'static) -> Step {
        Step { what: what.into(), work: Work::Do(Box::new(work)) }
    }

    /// A line of the plan.
    pub fn plan(&self) -> String {
        let how = match self.work {
            Work::Nothing => "so already",
            Work::ByHand => "by hand",
            Work::Do(_) => "to do",
        };
        format!("{how:12}{}", self.what)
    }

    /// Whether there is something to be done.
    pub fn is_to_do(&self) -> bool {
        matches!(self.work, Work::Do(_))
    }

    /// Does it, and says how it went.
    pub fn take(self) -> bool {
        let Step { what, work } = self;
        match work {
            Work::Nothing => true,
            Work::ByHand => false,
            Work::Do(work) => match work() {
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
