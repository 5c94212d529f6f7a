// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of `tipme idle`: shares, profiles, owners of the stolen time, and accuracy of the
//! instrument.

mod plots;
mod validation;

use crate::choice::number;
pub(super) use plots::plots;
use tipme_measure::idle::{
    CpuFigures, CpuProfile, Exclusion, IdleDetails, NamedGap, NamedTime, Resident, StolenShares,
};
use tipme_measure::{Document, ms};
use tipme_report::conditions;
use tipme_report::plot::words::plain;

/// Columns of a profile in a terminal.
const COLUMNS: usize = 64;
/// Rows of the table of residents.
const RESIDENTS_MAX: usize = 16;
/// Rows of the list of gaps.
const GAPS_MAX: usize = 8;
/// Maximum number of parts that are listed for a gap.
const PARTS_MAX: usize = 3;
/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 60;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Difference between the two accounts that is worth mentioning, in percentage points.
const APART_POINTS: f64 = 2.0;
const APART: &str = "The two accounts are more than 2 points apart: many interrupts, which most kernels charge to the interrupted thread,\n\
                     or time that a hypervisor took.\n";
const APART_BY_NAMES: &str = "The two accounts are more than 2 points further apart than interrupts and others outside the kernel took, which\n\
                              most kernels charge to the interrupted thread.\n";
const CHARGED: &str = "The two accounts are more than 2 points apart, and no more than 2 beyond what interrupts and others outside the kernel\n\
                       took, which most kernels charge to the interrupted thread.\n";

/// Effect of the loop on the machine.
const OBSERVER: &str = "The loops kept the CPUs out of deep idle states: an idle machine would sleep, and wake up more slowly.\n";

/// Formats a run; for a validation, its accuracy.
pub(super) fn text(document: &Document<IdleDetails>) -> String {
    let details = &document.details;
    if let Some(known) = &details.validation {
        return format!("{}{}\n", validation::validation(known), conditions(&document.machine));
    }
    let profiles: Vec<CpuProfile> =
        details.observed.iter().map(|one| CpuProfile::of(one, COLUMNS)).collect();
    of_run(document, &profiles)
}

fn of_run(document: &Document<IdleDetails>, profiles: &[CpuProfile]) -> String {
    let details = &document.details;
    let mut parts = vec![headline(document), cpus(&details.cpus), strips(profiles)];
    parts.push(names(details));
    parts.extend((!details.largest.is_empty()).then(|| gaps(&details.largest)));
    parts.push(footer(document));
    parts.join("\n")
}

fn headline(document: &Document<IdleDetails>) -> String {
    let details = &document.details;
    let how = if details.method == "classic" { ", by the loop of fixed length" } else { "" };
    let seconds =
        document.runs.iter().map(|run| run.duration_ns).max().unwrap_or_default() as f64 / 1e9;
    let (cpus, places) = (count(details.cpus.len(), "CPU"), if seconds < 1.0 { 3 } else { 1 });
    let (stolen, check) = (100.0 * details.stolen_share, 100.0 * details.check_share);
    format!(
        "{cpus} for {seconds:.places$} s{how}: others had {stolen:.2}% of the time.\n\
         By the kernel's account of the loops' own CPU time it was {check:.2}%.\n"
    )
}

/// `1 CPU`, `2 CPUs`.
fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn cpus(cpus: &[CpuFigures]) -> String {
    let head = " CPU   stolen    check  points  records    longest    gaps   p50 µs   p99 µs    longest  lost\n";
    let rows = cpus.iter().map(|cpu| {
        format!(
            "{:>4} {:>7.2}% {:>7.2}% {:>+7.2} {:>8} {:>7.2} ms {:>7} {:>8} {:>8} {:>7.2} ms {:>5}\n",
            cpu.cpu,
            100.0 * cpu.stolen_share,
            100.0 * cpu.check_share,
            cpu.difference_points,
            cpu.records,
            cpu.longest_record_ms,
            cpu.gaps.count,
            number(cpu.gaps.p50_us, 1),
            number(cpu.gaps.p99_us, 1),
            cpu.gaps.longest_ms,
            cpu.gaps.lost + cpu.records_lost
        )
    });
    head.to_owned() + &rows.collect::<String>() + apart(cpus).unwrap_or_default()
}

/// Explains a difference between the two accounts, if there is one.
fn apart(cpus: &[CpuFigures]) -> Option<&'static str> {
    let far = cpus.iter().filter(|cpu| cpu.difference_points.abs() > APART_POINTS);
    let worst = far.max_by_key(|cpu| cpu.is_apart(APART_POINTS))?;
    Some(match worst.charged_points {
        None => APART,
        Some(_) if worst.is_apart(APART_POINTS) => APART_BY_NAMES,
        Some(_) => CHARGED,
    })
}

/// Formats one line for each CPU and bin width.
fn strips(profiles: &[CpuProfile]) -> String {
    let width = profiles.first().map_or(0.0, |profile| profile.column_ms);
    let head =
        format!("Utilisation, the highest bin in each {width:.0} ms; a full block is 100%:\n");
    let lines = profiles.iter().flat_map(|profile| {
        [("1 ms", &profile.bins_1ms), ("10 ms", &profile.bins_10ms)].map(|(width, bins)| {
            let highest = 100.0 * bins.iter().copied().fold(0.0, f64::max);
            format!(
                "cpu {:<3} {width:>5} bins |{}| highest {highest:.0}%\n",
                profile.cpu,
                strip(bins)
            )
        })
    });
    std::iter::once(head).chain(lines).collect()
}

fn strip(bins: &[f64]) -> String {
    let blocks = bins.iter().map(|share| match (share * 8.0).ceil() as usize {
        0 => ' ',
        eighths => BLOCKS[eighths.min(BLOCKS.len()) - 1],
    });
    blocks.collect()
}

fn names(details: &IdleDetails) -> String {
    match (&details.named, &details.no_names_because) {
        (Some(named), _) => {
            named_share(named) + &outside(&details.cpus) + &residents(&details.residents)
        }
        (None, why) => {
            let why = why.as_deref().unwrap_or("nothing was recorded");
            format!(
                "The owners of that time are unknown: {}.\n{}",
                plain(why, 300),
                residents(&details.residents)
            )
        }
    }
}

fn named_share(named: &StolenShares) -> String {
    let StolenShares { named, recorded, beside, tick, outside, recorder } = named;
    let [named, recorded, beside, tick, outside, recorder] =
        [named, recorded, beside, tick, outside, recorder].map(|share| 100.0 * share);
    format!(
        "{named:.1}% of the stolen time has a name: {recorded:.1}% recorded, {beside:.1}% kernel entry and exit,\n\
         {tick:.1}% timer tick by its period, {outside:.1}% outside the kernel. The recorder itself took {recorder:.1}%.\n"
    )
}

/// Explains if time without a record is certainly spent outside the kernel.
fn outside(cpus: &[CpuFigures]) -> String {
    let lines = cpus.iter().filter_map(|CpuFigures { cpu, exclusion, .. }| {
        let proof = exclusion.as_ref()?;
        let Exclusion { counted, recorded, faults, gaps } = proof;
        let missing = counted.saturating_sub(*recorded);
        let so = if proof.holds() {
            "outside the kernel"
        } else {
            "unexplained: they may have been the cause"
        };
        Some(format!(
            "cpu {cpu}: {gaps} gaps contain time without a record; {missing} of {counted} interrupts and {faults} page faults have \
             none: {so}.\n"
        ))
    });
    lines.collect()
}

fn residents(residents: &[Resident]) -> String {
    let head = "      total    share    gaps    longest  kind         name\n";
    let rows = residents.iter().take(RESIDENTS_MAX).map(resident);
    let more = residents.get(RESIDENTS_MAX..).unwrap_or_default();
    let rest = (!more.is_empty()).then(|| {
        let total: f64 = more.iter().map(|one| one.total_ms).sum();
        format!("{total:>8.2} ms  and {} more\n", more.len())
    });
    std::iter::once(head.to_owned()).chain(rows).chain(rest).collect()
}

fn resident(resident: &Resident) -> String {
    let every = resident.period_ms.map_or_else(String::new, |ms| format!(", every {}", span(ms)));
    format!(
        "{:>8.2} ms {:>7.1}% {:>7} {:>7.2} ms  {:<12} {}{every}\n",
        resident.total_ms,
        100.0 * resident.share_of_stolen,
        resident.gaps,
        resident.longest_ms,
        resident.kind.name(),
        plain(&resident.name, NAME_CHARS)
    )
}

/// `5.0 s`, `40.0 ms`.
fn span(ms: f64) -> String {
    if ms >= 999.5 { format!("{:.1} s", ms / 1e3) } else { format!("{ms:.1} ms") }
}

fn gaps(gaps: &[NamedGap]) -> String {
    let mut text = "Longest gaps:\n".to_owned();
    for NamedGap { cpu, start_s, length_ms, by } in gaps.iter().take(GAPS_MAX) {
        let line = format!("{start_s:>9.3} s  cpu {cpu:<3} {length_ms:>8.2} ms  {}", owners(by));
        text += &format!("{}\n", line.trim_end());
    }
    text
}

/// Lists the largest parts of a gap, and the others as one.
fn owners(parts: &[NamedTime]) -> String {
    let first = parts
        .iter()
        .take(PARTS_MAX)
        .map(|part| format!("{} {:.2} ms", plain(&part.name, NAME_CHARS), part.ms));
    let others = parts.get(PARTS_MAX..).filter(|others| !others.is_empty());
    let others = others.map(|others| {
        let ms: f64 = others.iter().map(|part| part.ms).sum();
        format!("{} {ms:.2} ms", count(others.len(), "other"))
    });
    first.chain(others).collect::<Vec<_>>().join(", ")
}

fn footer(document: &Document<IdleDetails>) -> String {
    let details = &document.details;
    let mut text = String::new();
    for cpu in &details.cpus {
        text += &format!("cpu {}: {}\n", cpu.cpu, conditions_of(cpu));
    }
    let threshold =
        details.gap_min_ns.map_or_else(String::new, |ns| format!(", gaps from {ns} ns on"));
    text +=
        &format!("A record after each {} ms of the loop{threshold}.\n", ms(details.resolution_ns));
    text += OBSERVER;
    text + &conditions(&document.machine) + "\n"
}

fn conditions_of(cpu: &CpuFigures) -> String {
    let classic = cpu.classic.map(|classic| {
        let (begin, end) = (ms(classic.begin_ns), ms(classic.end_ns));
        let drift = classic.drift_percent;
        format!("loop of {begin:.3} ms, {end:.3} ms at the end: drift {drift:+.1}%")
    });
    let memory = if cpu.locked { "memory locked" } else { "memory not locked" };
    let mut parts: Vec<String> = classic.into_iter().chain([memory.to_owned()]).collect();
    parts.extend(cpu.ticks_per_s.map(|ticks| format!("{ticks:.0} timer ticks a second seen")));
    parts.extend(
        cpu.counted
            .iter()
            .take(4)
            .map(|one| format!("{} {}", one.count, plain(&one.name, NAME_CHARS))),
    );
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::idle::{GapFigures, HolderKind, InterruptCount};
    use tipme_measure::{MeasuredMachine, Run, SCHEMA};

    fn figures() -> CpuFigures {
        let gaps =
            GapFigures { count: 2_650, lost: 0, p50_us: Some(3.1), p99_us: None, longest_ms: 2.31 };
        CpuFigures {
            cpu: 1,
            stolen_share: 0.0125,
            check_share: 0.012,
            difference_points: 0.05,
            records: 9_875,
            longest_record_ms: 3.31,
            gaps,
            locked: true,
            counted: vec![InterruptCount {
                name: "local timer interrupts".to_owned(),
                count: 2_511,
            }],
            ticks_per_s: Some(250.0),
            exclusion: Some(Exclusion { counted: 2_520, recorded: 2_515, faults: 0, gaps: 130 }),
            ..CpuFigures::default()
        }
    }

    fn document() -> Document<IdleDetails> {
        let resident = Resident {
            kind: HolderKind::Thread,
            name: "jbd2/sda1-8".to_owned(),
            total_ms: 0.8,
            share_of_stolen: 0.4,
            gaps: 2,
            longest_ms: 0.41,
            period_ms: Some(5_000.0),
        };
        let by = [("kworker/1:2", 2.2), ("b", 0.06), ("c", 0.03), ("d", 0.01), ("e", 0.01)]
            .map(|(name, ms)| NamedTime { name: name.to_owned(), ms })
            .to_vec();
        let details = IdleDetails {
            method: "gaps".to_owned(),
            resolution_ns: 1_000_000,
            gap_min_ns: Some(1_000),
            stolen_share: 0.0125,
            check_share: 0.012,
            cpus: vec![figures()],
            named: Some(StolenShares {
                named: 0.98,
                recorded: 0.6,
                beside: 0.1,
                tick: 0.2,
                outside: 0.08,
                recorder: 0.04,
            }),
            residents: vec![resident],
            largest: vec![NamedGap { cpu: 1, start_s: 3.2, length_ms: 2.31, by }],
            ..IdleDetails::default()
        };
        let machine =
            MeasuredMachine { kernel: "6.18".to_owned(), cpus: 2, ..MeasuredMachine::default() };
        let runs = vec![Run { duration_ns: 10_000_000_000, ..Run::default() }];
        let (kind, version) = ("idle".to_owned(), "0.1.0".to_owned());
        Document { schema: SCHEMA, kind, version, machine, runs, details }
    }

    #[test]
    fn a_difference_of_the_accounts_has_its_explanation() {
        for (difference_points, charged_points, explanation) in [
            (1.9, None, None),
            (-1.9, Some(9.0), None),
            (2.1, None, Some(APART)),
            (2.1, Some(0.2), Some(CHARGED)),
            (2.3, Some(0.2), Some(APART_BY_NAMES)),
            (-2.1, Some(0.2), Some(APART_BY_NAMES)),
        ] {
            let cpu = CpuFigures { difference_points, charged_points, ..figures() };
            assert_eq!(apart(&[cpu]), explanation, "{difference_points}");
        }
    }

    #[test]
    fn a_run_has_its_tables() {
        let mut bins = vec![0.0; 10];
        bins[3] = 0.9;
        bins[4] = 0.01;
        let profile =
            CpuProfile { cpu: 1, column_ms: 1_000.0, bins_1ms: bins.clone(), bins_10ms: bins };
        insta::assert_snapshot!(of_run(&document(), &[profile]), @r"
        1 CPU for 10.0 s: others had 1.25% of the time.
        By the kernel's account of the loops' own CPU time it was 1.20%.

         CPU   stolen    check  points  records    longest    gaps   p50 µs   p99 µs    longest  lost
           1    1.25%    1.20%   +0.05     9875    3.31 ms    2650      3.1        -    2.31 ms     0

        Utilisation, the highest bin in each 1000 ms; a full block is 100%:
        cpu 1    1 ms bins |   █▁     | highest 90%
        cpu 1   10 ms bins |   █▁     | highest 90%

        98.0% of the stolen time has a name: 60.0% recorded, 10.0% kernel entry and exit,
        20.0% timer tick by its period, 8.0% outside the kernel. The recorder itself took 4.0%.
        cpu 1: 130 gaps contain time without a record; 5 of 2520 interrupts and 0 page faults have none: outside the kernel.
              total    share    gaps    longest  kind         name
            0.80 ms    40.0%       2    0.41 ms  thread       jbd2/sda1-8, every 5.0 s

        Longest gaps:
            3.200 s  cpu 1       2.31 ms  kworker/1:2 2.20 ms, b 0.06 ms, c 0.03 ms, 2 others 0.02 ms

        cpu 1: memory locked, 250 timer ticks a second seen, 2511 local timer interrupts
        A record after each 1 ms of the loop, gaps from 1000 ns on.
        The loops kept the CPUs out of deep idle states: an idle machine would sleep, and wake up more slowly.
        kernel 6.18, 2 CPUs
        ");
    }

    #[test]
    fn without_names_it_says_why() {
        let mut document = document();
        document.details.named = None;
        document.details.no_names_because = Some("only root may record".to_owned());
        assert!(
            of_run(&document, &[])
                .contains("The owners of that time are unknown: only root may record.\n")
        );
    }
}
