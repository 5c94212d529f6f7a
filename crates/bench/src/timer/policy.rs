// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling policy of a measuring thread.

use crate::priority::set_policy;
use crate::process::is_root;
use anyhow::{Result, anyhow, bail};
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::str::FromStr;

/// Policy and, for real-time policies, priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchedPolicy {
    /// Default policy.
    #[default]
    Other,
    /// Real-time, first in first out; 1 to 99.
    Fifo(u8),
    /// Real-time, round robin; 1 to 99.
    RoundRobin(u8),
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchedPolicy::Other => write!(f, "other"),
            SchedPolicy::Fifo(priority) => write!(f, "fifo:{priority}"),
            SchedPolicy::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

impl FromStr for SchedPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<SchedPolicy, String> {
        let (name, priority) = text.split_once(':').unwrap_or((text, ""));
        let priority = priority.parse().ok().filter(|number| (1..=99).contains(number));
        match (name, priority) {
            ("other", _) if text == name => Ok(SchedPolicy::Other),
            ("fifo", Some(priority)) => Ok(SchedPolicy::Fifo(priority)),
            ("rr", Some(priority)) => Ok(SchedPolicy::RoundRobin(priority)),
            ("fifo" | "rr", None) => {
                Err(format!("policy {name} needs a priority from 1 to 99, such as {name}:80"))
            }
            _ => Err(format!("invalid policy {text:?}; use other, fifo:80 or rr:80")),
        }
    }
}

impl SchedPolicy {
    /// Fails if the policy is refused; does not change the calling thread.
    pub fn check(self) -> Result<()> {
        let tried = std::thread::scope(|scope| scope.spawn(|| self.apply()).join());
        tried.unwrap_or_else(|_| bail!("cannot try policy {self}"))
    }

    /// Applies the policy to the calling thread.
    ///
    /// # Errors
    /// Fails if that is refused; the message names the remedy.
    pub(super) fn apply(self) -> Result<()> {
        let (policy, priority) = match self {
            SchedPolicy::Other => (libc::SCHED_OTHER, 0),
            SchedPolicy::Fifo(priority) => (libc::SCHED_FIFO, priority),
            SchedPolicy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        };
        set_policy(policy, priority.into()).map_err(|error| {
            anyhow!("cannot use policy {self}: {error}; {}", self.remedy(priority))
        })
    }

    fn remedy(self, priority: u8) -> String {
        if is_root() {
            return "see whether the control group of this process may use real-time policies (cpu.rt_runtime_us), \
                    or measure with --policy other"
                .to_owned();
        }
        let limit = getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX);
        format!(
            "RLIMIT_RTPRIO is {limit} and must be at least {priority}: use sudo, raise rtprio for your user in \
             /etc/security/limits.conf, or measure with --policy other"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_back() {
        for policy in [SchedPolicy::Other, SchedPolicy::Fifo(80), SchedPolicy::RoundRobin(1)] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for wrong in
            ["", "fifo", "fifo:0", "fifo:100", "fifo:", "other:1", "idle", "rr:x", "FIFO:1"]
        {
            assert!(wrong.parse::<SchedPolicy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_ordinary_policy_is_always_given() {
        let given = std::thread::spawn(|| SchedPolicy::Other.apply().is_ok());
        assert_eq!(given.join().ok(), Some(true));
    }
}
