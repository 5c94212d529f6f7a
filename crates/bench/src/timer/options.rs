// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench timer`.

use super::policy::SchedPolicy;
use super::threads::{PERIOD_MAX, PERIOD_MIN, TimerOptions};
use crate::choice::{one_or_all, repeats};
use crate::cpus::{CpuList, allowed_cpus, cpu_list, expect_allowed};
use anyhow::Result as Outcome;
use clap::Args;
use clap::builder::PossibleValue;
use std::path::PathBuf;
use std::time::Duration;
use tipme_command::duration;
use tipme_measure::timer::TimerMechanism;

#[derive(Args)]
#[command(
    after_help = "One thread on each CPU wakes up periodically. It prints the intervals between
its wake-ups (as in tables 1 to 3 of Jones and Regehr, 1999), their lateness and, as root, what
the most delayed ones waited for. Comparing relative sleeps with absolute deadlines shows the
cost of sleeping for a period instead of until a deadline.

Exit codes: 0 measured, 1 a wake-up was later than --threshold, 2 nothing could be measured.

Examples:
  tipme bench timer
  tipme bench timer --mechanism relative,absolute
  sudo tipme bench timer --policy fifo:80 --period 100us -d 30s --threshold 200us
  tipme bench timer --mechanism all --json before.json --svg plots
  tipme bench timer --repeat 5 --json before/    then change something, measure into after/, and
  tipme compare before/ after/"
)]
pub struct Timer {
    /// Time from one deadline to the next, 10us to 1s
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = period)]
    pub period: Duration,
    /// Time to measure each mechanism
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// How the threads sleep; several mechanisms are measured in turn
    #[arg(long, value_name = "MECHANISM", value_delimiter = ',', default_value = "absolute",
        value_parser = one_or_all(&TimerMechanism::ALL, help))]
    pub mechanism: Vec<&'static [TimerMechanism]>,
    /// Scheduling policy of the threads: other, fifo:PRIORITY or rr:PRIORITY
    #[arg(long, value_name = "POLICY", default_value = "other")]
    pub policy: SchedPolicy,
    /// CPUs to measure, such as 0,2-3
    #[arg(long, value_name = "all|LIST", default_value = "all", value_parser = cpus)]
    pub cpus: Cpus,
    /// Explain wake-ups that are at least this late, and fail if there are any [default: explained
    /// from 1 ms or 10 times the median]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<Duration>,
    /// Number of repeats; tipme compare needs five
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = repeats)]
    pub repeat: usize,
    /// Write the result as JSON; with --repeat, one file per repeat into this new folder
    #[arg(long, value_name = "FILE|DIR")]
    pub json: Option<PathBuf>,
    /// Write plots into this folder; with --repeat, into a subfolder per repeat
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Do not record, even as root, so late wake-ups are not explained
    #[arg(long)]
    pub no_trace: bool,
}

/// Requested CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cpus {
    All,
    List(Vec<usize>),
}

fn period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    if (PERIOD_MIN..=PERIOD_MAX).contains(&period) {
        return Ok(period);
    }
    Err(format!("choose a period from {PERIOD_MIN:?} to {PERIOD_MAX:?}"))
}

/// Parses `all`, or numbers and ranges.
fn cpus(text: &str) -> Result<Cpus, String> {
    if text == "all" {
        return Ok(Cpus::All);
    }
    cpu_list(text).map(|CpuList(list)| Cpus::List(list))
}

impl Timer {
    /// Resolves the options to CPUs that this process can use.
    pub(super) fn options(&self) -> Outcome<TimerOptions> {
        let cpus = match &self.cpus {
            Cpus::All => allowed_cpus()?,
            Cpus::List(list) => expect_allowed(list).map(|()| list.clone())?,
        };
        let (period, duration, policy) = (self.period, self.duration, self.policy);
        Ok(TimerOptions { period, duration, policy, cpus })
    }

    /// Returns each chosen mechanism once, in the order of the choice.
    pub(super) fn mechanisms(&self) -> Vec<TimerMechanism> {
        let mut mechanisms = Vec::new();
        for mechanism in self.mechanism.iter().copied().flatten() {
            if !mechanisms.contains(mechanism) {
                mechanisms.push(*mechanism);
            }
        }
        mechanisms
    }
}

fn help(mechanism: &TimerMechanism) -> Option<PossibleValue> {
    Some(PossibleValue::new(mechanism.name()).help(mechanism.about()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parsed;

    #[test]
    fn each_mechanism_is_measured_once() {
        let two = parsed::<Timer>("--mechanism relative,absolute,relative").mechanisms();
        assert_eq!(two, [TimerMechanism::Relative, TimerMechanism::Absolute]);
        let all = parsed::<Timer>("--mechanism all").mechanisms();
        assert_eq!(all, TimerMechanism::ALL);
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(cpus("all"), Ok(Cpus::All));
        assert_eq!(cpus("3,0-1,1"), Ok(Cpus::List(vec![0, 1, 3])));
        assert!(cpus("some").is_err());
    }

    #[test]
    fn periods_have_bounds() {
        assert_eq!(period("100us"), Ok(Duration::from_micros(100)));
        assert!(period("9us").is_err() && period("2s").is_err() && period("1").is_err());
    }
}
