// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsers for the text files of /proc: memory, CPUs, and processes.

use std::time::Duration;

/// Index of steal time among the ticks of a CPU.
pub(crate) const STEAL: usize = 7;

/// Returns a field of /proc/meminfo in bytes; 0 if there is no such field.
pub(crate) fn memory_field(name: &str) -> u64 {
    memory_of(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), name)
}

/// Returns a field from the text of /proc/meminfo.
pub(crate) fn memory_of(text: &str, name: &str) -> u64 {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB"));
    value.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or_default() << 10
}

/// Returns the ticks of all CPUs together since boot, from the first line of /proc/stat: user,
/// nice, system, idle, iowait, irq, softirq, steal. The guest fields behind them are included in
/// user already.
pub(crate) fn cpu_ticks(text: &str) -> Option<Vec<u64>> {
    let words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    words.take(8).map(|word| word.parse().ok()).collect()
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
    fn ticks_are_those_of_all_cpus() {
        assert_eq!(cpu_ticks("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1"), Some((1..=8).collect()));
        assert_eq!(
            (cpu_ticks("cpu0 1 2"), cpu_ticks("cpu  1 x"), cpu_ticks("")),
            (None, None, None)
        );
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
    fn a_process_is_told_of_whatever_its_name_is() {
        let words = stat_words("12 (a) b) S 1 12").map(Iterator::collect::<Vec<&str>>);
        assert_eq!(words, Some(vec!["S", "1", "12"]));
        assert!(stat_words("nonsense").is_none() && stat(0).is_none() && schedstat("0").is_none());
        assert!(stat(std::process::id()).is_some() && schedstat("thread-self").is_some());
    }
}
