// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of a load: the first one starts one process for each session, and those start the
//! workers.

use super::ledger::{Count, LoadLedger};
use super::work::MemoryWalk;
use super::{LoadKind, LoadOrder};
use crate::choice::name;
use crate::cpu_work::{cpu_time, run_queue_delay};
use crate::memory::{enter, fork};
use crate::priority::take_idle_io_class;
use crate::worker::say_ready;
use anyhow::{Context, Result, anyhow};
use fastrand::Rng;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, setpriority_process, setsid, wait, waitpid};
use std::io::{PipeWriter, Read, Write};
use std::time::{Duration, Instant};

/// Rounds between checks of this process's run-queue delay.
const ROUNDS_PER_LOOK: u64 = 16;
/// Rounds of a short-lived process: the minimum, and the range of the random part.
const LIFE_LEAST: u64 = 5;
const LIFE_MORE: u64 = 60;

/// `load ORDER`: starts the processes, reports `ready` once each works, and waits for them.
pub(crate) fn run(order: &str) -> Result<()> {
    let order: LoadOrder =
        serde_json::from_str(order).context("cannot read the order of a load")?;
    if order.nice != 0 {
        setpriority_process(None, order.nice).context("cannot change the niceness of the load")?;
    }
    if order.idle_io {
        take_idle_io_class()?;
    }
    if let Some(procs_file) = &order.procs_file {
        enter(procs_file)?;
    }
    let ledger = LoadLedger::open(&order.ledger)?;
    let (mut begun, begin) = std::io::pipe().context("cannot make a pipe")?;
    let (mut begin, end) = (Some(begin), deadline(&order));
    let children = match order.sessions.min(order.accounts.len() as u32) {
        0 => start(&order, &ledger, &order.accounts, &mut begin)?,
        many => start_sessions(&order, &ledger, many, &mut begin)?,
    };
    drop(begin);
    let mut said = vec![0; order.accounts.len()];
    begun
        .read_exact(&mut said)
        .map_err(|_| anyhow!("a process of the load ended before it worked"))?;
    say_ready("")?;
    reap(&children, &ledger, end);
    Ok(())
}

/// A child, with the accounts of the processes that end with it.
struct StartedChild {
    pid: Pid,
    accounts: Vec<u32>,
}

/// Starts the processes of each session: every `many`-th process is in the same one.
fn start_sessions(
    order: &LoadOrder,
    ledger: &LoadLedger,
    many: u32,
    begin: &mut ReadyPipe,
) -> Result<Vec<StartedChild>> {
    let mut started = Vec::new();
    for session in 0..many as usize {
        let accounts = order.accounts.iter().copied().skip(session).step_by(many as usize);
        let accounts: Vec<u32> = accounts.collect();
        let pid = fork(order.life_s, "load-session", || {
            setsid().context("cannot begin a session")?;
            let children = start(order, ledger, &accounts, begin)?;
            // Closed here, so that the readiness does not wait for this process.
            drop(begin.take());
            reap(&children, ledger, deadline(order));
            Ok(())
        })?;
        started.push(StartedChild { pid, accounts });
    }
    Ok(started)
}

fn start(
    order: &LoadOrder,
    ledger: &LoadLedger,
    accounts: &[u32],
    begin: &mut ReadyPipe,
) -> Result<Vec<StartedChild>> {
    let name = format!("load-{}", name(&order.kind));
    let mut started = Vec::new();
    for account in accounts.iter().copied() {
        let pid = fork(order.life_s, &name, || {
            let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
            let assignment =
                LoadAssignment { order, ledger, account: account as usize, end: deadline(order) };
            if order.kind == LoadKind::Forks {
                assignment.raise_children(&name, begin)
            } else {
                assignment.work(begin)
            }
        })?;
        started.push(StartedChild { pid, accounts: vec![account] });
    }
    Ok(started)
}

/// Reaps all children, and records those that ended early.
fn reap(children: &[StartedChild], ledger: &LoadLedger, end: Instant) {
    while let Ok(ended) = retry_on_intr(|| wait(WaitOptions::empty())) {
        let ended = ended.filter(|_| Instant::now() < end).map(|(pid, _)| pid);
        let gone = children.iter().filter(|child| Some(child.pid) == ended);
        gone.flat_map(|child| &child.accounts).for_each(|account| ledger.end(*account as usize));
    }
}

fn deadline(order: &LoadOrder) -> Instant {
    Instant::now() + Duration::from_secs(order.life_s)
}

/// Pipe on which a process reports that it works. It closes the pipe then, so that the end of
/// another process is visible.
type ReadyPipe = Option<PipeWriter>;

fn report_ready(begin: &mut ReadyPipe) -> Result<()> {
    begin.take().context("reported already")?.write_all(&[1]).context("the parent has ended")
}

/// Assignment of one process of the load.
struct LoadAssignment<'a> {
    order: &'a LoadOrder,
    ledger: &'a LoadLedger,
    account: usize,
    end: Instant,
}

impl LoadAssignment<'_> {
    fn walk(&self) -> Result<MemoryWalk> {
        let order = self.order;
        MemoryWalk::begin(order.kind, order.pages, order.bytes, order.spin, order.folder.as_deref())
    }

    /// Works until the time is over.
    fn work(&self, begin: &mut ReadyPipe) -> Result<()> {
        let mut walk = self.walk()?;
        report_ready(begin)?;
        let mut spent = Spent::now();
        while Instant::now() < self.end {
            self.rounds(&mut walk, ROUNDS_PER_LOOK)?;
            spent = self.note(spent);
        }
        Ok(())
    }

    fn rounds(&self, walk: &mut MemoryWalk, rounds: u64) -> Result<()> {
        for _ in 0..rounds {
            let pages = walk.round()?;
            self.add(Count::Pages, pages);
            self.add(Count::Rounds, 1);
        }
        Ok(())
    }

    /// Always keeps one child, each of which works for a short time.
    fn raise_children(&self, name: &str, begin: &mut ReadyPipe) -> Result<()> {
        report_ready(begin)?;
        let (mut random, mut spent) = (Rng::with_seed(self.account as u64 + 1), Spent::now());
        while Instant::now() < self.end {
            let rounds = LIFE_LEAST + random.u64(..LIFE_MORE);
            let child = fork(self.order.life_s, name, || self.live(rounds))?;
            let count = if ended_well(child)? { Count::Forks } else { Count::Cut };
            self.add(count, 1);
            spent = self.note(spent);
        }
        Ok(())
    }

    fn live(&self, rounds: u64) -> Result<()> {
        let mut walk = self.walk()?;
        self.rounds(&mut walk, rounds)?;
        self.note(Spent::default());
        Ok(())
    }

    fn add(&self, count: Count, more: u64) {
        self.ledger.add(self.account, count, more);
    }

    /// Adds the time since the last call.
    fn note(&self, before: Spent) -> Spent {
        let now = Spent::now();
        let cpu_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
        self.add(Count::CpuNs, cpu_ns);
        self.add(Count::RunnableNs, cpu_ns + now.waited_ns.saturating_sub(before.waited_ns));
        now
    }
}

/// Reaps a short-lived child; returns `false` if it ended early.
fn ended_well(child: Pid) -> Result<bool> {
    let ended = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()))
        .context("cannot wait for a short-lived child")?;
    Ok(ended.is_some_and(|(_, status)| status.exit_status() == Some(0)))
}

/// Time of this process since it began.
#[derive(Clone, Copy, Default)]
struct Spent {
    cpu_ns: u64,
    /// Run-queue delay.
    waited_ns: u64,
}

impl Spent {
    fn now() -> Spent {
        Spent {
            cpu_ns: cpu_time().as_nanos() as u64,
            waited_ns: run_queue_delay().as_nanos() as u64,
        }
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
        let mut walk =
            MemoryWalk::begin(LoadKind::Cpu, LoadKind::Cpu.pages(), 1 << 16, 1_000_000, None)
                .expect("memory");
        walk.round().expect("memory");
        assert!(Spent::now().cpu_ns > before.cpu_ns);
    }
}
