// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the result file from repeats with their answers.

use super::joining::InputOutcome;
use super::judged::JudgedInputs;
use super::milestones::{Milestones, completed, handled};
use std::collections::BTreeMap;
use tipme_bench::measure::{MeasureDisplay, MeasureOptions, OperationUsage, Usage};
use tipme_bench::screen::Place;
use tipme_measure::think::interactive;
use tipme_measure::{
    ClassLimits, DEVIATION_MAX_PERCENT, Event, Events, InputClass, MeasuredMachine, Run, SCHEMA,
    Share, Summary, ThresholdProfile, apdex, columns, deviation_percent, excess_latency_rate,
    interaction_p98, interarrival, mean, ms, top_class,
};
use tipme_record::Nanos;
use tipme_report::measure::{
    self, ClassFigures, CumulativeLatencies, DriverCost, EventOutcome, ExcessRate, Instrument,
    InterArrival, LONG_MS, LongEvent, MeasureDetails, MeasureDocument, OperationCounters,
};

/// Latencies above which events count for the inter-arrival times, in nanoseconds.
const APART_NS: [u64; 4] = [25_000_000, 50_000_000, 100_000_000, 200_000_000];

/// Labels for the application's start in its first repeat, with caches as found, and in later ones.
const FIRST_START: &str = "start (first)";
const LATER_START: &str = "start";

/// One input with its outcome, the basis of all figures.
struct InputRow<'a> {
    repeat: usize,
    at: Nanos,
    class: InputClass,
    label: &'a str,
    outcome: InputOutcome,
    milestones: Milestones,
}

/// Returns the whole result.
pub fn document(
    options: &MeasureOptions,
    profile: ThresholdProfile,
    why_no_tap: Option<String>,
    judged: &[JudgedInputs],
    machine: MeasuredMachine,
) -> MeasureDocument {
    let limits = |class| options.script.limits(class, profile);
    let runs: Vec<Run> = judged.iter().map(|judged| run(judged, &limits)).collect();
    let details = details(options, profile, why_no_tap, judged, &runs, &limits);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    MeasureDocument { schema: SCHEMA, kind: "measure".to_owned(), version, machine, runs, details }
}

fn details(
    options: &MeasureOptions,
    profile: ThresholdProfile,
    why_no_tap: Option<String>,
    judged: &[JudgedInputs],
    runs: &[Run],
    limits: &impl Fn(InputClass) -> ClassLimits,
) -> MeasureDetails {
    let rows: Vec<InputRow<'_>> = judged.iter().flat_map(rows).collect();
    let events: Vec<measure::EventRow> = rows.iter().map(event_row).collect();
    let count = |outcome| events.iter().filter(|event| event.outcome == outcome).count() as u64;
    let all = Summary::new(latencies(&rows, |_| true));
    let background: Option<u64> = judged.iter().map(|judged| judged.waits.background).sum();
    MeasureDetails {
        script: options.script.name.clone(),
        about: options.script.about.clone(),
        application: options.application.clone(),
        instrument: instrument(options, why_no_tap.is_none()),
        instrument_why: why_no_tap,
        profile,
        scripted: rows.len() as u64,
        answered: count(EventOutcome::Answered),
        open: count(EventOutcome::Open),
        silent: count(EventOutcome::Silent),
        lost: count(EventOutcome::Lost),
        classes: classes(&rows)
            .into_iter()
            .map(|class| figures(class, &rows, limits(class)))
            .collect(),
        interaction_p98_ms: interaction_p98(&all).map(ms),
        elr: rate(runs),
        wait_ms: Some(ms(total(judged, |judged| judged.waits.wait))),
        noticed_wait_ms: Some(ms(total(judged, |judged| judged.waits.noticed))),
        think_ms: Some(ms(total(judged, |judged| judged.waits.think))),
        background_ms: background.map(ms),
        long_events: long_events(&rows),
        inter_arrival: inter_arrival(runs),
        cumulative: cumulative(runs),
        counters: counters(judged),
        driver: driver(judged),
        restless_waits: judged.iter().map(|judged| judged.repeat.restless).sum(),
        events,
    }
}

fn total(judged: &[JudgedInputs], of: impl Fn(&JudgedInputs) -> u64) -> u64 {
    judged.iter().map(of).sum()
}

fn instrument(options: &MeasureOptions, tap: bool) -> Instrument {
    match options.display {
        _ if tap => Instrument::DisplayTap,
        MeasureDisplay::Own(Place::Wayland | Place::Compositor(_)) => Instrument::Screencopy,
        MeasureDisplay::Own(Place::X11) | MeasureDisplay::Display(_) => Instrument::Damage,
    }
}

/// Returns the start and all inputs of a repeat.
fn rows(judged: &JudgedInputs) -> Vec<InputRow<'_>> {
    let repeat = judged.repeat.number + 1;
    let label = if judged.repeat.number == 0 { FIRST_START } else { LATER_START };
    let (at, outcome) = (Nanos(judged.start.times().input), InputOutcome::Answered(judged.start));
    let first = InputRow {
        repeat,
        at,
        class: InputClass::Start,
        label,
        outcome,
        milestones: Milestones::default(),
    };
    let inputs = judged.repeat.sent.iter().zip(&judged.outcomes).zip(&judged.milestones);
    let inputs = inputs.map(|((sent, outcome), milestones)| InputRow {
        repeat,
        at: sent.at,
        class: sent.class,
        label: &sent.label,
        outcome: *outcome,
        milestones: *milestones,
    });
    std::iter::once(first).chain(inputs).collect()
}

impl InputRow<'_> {
    fn event(&self) -> Option<Event> {
        match self.outcome {
            InputOutcome::Answered(event) => Some(event),
            InputOutcome::Silent | InputOutcome::Lost => None,
        }
    }

    fn latency(&self) -> Option<u64> {
        self.event().map(|event| event.latency())
    }
}

fn latencies(rows: &[InputRow<'_>], wanted: impl Fn(&InputRow<'_>) -> bool) -> Vec<u64> {
    rows.iter().filter(|row| wanted(row)).filter_map(InputRow::latency).collect()
}

/// Converts an input to its form in the file.
fn event_row(row: &InputRow<'_>) -> measure::EventRow {
    let event = row.event();
    let parts = event.map(|event| event.parts());
    let outcome = match row.outcome {
        InputOutcome::Answered(event) if event.is_censored() => EventOutcome::Open,
        InputOutcome::Answered(_) => EventOutcome::Answered,
        InputOutcome::Silent => EventOutcome::Silent,
        InputOutcome::Lost => EventOutcome::Lost,
    };
    measure::EventRow {
        repeat: row.repeat,
        t_ns: event.map_or(row.at.0, |event| event.times().input),
        class: row.class.name().to_owned(),
        label: row.label.to_owned(),
        outcome,
        latency_ms: row.latency().map(ms),
        first_ms: event.and_then(|event| event.first_response()).map(ms),
        settled_ms: event.and_then(|event| event.settled()).map(ms),
        handled_ms: row.milestones.handled.map(|reached| ms(reached.latency)),
        completed_ms: row.milestones.completed.map(|reached| ms(reached.latency)),
        queue_ms: parts.and_then(|parts| parts.queue).map(ms),
        processing_ms: parts.and_then(|parts| parts.processing).map(ms),
        presented_ms: parts.and_then(|parts| parts.presentation).map(ms),
        join: event.map(|event| event.times().join),
    }
}

/// Returns the occurring classes, quickest first.
fn classes(rows: &[InputRow<'_>]) -> Vec<InputClass> {
    let mut classes: Vec<InputClass> = rows.iter().map(|row| row.class).collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

fn figures(class: InputClass, rows: &[InputRow<'_>], limits: ClassLimits) -> ClassFigures {
    let summary = Summary::new(latencies(rows, |row| row.class == class));
    let own: Vec<&InputRow<'_>> = rows.iter().filter(|row| row.class == class).collect();
    let p98 = summary.shown(Share::P98);
    let deciding = p98.or(summary.max());
    ClassFigures {
        class: class.name().to_owned(),
        n: summary.n(),
        p50_ms: summary.shown(Share::P50).map(ms),
        p98_ms: p98.map(ms),
        max_ms: summary.max().map(ms),
        interaction_p98_ms: interaction_p98(&summary).map(ms),
        threshold_ms: ms(limits.threshold),
        frustrated_ms: ms(limits.frustrated),
        apdex: apdex(&summary, limits.threshold, limits.frustrated),
        open: own.iter().filter_map(|row| row.event()).filter(Event::is_censored).count() as u64,
        silent: own.iter().filter(|row| row.outcome == InputOutcome::Silent).count() as u64,
        lost: own.iter().filter(|row| row.outcome == InputOutcome::Lost).count() as u64,
        exceeded: deciding.is_some_and(|latency| latency > limits.threshold),
        handled: handled(own.iter().map(|row| &row.milestones)),
        completed: completed(own.iter().map(|row| &row.milestones)),
    }
}

/// Returns a repeat in the common form of all results, from the start of the application to the end
/// of the script.
fn run(judged: &JudgedInputs, limits: &impl Fn(InputClass) -> ClassLimits) -> Run {
    let mut by_class: BTreeMap<InputClass, Vec<Event>> = BTreeMap::new();
    let (mut awaited, mut lost) = (Vec::new(), 0);
    for row in rows(judged) {
        by_class.entry(row.class).or_default().extend(row.event());
        awaited.push((row.at.0, row.at.0 + row.latency().unwrap_or(0)));
        lost += u64::from(row.outcome == InputOutcome::Lost);
    }
    let classes = by_class
        .into_iter()
        .map(|(class, events)| columns(class.name(), Some(limits(class)), &events));
    let (from, to) = (judged.repeat.started.begun.0, judged.repeat.ended.0);
    Run {
        name: format!("repeat {}", judged.repeat.number + 1),
        duration_ns: to.saturating_sub(from),
        interactive_ns: Some(interactive(&awaited, from, to)),
        lost,
        classes: classes.collect(),
    }
}

fn rate(runs: &[Run]) -> Option<ExcessRate> {
    let classes = runs.iter().flat_map(|run| &run.classes);
    let interactive = runs.iter().filter_map(|run| run.interactive_ns).sum();
    let (top_class, top_share) = top_class(classes.clone()).unzip();
    Some(ExcessRate { rate: excess_latency_rate(classes, interactive)?, top_class, top_share })
}

/// Sums all classes except the start, which is cold once and warm later.
fn total_ms(run: &Run) -> f64 {
    let classes = run.classes.iter().filter(|events| events.class != InputClass::Start.name());
    classes.flat_map(|events| &events.latencies_ns).map(|latency| ms(*latency)).sum()
}

fn cumulative(runs: &[Run]) -> CumulativeLatencies {
    let repeats_ms: Vec<f64> = runs.iter().map(total_ms).collect();
    let (mean_ms, deviation_percent) = (mean(&repeats_ms), deviation_percent(&repeats_ms));
    let usable = deviation_percent.map(|percent| percent <= DEVIATION_MAX_PERCENT);
    CumulativeLatencies { repeats_ms, mean_ms, deviation_percent, usable }
}

/// Returns labels with an event over the limit, in the order of the script.
fn long_events(rows: &[InputRow<'_>]) -> Vec<LongEvent> {
    let mut labels: Vec<(&str, InputClass)> = Vec::new();
    for row in rows {
        let label = if row.label == LATER_START { FIRST_START } else { row.label };
        if !labels.contains(&(label, row.class)) {
            labels.push((label, row.class));
        }
    }
    let all = labels.into_iter().map(|(label, class)| long_event(label, class, rows));
    all.filter(|row| row.n_long > 0).collect()
}

fn long_event(label: &str, class: InputClass, rows: &[InputRow<'_>]) -> LongEvent {
    let mut own = rows.iter().filter(|row| {
        row.class == class
            && (row.label == label || label == FIRST_START && row.label == LATER_START)
    });
    let all = own.clone().filter_map(InputRow::latency);
    let n_long = all.filter(|latency| ms(*latency) > LONG_MS).count();
    let first = own.next().filter(|row| row.repeat == 1).and_then(InputRow::latency);
    let later = Summary::new(own.filter_map(InputRow::latency).collect());
    LongEvent {
        label: if label == FIRST_START { LATER_START } else { label }.to_owned(),
        class: class.name().to_owned(),
        first_ms: first.map(ms),
        later_min_ms: later.value(Share(0)).map(ms),
        later_p50_ms: later.shown(Share::P50).map(ms),
        later_max_ms: later.max().map(ms),
        n: later.n() + usize::from(first.is_some()),
        n_long,
    }
}

/// Returns the inter-arrival times of the repeat with the median cumulative latency: no user waits
/// between two repeats.
fn inter_arrival(runs: &[Run]) -> Vec<InterArrival> {
    let mut order: Vec<&Run> = runs.iter().collect();
    order.sort_by(|one, other| total_ms(one).total_cmp(&total_ms(other)));
    let Some(middle) = order.get(order.len().saturating_sub(1) / 2) else { return Vec::new() };
    let mut all = Events::default();
    for events in middle.classes.iter().filter(|events| events.class != InputClass::Start.name()) {
        for (start, latency) in events.starts_ns.iter().zip(&events.latencies_ns) {
            all.push(*start, *latency);
        }
    }
    let rows = APART_NS.into_iter().map(|threshold_ns| {
        let apart = interarrival(&all, threshold_ns);
        InterArrival {
            threshold_ms: ms(threshold_ns),
            n: apart.n,
            mean_s: apart.mean_ns.map(|nanos| nanos / 1e9),
            deviation_s: apart.deviation_ns.map(|nanos| nanos / 1e9),
            variation: apart.variation,
            period_s: apart.period.map(|period| period.seconds()),
        }
    });
    rows.collect()
}

fn counters(judged: &[JudgedInputs]) -> Vec<OperationCounters> {
    let mut sums: BTreeMap<(InputClass, &str), Usage> = BTreeMap::new();
    for OperationUsage { label, class, usage } in
        judged.iter().flat_map(|judged| &judged.repeat.usage)
    {
        sums.entry((*class, label)).and_modify(|sum| *sum = sum.plus(*usage)).or_insert(*usage);
    }
    let mut counters = Vec::new();
    for ((class, label), usage) in sums {
        let [cpu_ns, context_switches, page_faults, cycles, instructions, cache_misses, tlb_misses] =
            usage.scaled();
        let sent = judged.iter().flat_map(|judged| &judged.repeat.sent);
        counters.push(OperationCounters {
            label: label.to_owned(),
            class: class.name().to_owned(),
            n: sent.filter(|sent| sent.class == class && sent.label == label).count(),
            cpu_ms: cpu_ns.map(ms),
            context_switches,
            page_faults,
            cycles,
            instructions,
            cache_misses,
            tlb_misses,
        });
    }
    counters
}

fn driver(judged: &[JudgedInputs]) -> DriverCost {
    let cpu_ms = ms(total(judged, |judged| judged.repeat.driver.cpu.0));
    let wall_ms = ms(total(judged, |judged| judged.repeat.ended.since(judged.repeat.begun).0));
    DriverCost {
        cpu_ms,
        cpu_percent: if wall_ms > 0.0 { 100.0 * cpu_ms / wall_ms } else { 0.0 },
        requests: total(judged, |judged| judged.repeat.driver.requests),
        reports: total(judged, |judged| judged.repeat.drawn.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::milestones::MilestoneLatency;
    use crate::measure::waiting::PhaseTimes;
    use tipme_bench::measure::{
        ApplicationStart, CounterReading, MeasureRepeat, PlayerCost, SentInput,
    };
    use tipme_bench::script::Script;
    use tipme_measure::{Answer, EventJoin};

    const MS: u64 = 1_000_000;

    fn answered(class: InputClass, input_ms: u64, latency_ms: u64) -> Event {
        let (input, end) = (input_ms * MS, (input_ms + latency_ms) * MS);
        let (dequeued, join) = (Some(input + MS), EventJoin::Exact);
        Answer { input, dequeued, first: end, settled: end, join, open: false }.event(class)
    }

    fn repeat(number: usize, latencies_ms: &[u64]) -> JudgedInputs {
        let times = (1_000..).step_by(200);
        let answers = times.clone().zip(latencies_ms);
        let mut outcomes: Vec<InputOutcome> = answers
            .map(|(at, ms)| InputOutcome::Answered(answered(InputClass::Key, at, *ms)))
            .collect();
        outcomes.extend([InputOutcome::Silent, InputOutcome::Lost]);
        let sent = times.take(outcomes.len()).map(|at| SentInput {
            at: Nanos(at * MS),
            label: "type".to_owned(),
            class: InputClass::Key,
        });
        let start = answered(InputClass::Start, 0, 300);
        let repeat = MeasureRepeat {
            number,
            started: ApplicationStart::default(),
            begun: Nanos(500 * MS),
            ended: Nanos(10_500 * MS),
            sent: sent.collect(),
            driver: PlayerCost { cpu: Nanos(100 * MS), requests: 5 },
            ..MeasureRepeat::default()
        };
        let waits = PhaseTimes { wait: 5 * MS, noticed: MS, think: 95 * MS, background: Some(0) };
        let [handled, completed] =
            [600, 700].map(|ms| Some(MilestoneLatency { latency: ms * MS, open: false }));
        let mut milestones = vec![Milestones { handled, completed }; latencies_ms.len()];
        milestones.resize(outcomes.len(), Milestones::default());
        JudgedInputs { repeat, outcomes, milestones, start, waits }
    }

    fn used(label: &str, ms: u64, faults: u64, cycles: u64) -> OperationUsage {
        let counts = [Some(ms * MS), None, Some(faults), Some(cycles), None, None, None];
        let usage = Usage(counts.map(|count| count.map(CounterReading::whole)));
        OperationUsage { label: label.into(), class: InputClass::Key, usage }
    }

    #[test]
    fn counters_are_summed_by_operation() {
        let mut judged = [repeat(0, &[20, 30]), repeat(1, &[20])];
        judged[0].repeat.usage = vec![
            used("type", 3, 40, 6_000),
            used("save", 9, 500, 70_000),
            used("type", 1, 2, 1_000),
        ];
        judged[1].repeat.usage = vec![used("type", 2, 8, 3_000)];
        let counters = result(&judged).details.counters;
        let rows: Vec<_> = counters
            .iter()
            .map(|row| (row.label.as_str(), row.n, row.cpu_ms, row.page_faults, row.cycles))
            .collect();
        let none = ("save", 0, Some(9.0), Some(500), Some(70_000));
        assert_eq!(rows, [none, ("type", 7, Some(6.0), Some(50), Some(10_000))]);
        assert_eq!(
            (counters[1].context_switches, counters[1].instructions),
            (None, None),
            "it is not counted here"
        );
    }

    fn result(judged: &[JudgedInputs]) -> MeasureDocument {
        let script = Script::parse("s", "about = \"x\"\n").expect("it is well formed");
        let options = MeasureOptions {
            script,
            application: Vec::new(),
            display: MeasureDisplay::default(),
            repeat: judged.len(),
            recorder: None,
        };
        document(&options, ThresholdProfile::Default, None, judged, MeasuredMachine::default())
    }

    #[test]
    fn every_input_is_accounted_for() {
        let result = result(&[repeat(0, &[10, 150]), repeat(1, &[10, 130])]);
        let details = &result.details;
        assert_eq!(
            (details.scripted, details.answered, details.silent, details.lost),
            (10, 6, 2, 2)
        );
        assert_eq!(
            details.scripted,
            details.answered + details.open + details.silent + details.lost
        );
        assert_eq!(result.runs[0].lost, 1);
        assert_eq!(result.runs[0].classes[0].latencies_ns, [10 * MS, 150 * MS]);
        assert_eq!((details.wait_ms, details.think_ms), (Some(10.0), Some(190.0)));
    }

    #[test]
    fn parts_sum_to_the_latency() {
        let result = result(&[repeat(0, &[10])]);
        let event = &result.details.events[1];
        assert_eq!(
            (event.queue_ms, event.processing_ms, event.latency_ms),
            (Some(1.0), Some(9.0), Some(10.0))
        );
        assert_eq!((event.outcome, event.presented_ms), (EventOutcome::Answered, None));
    }

    #[test]
    fn milestones_stand_beside_the_response() {
        let result = result(&[repeat(0, &[10, 15]), repeat(1, &[10, 13])]);
        let key = &result.details.classes[0];
        let milestones = [&key.handled, &key.completed]
            .map(|one| one.as_ref().map(|one| (one.n, one.max_ms, one.exceeded)));
        assert_eq!(milestones, [Some((4, 600.0, true)), Some((4, 700.0, false))]);
        assert_eq!((key.max_ms, key.exceeded, key.n), (Some(15.0), false, 4));
        let event = &result.details.events[1];
        assert_eq!(
            (event.latency_ms, event.handled_ms, event.completed_ms),
            (Some(10.0), Some(600.0), Some(700.0))
        );
        assert_eq!(
            (result.details.events[3].handled_ms, &result.details.classes[1].handled),
            (None, &None)
        );
    }

    #[test]
    fn a_class_over_its_threshold_is_marked() {
        let result = result(&[repeat(0, &[10, 150]), repeat(1, &[10, 130])]);
        let key = &result.details.classes[0];
        assert_eq!(
            (key.class.as_str(), key.n, key.max_ms, key.exceeded),
            ("key", 4, Some(150.0), true)
        );
        assert_eq!((key.p98_ms, key.silent, key.lost), (None, 2, 2));
        assert!(!result.details.classes[1].exceeded);
        let elr = result.details.elr.as_ref().expect("there was interaction");
        assert_eq!(elr.top_class.as_deref(), Some("key"));
        assert!((elr.rate.at_ms_per_minute - 80.0 / (21.0 / 60.0)).abs() < 1e-6, "{elr:?}");
    }

    #[test]
    fn repeats_that_differ_are_unusable() {
        let same = result(&[repeat(0, &[100]), repeat(1, &[101])]).details.cumulative;
        assert_eq!((same.usable, same.repeats_ms), (Some(true), vec![100.0, 101.0]));
        assert_eq!(
            result(&[repeat(0, &[100]), repeat(1, &[150])]).details.cumulative.usable,
            Some(false)
        );
        assert_eq!(result(&[repeat(0, &[100])]).details.cumulative.deviation_percent, None);
    }

    #[test]
    fn long_events_have_a_first_and_later_ones() {
        let result = result(&[repeat(0, &[150, 10]), repeat(1, &[60, 10])]);
        let long = &result.details.long_events;
        let start = &long[0];
        assert_eq!(
            (start.label.as_str(), start.first_ms, start.later_min_ms),
            ("start", Some(300.0), Some(300.0))
        );
        let typed = &long[1];
        assert_eq!(
            (typed.first_ms, typed.later_min_ms, typed.later_max_ms),
            (Some(150.0), Some(10.0), Some(60.0))
        );
        assert_eq!(typed.later_p50_ms, None);
        assert_eq!((typed.n_long, typed.n), (2, 4));
    }
}
