// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripted working session beside a recorder in automatic mode: its marks, misses and cost.
//!
//! The check types at a terminal and three editors in turn, on a private display, with capitals,
//! keys that draw nothing, and pauses, and moves the pointer over them. At last it moves the
//! pointer over a terminal that displays its position. Meanwhile hitches of several kinds begin at
//! random times, each caused by a program of a different name. Exit codes: 0 all bars are met, 1
//! one is missed, 2 it could not be measured.

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tipme_bench::faults::{Site, stop_for};
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::machine::Survey;
use tipme_bench::process::{ProcessGroup, cpu_times, family};
use tipme_bench::screen::TerminalScreen;
use tipme_bench::session::require;
use tipme_bench::worker::WorkerLauncher;
use tipme_bench::{PrivateSession, SessionOptions};
use tipme_control::{AutoCounts, Client, RecorderRequest, RecorderResponse};
use tipme_desktop::inject::{Pace, Typist};
use tipme_measure::MeasuredMachine;

const USAGE: &str =
    "check-auto [--minutes M] [--keys N] [--hitches N] [--seed N] [--tipme FILE] [--json FILE]";

/// Programs that cause the hitches; each is a link to the shell, so that each is a different
/// culprit.
const NAMES: [&str; 12] = [
    "warden", "sluice", "mortar", "quarry", "beacon", "cinder", "harbor", "jigsaw", "lumber",
    "magnet", "nickel", "oyster",
];

/// Programs to type at, each for an equal part of the session: Xt, GTK 3, Qt 5, GTK 4. Over the
/// last one only the pointer moves.
const PROGRAMS: [&[&str]; 5] = [
    &["xterm", "-geometry", "100x30+20+20", "-e", "bash", "--norc", "--noprofile", "-i"],
    &["mousepad"],
    &["featherpad"],
    &["gnome-text-editor"],
    &[
        "xterm",
        "-geometry",
        "100x30+20+20",
        "-e",
        "sh",
        "-c",
        "stty -icanon; printf '\\033[?1003h'; exec cat",
    ],
];

/// Interval between pointer movements; then their numbers between two bursts and around a hitch.
const MOVE: Duration = Duration::from_millis(8);
const MOVES: u32 = 40;
const MOVES_AROUND: u32 = 250;

/// Time for a new program to start following the pointer; nobody waits for it.
const SETTLES: Duration = Duration::from_secs(15);

/// Maximum time from the beginning of a hitch to its mark: the recorder waits for quiet and for the
/// check before.
const MARK_WITHIN: Duration = Duration::from_secs(35);

/// Time after the session for a mark in progress.
const TAIL: Duration = Duration::from_secs(8);

/// Bars.
const MISSED_MAX: usize = 1;
const FALSE_MAX: usize = 1;
const CPU_PERCENT_MAX: f64 = 0.2;

const ARM_TIMEOUT: Duration = Duration::from_secs(30);

struct StallPlan {
    minutes: f64,
    keys: usize,
    hitches: usize,
    seed: u64,
    tipme: PathBuf,
    json: Option<PathBuf>,
}

/// Target of a stall.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StallKind {
    StopsProgram,
    /// Stops the shell in a terminal, else the program itself.
    StopsShell,
    StopsServer,
    TakesCpu,
    /// Stops the program under the pointer, at which nobody types.
    StopsHovered,
}

const KINDS: [StallKind; 4] =
    [StallKind::StopsProgram, StallKind::TakesCpu, StallKind::StopsShell, StallKind::StopsServer];

struct Hitch {
    at: Instant,
    kind: StallKind,
    name: &'static str,
    millis: u64,
}

/// A line of the recorder, with its arrival time.
struct RecorderLine {
    at: Instant,
    text: String,
}

/// Result of the session, as `--json` writes it.
#[derive(Serialize)]
struct AutoOutcome {
    kind: &'static str,
    machine: MeasuredMachine,
    keys: usize,
    wall_s: f64,
    hitches: Vec<JudgedHitch>,
    /// Marks that name a culprit that caused no hitch.
    false_marks: Vec<FalseMark>,
    not_recorded: Vec<String>,
    cpu: RecorderCpu,
    /// Counters of the recorder.
    counts: AutoCounts,
    /// Distribution of the CPU time, with missed and false marks, for output.
    notes: String,
}

#[derive(Serialize)]
struct JudgedHitch {
    at_s: f64,
    ms: u64,
    kind: StallKind,
    culprit: &'static str,
    /// Time from the beginning to the mark that names the culprit; `None` if there is none.
    marked_after_s: Option<f64>,
    marked: String,
}

#[derive(Serialize)]
struct FalseMark {
    at_s: f64,
    line: String,
}

/// CPU use of the recorder, in percent of one CPU.
#[derive(Clone, Copy, Serialize)]
struct RecorderCpu {
    own_percent: f64,
    children_percent: f64,
}

fn main() -> ExitCode {
    match plan().and_then(|plan| run(&plan)) {
        Ok(met) => ExitCode::from(u8::from(!met)),
        Err(error) => {
            eprintln!("cannot measure: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Parses the arguments; values that are not given follow from the minutes.
fn plan() -> Result<StallPlan> {
    let mut values = std::collections::HashMap::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        values.insert(word, words.next().context(USAGE)?);
    }
    let minutes = number(values.remove("--minutes"), 30.0)?;
    let keys = number(values.remove("--keys"), minutes * 100.0)? as usize;
    let most = NAMES.len() as f64;
    let hitches = number(values.remove("--hitches"), (minutes * 1.8).clamp(1.0, most))? as usize;
    let seed = number(values.remove("--seed"), 1.0)? as u64;
    let tipme = values.remove("--tipme").map_or("target/release/tipme".into(), PathBuf::from);
    let json = values.remove("--json").map(PathBuf::from);
    if !values.is_empty() || hitches > NAMES.len() {
        bail!("{USAGE}; at most {} hitches", NAMES.len());
    }
    Ok(StallPlan {
        minutes,
        keys,
        hitches,
        seed,
        tipme: tipme.canonicalize().context("cannot find tipme; run make build")?,
        json,
    })
}

fn number(text: Option<String>, default: f64) -> Result<f64> {
    text.map_or(Ok(default), |text| text.parse().context(USAGE))
}

fn run(plan: &StallPlan) -> Result<bool> {
    require(&PROGRAMS.map(|words| words[0]))?;
    let interrupt = InterruptFlag::install()?;
    let survey = Survey::begin();
    let mut session =
        PrivateSession::start(SessionOptions { cpu: Some(1), ..SessionOptions::default() })?;
    let (mut recorder, lines) = start_recorder(plan, &session)?;
    let mut random = Rng::with_seed(plan.seed);
    let hitches = hitches(plan, &mut random);
    let (begin, before) = (Instant::now(), cpu_seconds(recorder.pid())?);
    let keys = work(plan, &mut session, &hitches, &mut random, &interrupt)?;
    interrupt.sleep(TAIL)?;
    let after = cpu_seconds(recorder.pid())?;
    let wall_s = begin.elapsed().as_secs_f64();
    let counts = counts(session.folder())?;
    recorder.expect_alive()?;
    drop(recorder);
    let lines = lines.try_iter().collect::<Vec<_>>();
    let (judged, false_marks) = judged(&hitches, &lines, begin);
    let cpu = RecorderCpu {
        own_percent: 100.0 * (after.0 - before.0) / wall_s,
        children_percent: 100.0 * (after.1 - before.1) / wall_s,
    };
    let outcome = AutoOutcome {
        kind: "auto",
        machine: survey.end(),
        keys,
        wall_s,
        notes: notes(cpu, &counts, &judged, &false_marks),
        hitches: judged,
        false_marks,
        not_recorded: lines
            .into_iter()
            .map(|line| line.text)
            .filter(|text| text.starts_with("not recorded"))
            .collect(),
        cpu,
        counts,
    };
    if let Some(path) = &plan.json {
        let text = serde_json::to_string_pretty(&outcome)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    outcome.print()
}

fn start_recorder(
    plan: &StallPlan,
    session: &PrivateSession,
) -> Result<(ProcessGroup, Receiver<RecorderLine>)> {
    let mut command = Command::new(&plan.tipme);
    command.args(["record", "--hot-keys", "off", "--auto", "--auto-per-hour", "60"]);
    command.args(["--display", &session.display_name(), "--state-dir"]);
    command.arg(session.folder()).stdin(Stdio::null()).stdout(Stdio::piped());
    session.show(&mut command);
    let mut recorder = ProcessGroup::start("tipme record", command, None)?;
    let output = recorder.child().stdout.take().context("the recorder has no output")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for text in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(RecorderLine { at: Instant::now(), text }).is_err() {
                break;
            }
        }
    });
    let first =
        lines.recv_timeout(ARM_TIMEOUT).context("the recorder did not start; it needs root")?;
    if !first.text.starts_with("recording") {
        bail!("the recorder said: {}", first.text);
    }
    Ok((recorder, lines))
}

/// Places one hitch in each of equal parts of the session, after some typing for the baseline.
fn hitches(plan: &StallPlan, random: &mut Rng) -> Vec<Hitch> {
    let begin = Instant::now();
    let millis = (plan.minutes * 60_000.0) as u64;
    let first = (millis / 10).clamp(15_000, 60_000);
    let part = (millis - first.min(millis)) / plan.hitches.max(1) as u64;
    let hitches = NAMES.into_iter().take(plan.hitches).enumerate().map(|(index, name)| {
        let after = first + part * index as u64 + random.u64(..part.saturating_sub(24_000).max(1));
        let after = Duration::from_millis(after);
        let hovered = after >= hovered_from(plan);
        Hitch {
            at: begin + if hovered { after.max(hovered_from(plan) + SETTLES) } else { after },
            kind: if hovered { StallKind::StopsHovered } else { KINDS[index % KINDS.len()] },
            name,
            millis: 650 + random.u64(..900),
        }
    });
    hitches.collect()
}

/// Returns the time for which each program is open.
fn part(plan: &StallPlan) -> Duration {
    Duration::from_secs_f64(plan.minutes * 60.0) / PROGRAMS.len() as u32
}

/// Returns the time from which the last program is open.
fn hovered_from(plan: &StallPlan) -> Duration {
    part(plan) * (PROGRAMS.len() as u32 - 1)
}

/// Types in bursts with pauses at one program after the other, and moves the pointer before each
/// burst. A due hitch begins in the middle of a burst. Over the last program only the pointer
/// moves. Returns the number of keys pressed.
fn work(
    plan: &StallPlan,
    session: &mut PrivateSession,
    hitches: &[Hitch],
    random: &mut Rng,
    interrupt: &InterruptFlag,
) -> Result<usize> {
    let begin = Instant::now();
    let (part, total) = (part(plan), Duration::from_secs_f64(plan.minutes * 60.0));
    let mut typist = Typist::open(&session.target(), Pace { seed: plan.seed, ..Pace::default() })?;
    let mut text = text(plan.seed);
    let (mut typed, mut next) = (0, hitches.iter().peekable());
    let mut programs = (0..).map(|index| part * index).zip(PROGRAMS).peekable();
    while begin.elapsed() < total {
        interrupt.check()?;
        if let Some((_, words)) = programs.next_if(|(from, _)| begin.elapsed() >= *from) {
            open(session, words)?;
        }
        let hitch = next.next_if(|hitch| hitch.at <= Instant::now());
        let due = plan.keys as f64 * begin.elapsed().as_secs_f64() / total.as_secs_f64();
        move_pointer(&mut typist, MOVES)?;
        if let Some(hitch) = hitch.filter(|hitch| hitch.kind == StallKind::StopsHovered) {
            let job = inject(session, hitch)?;
            move_pointer(&mut typist, MOVES_AROUND)?;
            drop(job);
        } else if begin.elapsed() >= hovered_from(plan) {
            move_pointer(&mut typist, MOVES_AROUND)?;
        } else if let Some(hitch) = hitch {
            typed += type_keys(&mut typist, &mut text, 8)?;
            let job = inject(session, hitch)?;
            typed += type_keys(&mut typist, &mut text, 16)?;
            drop(job);
        } else if (typed as f64) < due {
            typed += type_keys(&mut typist, &mut text, 15 + random.usize(..40))?;
        }
        interrupt.sleep(Duration::from_millis(300 + random.u64(..1_500)))?;
    }
    Ok(typed)
}

/// Opens a program in place of the previous one.
fn open(session: &mut PrivateSession, words: &[&str]) -> Result<()> {
    let mut command = Command::new(words[0]);
    session.prepare(command.args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::null()));
    session.open_program(words[0], command)
}

/// Returns endless lines for a shell, with some capitals and some keys that draw nothing.
fn text(seed: u64) -> impl Iterator<Item = char> {
    let mut random = Rng::with_seed(seed ^ 0x5eed);
    let line = "echo The quick Brown fox jumps over the Lazy dog\n";
    line.chars().cycle().map(move |key| match random.u64(..100) {
        0 => '\u{1b}',
        _ => key,
    })
}

fn type_keys(
    typist: &mut Typist,
    text: &mut impl Iterator<Item = char>,
    count: usize,
) -> Result<usize> {
    for key in text.take(count) {
        typist.key(key)?;
    }
    Ok(count)
}

/// Moves the pointer to and fro over the windows.
fn move_pointer(typist: &mut Typist, moves: u32) -> Result<()> {
    for step in 0..moves {
        let place = (step * 7 % 800) as i16;
        typist.move_to(60 + (place % 400 - 200).abs(), 60 + place / 4)?;
        std::thread::sleep(MOVE);
    }
    Ok(())
}

/// Starts the cause of the hitch; it ends by itself, or when the value is dropped.
fn inject(session: &PrivateSession, hitch: &Hitch) -> Result<ProcessGroup> {
    let site = Site {
        folder: session.folder().to_owned(),
        x11: None,
        launcher: WorkerLauncher(Vec::new()),
    };
    let program_pid = session.terminal_pid().context("no program is open")?;
    let seconds = format!("{}.{:03}", hitch.millis / 1_000, hitch.millis % 1_000);
    let pid = match hitch.kind {
        StallKind::StopsProgram | StallKind::StopsHovered => program_pid,
        StallKind::StopsShell => family(program_pid).get(1).copied().unwrap_or(program_pid),
        StallKind::StopsServer => session.server_pid()?,
        StallKind::TakesCpu => {
            let prefix = ["timeout", &seconds, "chrt", "--fifo", "10", "taskset", "-c", "1"]
                .map(OsString::from);
            return site.script(hitch.name, &prefix, "echo ready; while :; do :; done", &[]);
        }
    };
    stop_for(&site, hitch.name, pid, &seconds)
}

/// Returns the CPU times of a process and of its reaped children, in seconds.
fn cpu_seconds(pid: u32) -> Result<(f64, f64)> {
    let (own, children) = cpu_times(pid).with_context(|| format!("no process {pid}"))?;
    Ok((own.as_secs_f64(), children.as_secs_f64()))
}

/// Queries the counters of the recorder.
fn counts(folder: &Path) -> Result<AutoCounts> {
    match Client::new(folder).call(&RecorderRequest::Status)? {
        RecorderResponse::Status(status) => {
            status.auto.context("the recorder does not mark by itself")
        }
        _ => bail!("the recorder did not report its state"),
    }
}

/// Pairs each hitch with its mark; returns the other marks as false ones.
fn judged(
    hitches: &[Hitch],
    lines: &[RecorderLine],
    begin: Instant,
) -> (Vec<JudgedHitch>, Vec<FalseMark>) {
    let mut marks: Vec<&RecorderLine> =
        lines.iter().filter(|line| line.text.starts_with("marked ")).collect();
    let judged = hitches.iter().map(|hitch| judge(hitch, &mut marks, begin)).collect();
    let false_marks = marks.iter().map(|line| FalseMark {
        at_s: line.at.duration_since(begin).as_secs_f64(),
        line: line.text.clone(),
    });
    (judged, false_marks.collect())
}

/// Removes the mark of the hitch from `marks`. A mark that names something else is false, even if
/// the machine was busy otherwise.
fn judge(hitch: &Hitch, marks: &mut Vec<&RecorderLine>, begin: Instant) -> JudgedHitch {
    let belongs =
        |line: &RecorderLine| line.at > hitch.at && line.at.duration_since(hitch.at) <= MARK_WITHIN;
    let found = marks.iter().position(|line| belongs(line) && line.text.contains(hitch.name));
    let mark = found.map(|at| marks.remove(at));
    let what = mark.and_then(|line| line.text.split_once("(auto: ")).map_or("-", |(_, what)| what);
    JudgedHitch {
        at_s: hitch.at.duration_since(begin).as_secs_f64(),
        ms: hitch.millis,
        kind: hitch.kind,
        culprit: hitch.name,
        marked_after_s: mark.map(|line| line.at.duration_since(hitch.at).as_secs_f64()),
        marked: what.trim_end_matches(')').to_owned(),
    }
}

/// Describes the distribution of the CPU time, with missed and false marks.
fn notes(
    cpu: RecorderCpu,
    counts: &AutoCounts,
    hitches: &[JudgedHitch],
    false_marks: &[FalseMark],
) -> String {
    let cost = format!(
        "{:.3}% of a CPU the recorder itself, {:.3}% its children, which judge what it suspects: {} looks",
        cpu.own_percent, cpu.children_percent, counts.looked_at
    );
    let missed = hitches.iter().filter(|hitch| hitch.marked_after_s.is_none());
    let missed = missed.map(|hitch| {
        format!(
            "; missed: {} ms by {} ({:?}), {}",
            hitch.ms, hitch.culprit, hitch.kind, hitch.marked
        )
    });
    let wrong = false_marks
        .iter()
        .map(|mark| format!("; marked falsely at {:.0} s: {}", mark.at_s, mark.line));
    [cost].into_iter().chain(missed).chain(wrong).collect()
}

impl AutoOutcome {
    /// Prints the table and the bars; returns `true` if all bars are met.
    fn print(&self) -> Result<bool> {
        for JudgedHitch { at_s, ms, kind, culprit, marked, .. } in &self.hitches {
            let kind = format!("{kind:?}");
            println!("{at_s:7.1} s  {ms:4} ms  {kind:<13}  {culprit:<7}  {marked}");
        }
        self.not_recorded.iter().for_each(|line| println!("{line}"));
        for FalseMark { at_s, line } in &self.false_marks {
            println!("false mark at {at_s:.1} s: {line}");
        }
        let counts = serde_json::to_string(&self.counts)?.replace(['"', '{', '}'], "");
        println!("{} keys in {:.0} s; {}; {counts}", self.keys, self.wall_s, self.notes);
        Ok(self.bars().iter().all(|met| *met))
    }

    fn bars(&self) -> [bool; 3] {
        let missed = self.hitches.iter().filter(|hitch| hitch.marked_after_s.is_none()).count();
        let wrong = self.false_marks.len();
        let percent = self.cpu.own_percent + self.cpu.children_percent;
        [
            bar("hitches that were missed or not named", &missed.to_string(), missed <= MISSED_MAX),
            bar("false marks", &wrong.to_string(), wrong <= FALSE_MAX),
            bar("CPU in percent of one", &format!("{percent:.3}"), percent < CPU_PERCENT_MAX),
        ]
    }
}

fn bar(what: &str, value: &str, met: bool) -> bool {
    println!("{} {what}: {value}", if met { "ok    " } else { "MISSED" });
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(begin: Instant, at_s: u64, text: &str) -> RecorderLine {
        RecorderLine { at: begin + Duration::from_secs(at_s), text: text.to_owned() }
    }

    fn hitch(begin: Instant, at_s: u64, name: &'static str) -> Hitch {
        Hitch {
            at: begin + Duration::from_secs(at_s),
            kind: StallKind::StopsShell,
            name,
            millis: 700,
        }
    }

    #[test]
    fn a_mark_counts_if_it_is_in_time_and_names_the_culprit() {
        let begin = Instant::now();
        let lines = [
            line(begin, 1, "recording"),
            line(begin, 103, "marked a.tipme (auto: 0.7 s key in xterm, stopped by warden)"),
            line(begin, 104, "marked b.tipme (auto: 0.2 s key in xterm, disk)"),
            line(begin, 300, "marked c.tipme (auto: 0.7 s key in xterm, stopped by sluice)"),
        ];
        let (hitches, wrong) =
            judged(&[hitch(begin, 100, "warden"), hitch(begin, 200, "sluice")], &lines, begin);
        let marks: Vec<_> =
            hitches.iter().map(|one| (one.marked_after_s, one.marked.as_str())).collect();
        assert_eq!(marks, [(Some(3.0), "0.7 s key in xterm, stopped by warden"), (None, "-")]);
        assert_eq!(wrong.iter().map(|one| one.at_s).collect::<Vec<_>>(), [104.0, 300.0]);
    }
}
