// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a loop runs, and that everybody else comes before it. Neither takes a right.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that this process may use, in ascending order.
pub(super) fn allowed_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask which CPUs this process may use")?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Fails with the first CPU that this process may not use.
pub(super) fn check(cpus: &[usize]) -> Result<()> {
    let allowed = allowed_cpus()?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => bail!("this process may not use CPU {cpu}; it may use {}", list(&allowed)),
        None => Ok(()),
    }
}

/// `0-3,6`.
fn list(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|one, next| one + 1 == *next).filter_map(|run| run.first().zip(run.last()));
    let text = runs.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    text.collect::<Vec<_>>().join(",")
}

/// Keeps the calling thread on one CPU.
pub(super) fn pin(cpu: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("cannot stay on CPU {cpu}"))
}

/// Lets the calling thread run only when nobody else wants to. An ordinary user cannot take that back.
pub(super) fn yield_to_all() -> Result<()> {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads one structure that lives until it returns.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &priority) } != 0 {
        bail!("cannot take the idle priority (SCHED_IDLE): {}", std::io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short() {
        assert_eq!(list(&[0, 1, 2, 3, 6, 8, 9]), "0-3,6,8-9");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn a_thread_goes_where_it_is_put() {
        let cpus = allowed_cpus().expect("they can be asked for");
        let last = cpus[cpus.len() - 1];
        let there = std::thread::spawn(move || {
            pin(last).expect("it is allowed");
            yield_to_all().expect("everybody may");
            allowed_cpus().expect("they can be asked for")
        });
        assert_eq!(there.join().expect("it ends"), [last]);
    }
}
