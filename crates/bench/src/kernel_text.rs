// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsers for the text files of /proc: memory, CPUs, and processes.

use std::time::Duration;

/// Indices of idle time, I/O wait and steal time among the ticks of a CPU.
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;

/// Returns a field of /proc/meminfo in bytes; 0 if there is no such field.
pub(crate) fn memory_field(name: &str) -> u64 {
    memory_of(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), name)
}

/// Returns a field from the text of /proc/meminfo.
fn memory_of(text: &str, name: &str) -> u64 {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB"));
    value.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or_default() << 10
}

/// Ticks of all CPUs together since boot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct CpuTicks {
    total: u64,
    idle: u64,
    steal: u64,
}

impl CpuTicks {
    pub(crate) fn now() -> Option<CpuTicks> {
        CpuTicks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line of /proc/stat. The guest fields behind the first eight are included in
    /// user time already.
    fn parse(text: &str) -> Option<CpuTicks> {
        let words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = words.take(8).map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let (idle, steal) = (ticks.get(IDLE)? + ticks.get(IOWAIT)?, *ticks.get(STEAL)?);
        Some(CpuTicks { total: ticks.iter().sum(), idle, steal })
    }

    /// Returns the share of the time until a later reading in which CPUs were busy.
    pub(crate) fn busy_share(self, later: CpuTicks) -> Option<f64> {
        let (total, idle) = (self.total_until(later)?, later.idle.checked_sub(self.idle)?);
        Some(total.checked_sub(idle)? as f64 / total as f64)
    }

    /// Returns the share of that time that a hypervisor took.
    pub(crate) fn steal_share(self, later: CpuTicks) -> Option<f64> {
        Some(later.steal.saturating_sub(self.steal) as f64 / self.total_until(later)? as f64)
    }

    fn total_until(self, later: CpuTicks) -> Option<u64> {
        later.total.checked_sub(self.total).filter(|total| *total > 0)
    }
}

/// Returns the steal time of one CPU since boot, from the text of /proc/stat.
pub(crate) fn steal_of(text: &str, cpu: usize) -> Option<Duration> {
    let name = format!("cpu{cpu}");
    let mut words = text
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next()? == name).then_some(words))?;
    let ticks = words.nth(STEAL)?.parse::<u64>().ok()?;
    Some(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second()).ok()?)
}

/// Returns the CPU time and the run-queue delay of a process, or of a thread as `thread-self`.
pub(crate) fn schedstat(process: &str) -> Option<(Duration, Duration)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    let mut words = text.split(' ').map(|word| word.parse().map(Duration::from_nanos).ok());
    Some((words.next()??, words.next()??))
}

/// Returns the line of /proc/PID/stat.
pub(crate) fn stat(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Returns the words behind the name, which may contain anything, even a parenthesis.
pub(crate) fn stat_words(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "MemTotal:        2048 kB\nMemFree:  12 kB\nMemAvailable:      3 kB\nHugePages_Total:       0\n";
        let fields = ["MemTotal", "MemAvailable", "Mem", "HugePages_Total", "SwapFree"];
        assert_eq!(fields.map(|name| memory_of(text, name)), [2 << 20, 3 << 10, 0, 0, 0]);
        assert!(memory_field("MemTotal") > 0);
    }

    #[test]
    fn busy_and_stolen_time_are_shares_of_all_cpus() {
        let ticks = CpuTicks::parse("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1");
        assert_eq!(ticks, Some(CpuTicks { total: 36, idle: 9, steal: 8 }));
        assert_eq!(["cpu0 1 2", "cpu  1 x", ""].map(CpuTicks::parse), [None; 3]);
        let before = CpuTicks::parse("cpu  10 0 5 100 5 0 0 0 0 0\ncpu0 1").expect("ticks");
        let after = CpuTicks::parse("cpu  20 5 10 150 15 0 0 0 0 0\n").expect("ticks");
        assert_eq!((before.busy_share(after), after.busy_share(before)), (Some(0.25), None));
        let before = CpuTicks::parse("cpu  1 1 1 1 1 1 1 3 9 9\n").expect("ticks");
        let after = CpuTicks::parse("cpu  21 21 11 11 11 11 11 13 9 9\n").expect("ticks");
        assert_eq!((before.steal_share(after), after.steal_share(after)), (Some(0.1), None));
    }

    #[test]
    fn each_cpu_has_its_own_steal() {
        let text = "cpu  1 1 1 1 1 1 1 9 0 0\ncpu0 1 1 1 1 1 1 1 3 0 0\ncpu1 1 1 1 1 1 1 1 250 0 0\nintr 5\n";
        assert_eq!(steal_of(text, 1), Some(Duration::from_millis(2_500)));
        assert_eq!(
            (steal_of(text, 2), steal_of("cpu0 1 2", 0), steal_of("", 0)),
            (None, None, None)
        );
    }

    #[test]
    fn stat_is_parsed_whatever_the_name_is() {
        let words = stat_words("12 (a) b) S 1 12").map(Iterator::collect::<Vec<&str>>);
        assert_eq!(words, Some(vec!["S", "1", "12"]));
        assert!(stat_words("nonsense").is_none() && stat(0).is_none() && schedstat("0").is_none());
        assert!(stat(std::process::id()).is_some() && schedstat("thread-self").is_some());
    }
}
