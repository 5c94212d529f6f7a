// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU lists such as `0,2-3`, the CPUs that this process can use, and pinning of a thread.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Limit of CPU numbers that are accepted.
const CPU_LIMIT: usize = 8_192;

/// CPUs of a request, each once and in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuList(pub Vec<usize>);

/// Parses a list of at least one CPU.
pub(crate) fn cpu_list(text: &str) -> std::result::Result<CpuList, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last && last < CPU_LIMIT => list.extend(first..=last),
            _ => return Err(format!("{part:?} is not a CPU; name some, such as 0,2-3")),
        }
    }
    list.sort_unstable();
    list.dedup();
    Ok(CpuList(list))
}

/// Formats CPUs as a list of ranges.
fn list(cpus: &[usize]) -> String {
    let runs =
        cpus.chunk_by(|one, next| one + 1 == *next).filter_map(|run| run.first().zip(run.last()));
    let text = runs.map(
        |(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") },
    );
    text.collect::<Vec<_>>().join(",")
}

/// Returns the CPUs that this process can use, in ascending order.
pub(crate) fn allowed_cpus() -> Result<Vec<usize>> {
    let set =
        sched_getaffinity(None).context("cannot determine which CPUs this process may use")?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Fails with the first CPU that this process cannot use.
pub(crate) fn expect_allowed(cpus: &[usize]) -> Result<()> {
    let allowed = allowed_cpus()?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => bail!("this process may not use CPU {cpu}; it may use {}", list(&allowed)),
        None => Ok(()),
    }
}

/// Pins the calling thread to one CPU.
pub(crate) fn stay_on(cpu: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("cannot stay on CPU {cpu}"))
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
    fn a_thread_stays_where_it_is_put() {
        let cpus = allowed_cpus().expect("they can be asked for");
        let last = cpus[cpus.len() - 1];
        let there = std::thread::spawn(move || stay_on(last).and_then(|()| allowed_cpus()));
        assert_eq!(there.join().expect("it ends").expect("it is allowed"), [last]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = expect_allowed(&[CpuSet::MAX_CPU]).expect_err("there is none").to_string();
        assert!(error.starts_with("this process may not use CPU 1024; it may use "), "{error}");
        assert!(expect_allowed(&allowed_cpus().expect("they can be asked for")).is_ok());
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(cpu_list("3,0-1,1"), Ok(CpuList(vec![0, 1, 3])));
        for wrong in ["", "a", "1-", "-1", "3-1", "99999", "1,,2"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
