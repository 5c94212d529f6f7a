// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes of a load: one that starts the others, one for each session, and those that work.

use super::ledger::{Count, Ledger};
use super::work::{Worker, cpu_time};
use super::{Kind, Order};
use crate::memory::fork;
use anyhow::{Context, Result};
use rustix::process::{Pid, WaitOptions, setpriority_process, setsid, wait, waitpid};
use std::io::{PipeWriter, Read, Write};
use std::time::{Duration, Instant};

/// Rounds between two looks at how long this process waited for its CPU.
const ROUNDS_PER_LOOK: u64 = 16;
/// Rounds of a short life: from here, and so many more by chance.
const LIFE_LEAST: u64 = 5;
const LIFE_MORE: u64 = 60;

/// `load ORDER`: starts the processes, says `ready` once each works, and waits for them.
pub(crate) fn run(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order).context("the order of a load cannot be read")?;
    if order.nice != 0 {
        setpriority_process(None, order.nice).context("cannot change the niceness of the load")?;
    }
    let ledger = Ledger::open(&order.ledger)?;
    let (mut begun, begin) = std::io::pipe().context("cannot make a pipe")?;
    let sessions = order.sessions.min(order.level);
    match sessions {
        0 => start(&order, &ledger, 0..order.level, &begin)?,
        many => (0..many).try_for_each(|session| start_session(&order, &ledger, session, many, &begin))?,
    }
    drop(begin);
    let mut said = vec![0; order.level as usize];
    begun.read_exact(&mut said).context("a process of the load ended before it worked")?;
    crate::intervals::ready("")?;
    while wait(WaitOptions::empty()).is_ok() {}
    Ok(())
}

/// Starts every so-many-th process in a session of its own.
fn start_session(order: &Order, ledger: &Ledger, session: u32, sessions: u32, begin: &PipeWriter) -> Result<()> {
    fork(order.life_s, "load-session", || {
        setsid().context("cannot begin a session")?;
        start(order, ledger, (session..order.level).step_by(sessions as usize), begin)?;
        while wait(WaitOptions::empty()).is_ok() {}
        Ok(())
    })?;
    Ok(())
}

fn start(order: &Order, ledger: &Ledger, accounts: impl Iterator<Item = u32>, begin: &PipeWriter) -> Result<()> {
    let name = format!("load-{}", order.kind.name());
    for account in accounts {
        fork(order.life_s, &name, || {
            let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
            let desk = Desk { order, ledger, account: account as usize, end: deadline(order) };
            if order.kind == Kind::Forks { desk.raise(&name, begin) } else { desk.work(begin) }
        })?;
    }
    Ok(())
}

fn deadline(order: &Order) -> Instant {
    Instant::now() + Duration::from_secs(order.life_s)
}

/// What one process of the load has before it.
struct Desk<'a> {
    order: &'a Order,
    ledger: &'a Ledger,
    account: usize,
    end: Instant,
}

impl Desk<'_> {
    fn worker(&self) -> Result<Worker> {
        let order = self.order;
        Worker::begin(order.kind, order.pages, order.bytes, order.churn, order.folder.as_deref())
    }

    /// Works until the time is over.
    fn work(&self, mut begin: &PipeWriter) -> Result<()> {
        let mut worker = self.worker()?;
        begin.write_all(&[1]).context("nobody waits for this process")?;
        let mut spent = Spent::now();
        while Instant::now() < self.end {
            self.rounds(&mut worker, ROUNDS_PER_LOOK)?;
            spent = self.note(spent);
        }
        Ok(())
    }

    fn rounds(&self, worker: &mut Worker, rounds: u64) -> Result<()> {
        for _ in 0..rounds {
            let pages = worker.round()?;
            self.add(Count::Pages, pages);
            self.add(Count::Rounds, 1);
        }
        Ok(())
    }

    /// Has a child at any time, each of which works for a little while.
    fn raise(&self, name: &str, mut begin: &PipeWriter) -> Result<()> {
        begin.write_all(&[1]).context("nobody waits for this process")?;
        let (mut chance, mut spent) = (self.account as u64 + 1, Spent::now());
        while Instant::now() < self.end {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rounds = LIFE_LEAST + (chance >> 33) % LIFE_MORE;
            let child = fork(self.order.life_s, name, || self.live(rounds))?;
            end_of(child)?;
            self.add(Count::Births, 1);
            spent = self.note(spent);
        }
        Ok(())
    }

    fn live(&self, rounds: u64) -> Result<()> {
        let mut worker = self.worker()?;
        self.rounds(&mut worker, rounds)?;
        self.note(Spent::default());
        Ok(())
    }

    fn add(&self, count: Count, more: u64) {
        self.ledger.add(self.account, count, more);
    }

    /// Adds what was spent since the last look.
    fn note(&self, before: Spent) -> Spent {
        let now = Spent::now();
        let cpu_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
        self.add(Count::CpuNs, cpu_ns);
        self.add(Count::RunnableNs, cpu_ns + now.waited_ns.saturating_sub(before.waited_ns));
        now
    }
}

fn end_of(child: Pid) -> Result<()> {
    waitpid(Some(child), WaitOptions::empty()).context("cannot wait for a short life")?;
    Ok(())
}

/// Time that this process had since its begin.
#[derive(Clone, Copy, Default)]
struct Spent {
    cpu_ns: u64,
    /// Runnable without a CPU.
    waited_ns: u64,
}

impl Spent {
    fn now() -> Spent {
        let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let waited = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        Spent { cpu_ns: cpu_time().as_nanos() as u64, waited_ns: waited.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_is_none_is_refused() {
        assert!(run("").is_err() && run("{}").is_err());
    }

    #[test]
    fn time_spent_grows() {
        let before = Spent::now();
        let mut worker = Worker::begin(Kind::Cpu, Kind::Cpu.pages(), 1 << 16, 1_000_000, None).expect("memory");
        worker.round().expect("memory");
        assert!(Spent::now().cpu_ns > before.cpu_ns);
    }
}
