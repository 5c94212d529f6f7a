// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conditions of a measurement on one line.

use crate::plot::words::plain;
use tipme_measure::MeasuredMachine;

/// Maximum number of characters of the names of kernels, CPUs and clocks.
const NAME_CHARS: usize = 60;

/// Formats `kernel 6.18.44, 2 CPUs (name), virtual machine, clock tsc, HZ 250, load 0.12 0.20 0.30,
/// steal 0.1%`.
///
/// Unknown values are left out.
pub fn conditions(machine: &MeasuredMachine) -> String {
    let parts = [
        named("kernel", Some(&machine.kernel)),
        cpus(machine),
        machine
            .virtualised
            .map(|is| if is { "virtual machine" } else { "no virtual machine" })
            .map(str::to_owned),
        named("clock", machine.clock_source.as_ref()),
        machine.hz.map(|hz| format!("HZ {hz}")),
        named("preemption", machine.preemption.as_ref()),
        named("governor", machine.governor.as_ref()),
        machine.load_average.and_then(load),
        machine
            .steal_percent
            .filter(|percent| percent.is_finite())
            .map(|percent| format!("steal {percent:.1}%")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn named(what: &str, name: Option<&String>) -> Option<String> {
    let name = plain(name?.trim(), NAME_CHARS);
    (!name.is_empty()).then(|| format!("{what} {name}"))
}

fn cpus(machine: &MeasuredMachine) -> Option<String> {
    let model = plain(machine.cpu.trim(), NAME_CHARS);
    let model = if model.is_empty() { model } else { format!(" ({model})") };
    match machine.cpus {
        0 => None,
        1 => Some(format!("1 CPU{model}")),
        n => Some(format!("{n} CPUs{model}")),
    }
}

fn load(averages: [f64; 3]) -> Option<String> {
    let [one, five, fifteen] = averages;
    averages
        .iter()
        .all(|load| load.is_finite())
        .then(|| format!("load {one:.2} {five:.2} {fifteen:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_one_line() {
        let machine = MeasuredMachine {
            kernel: "6.18.44".to_owned(),
            cpu: "Some CPU @ 2.0GHz".to_owned(),
            cpus: 2,
            hz: Some(250),
            preemption: Some("lazy".to_owned()),
            clock_source: Some("tsc".to_owned()),
            virtualised: Some(true),
            governor: Some("performance".to_owned()),
            load_average: Some([0.12, 0.2, 0.3]),
            steal_percent: Some(0.06),
            ..MeasuredMachine::default()
        };
        insta::assert_snapshot!(conditions(&machine), @"kernel 6.18.44, 2 CPUs (Some CPU @ 2.0GHz), virtual machine, clock tsc, HZ 250, preemption lazy, governor performance, load 0.12 0.20 0.30, steal 0.1%");
    }

    #[test]
    fn unknown_conditions_are_left_out() {
        assert_eq!(conditions(&MeasuredMachine::default()), "");
        let machine = MeasuredMachine {
            kernel: "6.1\n<b>".to_owned(),
            cpus: 1,
            virtualised: Some(false),
            clock_source: Some(" ".to_owned()),
            load_average: Some([0.1, f64::NAN, 0.2]),
            steal_percent: Some(f64::NAN),
            ..MeasuredMachine::default()
        };
        insta::assert_snapshot!(conditions(&machine), @"kernel 6.1 <b>, 1 CPU, no virtual machine");
    }
}
