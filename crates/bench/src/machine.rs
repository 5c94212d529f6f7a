// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine of a measurement, and other activity on it meanwhile.

use crate::kernel_text::{CpuTicks, memory_field};
use std::fs::read_to_string;
use std::time::{Duration, Instant, SystemTime};
use tipme_measure::MeasuredMachine;
use tipme_record::proc_text::{PREEMPTION, preemption};

/// A machine since the start of a measurement.
pub struct Survey {
    machine: MeasuredMachine,
    begun: Instant,
    ticks: Option<CpuTicks>,
}

impl Survey {
    /// Starts with the measurement.
    pub fn begin() -> Survey {
        let since_1970 =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let cpus = read("/proc/cpuinfo");
        let machine = MeasuredMachine {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cpu: field(&cpus, "model name").unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_field("MemTotal"),
            hz: crate::timer::clocks().hz.and_then(|hz| u32::try_from(hz).ok()),
            preemption: preemption(&read(PREEMPTION)).map(str::to_owned),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            virtualised: field(&cpus, "flags")
                .map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            load_average: load_average(&read("/proc/loadavg")),
            steal_percent: None,
            begun_unix_s: since_1970.as_secs(),
            duration_s: 0.0,
        };
        Survey { machine, begun: Instant::now(), ticks: CpuTicks::now() }
    }

    /// Ends with the measurement.
    pub fn end(mut self) -> MeasuredMachine {
        let steal = self.ticks.zip(CpuTicks::now());
        let steal = steal.and_then(|(before, now)| before.steal_share(now));
        self.machine.steal_percent = steal.map(|share| 100.0 * share);
        self.machine.duration_s = self.begun.elapsed().as_secs_f64();
        self.machine
    }
}

fn read(path: &str) -> String {
    read_to_string(path).unwrap_or_default()
}

fn line(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Returns the value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim().to_owned())
    })
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut words = text.split(' ').map_while(|word| word.parse().ok());
    Some([words.next()?, words.next()?, words.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_kernels_texts() {
        assert_eq!(
            field("processor\t: 0\nmodel name\t: Some CPU\n", "model name").as_deref(),
            Some("Some CPU")
        );
        assert_eq!(load_average("0.10 0.20 0.30 1/100 42\n"), Some([0.1, 0.2, 0.3]));
        assert_eq!(load_average("nonsense"), None);
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Survey::begin().end();
        assert!(machine.cpus > 0 && !machine.kernel.is_empty() && machine.memory_bytes > 0);
    }
}
