// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders to wait for a thread of the application itself.

use crate::selftest::workers::{compute, millis, number, use_cpu_time};
use anyhow::{Context, Result, anyhow, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::UnsafeCell;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Barrier, Condvar, Mutex, PoisonError, RwLock};
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

/// A mutex of the C library, as most programs have.
struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the mutex is only reached through calls that may be made from any thread.
unsafe impl Sync for Lock {}

impl Lock {
    fn new() -> Lock {
        Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn acquire(&self) {
        // SAFETY: the mutex is initialised and stays in its place while it is borrowed.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// To be called by the thread that has acquired it.
    fn release(&self) {
        // SAFETY: as for `acquire`.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// Acquires a lock that a thread of this name has first; that thread does its work, then releases it.
fn contend(name: &str, work: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let (lock, held) = (Lock::new(), Barrier::new(2));
    let keep = || {
        lock.acquire();
        held.wait();
        let worked = work();
        lock.release();
        worked
    };
    scope(|scope| {
        let keeper = Builder::new().name(name.to_string()).spawn_scoped(scope, keep);
        let keeper = keeper.context("cannot start a thread")?;
        held.wait();
        lock.acquire();
        lock.release();
        keeper.join().map_err(|_| anyhow!("the thread that held the lock has failed"))?
    })
}

/// The owner sleeps.
pub(super) fn mutex_asleep(words: &[&str]) -> Result<()> {
    let time = millis(words, 0)?;
    contend("lock-keeper", || {
        sleep(time);
        Ok(())
    })
}

/// The owner has little to do, on a CPU that others use; this thread stays away from that CPU.
pub(super) fn mutex_starved(words: &[&str]) -> Result<()> {
    let (cpu, time) = (number(words, 0)? as usize, millis(words, 1)?);
    let before = sched_getaffinity(None)?;
    let (mut only, mut others) = (CpuSet::new(), before);
    only.set(cpu);
    others.unset(cpu);
    if others.count() == 0 {
        bail!("there is no second CPU");
    }
    sched_setaffinity(None, &others)?;
    let contended = contend("housekeeper", || {
        sched_setaffinity(None, &only)?;
        use_cpu_time(time);
        Ok(())
    });
    sched_setaffinity(None, &before)?;
    contended
}

/// A reader sleeps, and this thread wants to write.
pub(super) fn write_lock(words: &[&str]) -> Result<()> {
    let (time, lock, held) = (millis(words, 0)?, RwLock::new(0), Barrier::new(2));
    let read = || {
        let reading = lock.read().unwrap_or_else(PoisonError::into_inner);
        held.wait();
        sleep(time);
        drop(reading);
    };
    scope(|scope| {
        Builder::new().name("reader".to_string()).spawn_scoped(scope, read).context("cannot start a thread")?;
        held.wait();
        *lock.write().unwrap_or_else(PoisonError::into_inner) = 1;
        Ok(())
    })
}

/// The thread that makes the condition true sleeps first.
pub(super) fn condition(words: &[&str]) -> Result<()> {
    let (time, met, told) = (millis(words, 0)?, Mutex::new(false), Condvar::new());
    let tell = || {
        sleep(time);
        *met.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_one();
    };
    scope(|scope| {
        Builder::new().name("teller".to_string()).spawn_scoped(scope, tell).context("cannot start a thread")?;
        wait_for(&met, &told);
        Ok(())
    })
}

fn wait_for(met: &Mutex<bool>, told: &Condvar) {
    let mut now = met.lock().unwrap_or_else(PoisonError::into_inner);
    while !*now {
        now = told.wait(now).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Threads of the pool.
const POOL_THREADS: usize = 2;

/// One item of work.
enum Item {
    /// Somebody's, which takes long.
    Long(Duration),
    /// The one that is waited for.
    Awaited,
}

/// Both threads of a pool have something long to compute before they come to this thread's item.
pub(super) fn pool(words: &[&str]) -> Result<()> {
    let (time, done, told) = (millis(words, 0)?, Mutex::new(false), Condvar::new());
    let (sender, receiver) = channel();
    let items = Mutex::new(receiver);
    scope(|scope| {
        for number in 0..POOL_THREADS {
            let thread = Builder::new().name(format!("pool-{number}"));
            thread.spawn_scoped(scope, || work_off(&items, &done, &told)).context("cannot start a thread")?;
        }
        for _ in 0..POOL_THREADS {
            sender.send(Item::Long(time))?;
        }
        sender.send(Item::Awaited)?;
        drop(sender);
        wait_for(&done, &told);
        Ok(())
    })
}

fn work_off(items: &Mutex<Receiver<Item>>, done: &Mutex<bool>, told: &Condvar) {
    loop {
        let next = items.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(Item::Long(time)) => compute(time),
            Ok(Item::Awaited) => {
                *done.lock().unwrap_or_else(PoisonError::into_inner) = true;
                told.notify_one();
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn each_waits_for_its_thread() {
        for operation in [mutex_asleep, write_lock, condition, pool] {
            let begun = Instant::now();
            operation(&["40"]).expect("it can be carried out");
            assert!(begun.elapsed() >= Duration::from_millis(40));
        }
    }

    #[test]
    fn the_affinity_is_as_before() {
        let before = sched_getaffinity(None).expect("a set");
        if before.count() < 2 {
            assert!(mutex_starved(&["0", "5"]).is_err());
            return;
        }
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).expect("a CPU").to_string();
        mutex_starved(&[&cpu, "10"]).expect("there are two CPUs");
        assert!(sched_getaffinity(None).is_ok_and(|after| after == before));
    }
}
