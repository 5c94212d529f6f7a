// SPDX-License-Identifier: MIT OR Apache-2.0
//! Very late wakeups: their budgets and periodic culprits.

use super::units::duration_us;
use crate::plot::words::{count, plain};
use tipme_measure::Document;
use tipme_measure::timer::{LatenessCause, LatenessPortion, Outlier, OutlierCulprit, TimerDetails};

/// Maximum number of outliers listed; the file contains more.
const LISTED: usize = 10;
/// Maximum number of portions listed per outlier.
const PORTIONS: usize = 4;
/// Minimum portion to be listed, in percent.
const PERCENT_MIN: f64 = 0.5;
/// Explanation of a late timer without a culprit on the CPU.
const TIMER: &str =
    "  (timer not fired: timer slack, or interrupts off or the CPU away for less than 0.5 ms)";
/// Maximum number of characters of a name.
const NAME_CHARS: usize = 64;

/// Lists the outliers with their budgets, and the culprits.
pub(super) fn text(document: &Document<TimerDetails>) -> String {
    let details = &document.details;
    let over: u64 = details.mechanisms.iter().map(|measured| measured.outliers_over).sum();
    if over == 0 {
        return "No wake-up was late enough for an explanation.\n".to_owned();
    }
    let mut lines = vec![headline(details, over)];
    let begin = document
        .runs
        .iter()
        .flat_map(|run| &run.classes)
        .filter_map(|events| events.starts_ns.first())
        .min();
    let mut worst: Vec<&Outlier> = details.outliers.iter().collect();
    worst.sort_by(|one, other| other.lateness_us.total_cmp(&one.lateness_us));
    lines.extend(
        worst.iter().take(LISTED).map(|outlier| line(outlier, begin.copied().unwrap_or(0))),
    );
    if !details.culprits.is_empty() {
        lines.push("Main culprits:".to_owned());
        lines.extend(details.culprits.iter().take(LISTED).map(culprit));
    }
    if details.culprits.iter().any(|culprit| culprit.cause == LatenessCause::Timer) {
        lines.push(TIMER.to_owned());
    }
    lines.join("\n") + "\n"
}

fn headline(details: &TimerDetails, over: u64) -> String {
    let each =
        details.mechanisms.iter().filter(|measured| measured.outliers_over > 0).map(|measured| {
            format!(
                "{} {} over {}",
                count(measured.outliers_over),
                measured.mechanism.name(),
                duration_us(measured.outlier_threshold_us)
            )
        });
    format!(
        "{} wake-ups were very late: {}; the worst:",
        count(over),
        each.collect::<Vec<_>>().join(", ")
    )
}

fn line(outlier: &Outlier, begin_ns: u64) -> String {
    let budget = match &outlier.budget {
        None => "not recorded".to_owned(),
        Some(portions) => portions
            .iter()
            .filter(|portion| portion.percent >= PERCENT_MIN)
            .take(PORTIONS)
            .map(portion)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let at = outlier.deadline_ns.saturating_sub(begin_ns) as f64 / 1e9;
    let mechanism = outlier.mechanism.name();
    format!(
        "  {:>9}  {mechanism} on CPU {} at {at:.3} s: {budget}",
        duration_us(outlier.lateness_us),
        outlier.cpu
    )
}

fn portion(portion: &LatenessPortion) -> String {
    format!("{:.0}% {}", portion.percent, owner(portion.cause, &portion.name))
}

/// Describes the cause, with its name if it has one.
fn owner(cause: LatenessCause, name: &str) -> String {
    let name = plain(name, NAME_CHARS);
    match cause {
        LatenessCause::Thread => format!("thread {name}"),
        LatenessCause::Interrupt | LatenessCause::Softirq => name,
        LatenessCause::HeldOff => format!("{name} with interrupts held off"),
        LatenessCause::Timer => format!("timer not fired {name}").trim_end().to_owned(),
        LatenessCause::Hypervisor => outside("the hypervisor", &name),
        LatenessCause::Firmware => outside("the firmware", &name),
        LatenessCause::Device => outside("a device", &name),
        LatenessCause::Outside => format!("not decided: {name}"),
        LatenessCause::IdleExit => "exit from idle".to_owned(),
        LatenessCause::Own => "on its own way back".to_owned(),
        LatenessCause::Rest => "small shares".to_owned(),
        LatenessCause::Unexplained => "unexplained".to_owned(),
    }
}

/// Formats an owner outside the kernel with its extent: `a device, which took one CPU, in
/// ioread32`.
fn outside(owner: &str, extent: &str) -> String {
    format!("{owner}, which took {}", if extent.is_empty() { "the CPU" } else { extent })
}

fn culprit(culprit: &OutlierCulprit) -> String {
    let period = culprit.period_s.map(|seconds| {
        let deviation = culprit.period_deviation_percent.unwrap_or(0.0);
        format!(", every {} (deviation {deviation:.1}%)", duration_us(seconds * 1e6))
    });
    let (owner, total) = (owner(culprit.cause, &culprit.name), duration_us(culprit.total_us));
    format!("  {owner}: {} times, {total}{}", count(culprit.outliers), period.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_outside_the_kernel_has_its_extent() {
        let cases = [
            (LatenessCause::Hypervisor, "", "the hypervisor, which took the CPU"),
            (
                LatenessCause::Firmware,
                "all CPUs at once",
                "the firmware, which took all CPUs at once",
            ),
            (
                LatenessCause::Device,
                "one CPU, in ioread8",
                "a device, which took one CPU, in ioread8",
            ),
            (
                LatenessCause::Outside,
                "the hypervisor or a device, one CPU",
                "not decided: the hypervisor or a device, one CPU",
            ),
        ];
        for (cause, name, words) in cases {
            assert_eq!(owner(cause, name), words);
        }
    }
}
