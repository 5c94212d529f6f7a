// SPDX-License-Identifier: MIT OR Apache-2.0
//! Losses per second, and the sampled run time of the kernel programs.

use crate::counter::CounterProcess;
use anyhow::Result;
use std::collections::VecDeque;
use tipme_desktop::clock;
use tipme_kernel::{Kernel, ProgramRuns};
use tipme_record::incident::{Cost, Loss, Losses, ProgramCost};
use tipme_record::{Nanos, RingClass};

/// Number of loss records remembered; older ones are beyond any window.
const SECONDS: usize = 600;

/// Class of threads beyond the limit of a mark.
const THREADS: &str = "threads";

/// Class of sends on display connections with skipped messages.
const DISPLAY: &str = "display";

/// Period of cost samples, each 0.1 s long.
const COST_PERIOD: Nanos = Nanos::from_secs(30);

/// Minimum time measured from which a rate per second is meaningful.
const MEASURED_MIN: Nanos = Nanos::from_millis(10);

/// Reader of the loss counters and of the cost.
pub(crate) struct LossWatch {
    seen: Vec<(String, u64)>,
    per_second: VecDeque<Loss>,
    next_second: Nanos,
    armed: Nanos,
    cpu_at_start: u64,
    next_cost: Nanos,
    counter: CounterProcess,
    measuring: bool,
    /// Time during which statistics were enabled, and the counts at the end of it.
    measured: Nanos,
    counted: Vec<ProgramRuns>,
}

impl LossWatch {
    /// Starts at arming; the first cost sample is due at once, since records are still tainted
    /// then.
    pub(crate) fn new(armed: Nanos, counter: CounterProcess) -> LossWatch {
        LossWatch {
            seen: Vec::new(),
            per_second: VecDeque::new(),
            next_second: armed,
            armed,
            cpu_at_start: cpu_time(),
            next_cost: armed,
            counter,
            measuring: false,
            measured: Nanos(0),
            counted: Vec::new(),
        }
    }

    pub(crate) fn counter(&self) -> &CounterProcess {
        &self.counter
    }

    pub(crate) fn counter_mut(&mut self) -> &mut CounterProcess {
        &mut self.counter
    }

    /// Returns `true` while the cost is being sampled, until the next tick.
    pub(crate) fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Returns the number of records lost since arming, as of the last second.
    pub(crate) fn lost(&self) -> u64 {
        self.seen.iter().map(|(_, count)| count).sum()
    }

    /// Samples the cost and, once a second, counts losses. Call at every tick.
    pub(crate) fn tick(&mut self, kernel: &Kernel<'_>, overruns: u64, now: Nanos) -> Result<()> {
        self.sample_cost(kernel, now)?;
        if now < self.next_second {
            return Ok(());
        }
        self.next_second = now.after(Nanos::from_secs(1));
        self.count_losses(kernel, overruns, now)
    }

    fn sample_cost(&mut self, kernel: &Kernel<'_>, now: Nanos) -> Result<()> {
        let counted = self.counter.counted();
        if counted > Nanos(0) {
            self.measured = self.measured.after(counted);
            self.counted = kernel.program_runs()?;
        }
        if self.measuring {
            self.measuring = false;
            self.counter.end();
        } else if now >= self.next_cost {
            self.next_cost = now.after(COST_PERIOD);
            self.measuring = true;
            self.counter.begin();
        }
        Ok(())
    }

    fn count_losses(&mut self, kernel: &Kernel<'_>, overruns: u64, now: Nanos) -> Result<()> {
        let dropped =
            RingClass::ALL.iter().map(|class| (class.name().to_owned(), kernel.dropped(*class)));
        let runs = kernel.program_runs()?;
        let missed = runs.into_iter().map(|program| (program.name, program.missed));
        let others = [("input".to_owned(), overruns), (DISPLAY.to_owned(), kernel.skipped_sends())];
        let counts: Vec<(String, u64)> = dropped.chain(missed).chain(others).collect();
        for (class, count) in &counts {
            let before =
                self.seen.iter().find(|(name, _)| name == class).map_or(0, |(_, count)| *count);
            if *count > before {
                self.remember(Loss {
                    until_ns: now.0,
                    class: class.clone(),
                    count: count - before,
                });
            }
        }
        self.seen = counts;
        Ok(())
    }

    fn remember(&mut self, loss: Loss) {
        if self.per_second.len() >= SECONDS {
            self.per_second.pop_front();
        }
        self.per_second.push_back(loss);
    }

    /// Returns the losses since `from`, counted up to now, and the number of threads left out of
    /// the walk.
    pub(crate) fn losses(
        &mut self,
        kernel: &Kernel<'_>,
        overruns: u64,
        from: Nanos,
        threads: u64,
    ) -> Result<Losses> {
        let now = clock::now();
        self.count_losses(kernel, overruns, now)?;
        let left_out = Loss { until_ns: now.0, class: THREADS.to_owned(), count: threads };
        let counted = self.per_second.iter().filter(|loss| loss.until_ns >= from.0).cloned();
        Ok(Losses { per_second: counted.chain((threads > 0).then_some(left_out)).collect() })
    }

    /// Returns the mean cost of every program that ran during the samples.
    pub(crate) fn cost(&self) -> Cost {
        Cost {
            programs: program_costs(&self.counted, self.measured),
            user_cpu_ns: cpu_time() - self.cpu_at_start,
            wall_ns: clock::now().since(self.armed).0,
        }
    }
}

/// Returns the mean cost of the programs that ran, or nothing if the measured time is too short.
fn program_costs(counted: &[ProgramRuns], measured: Nanos) -> Vec<ProgramCost> {
    let programs = counted.iter().filter(|program| program.runs > 0 && measured >= MEASURED_MIN);
    let costs = programs.map(|program| ProgramCost {
        runs_per_second: program.runs as f64 * 1e9 / measured.0 as f64,
        ns_per_run: program.nanos as f64 / program.runs as f64,
        name: program.name.clone(),
    });
    costs.collect()
}

fn cpu_time() -> u64 {
    tipme_control::life::own_cpu().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_a_moment_give_no_rate() {
        let counted = [("sched_switch", 50), ("fork", 0)].map(|(name, runs)| ProgramRuns {
            name: name.to_owned(),
            runs,
            nanos: runs * 300,
            missed: 0,
        });
        assert_eq!(program_costs(&counted, Nanos(261)), []);
        let cost = ProgramCost {
            name: "sched_switch".to_owned(),
            runs_per_second: 500.0,
            ns_per_run: 300.0,
        };
        assert_eq!(program_costs(&counted, Nanos::from_millis(100)), [cost]);
    }
}
