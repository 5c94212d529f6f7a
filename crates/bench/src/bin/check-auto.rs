// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scripted working session beside a recorder that marks by itself: what it marks, misses, and costs.
//!
//! A terminal and three editors in turn, on a private display, are typed at, with capitals, keys that draw nothing, and
//! pauses, and the pointer is moved over them; at last over a terminal that shows where it is. Hitches of several kinds begin
//! at random times meanwhile, each by a program of another name. Exit codes: 0 all bars are met, 1 one is missed, 2 it could
//! not be measured.

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::process::{ProcessGroup, cpu_times, family};
use tipme_bench::session::require;
use tipme_bench::{PrivateSession, SessionOptions};
use tipme_desktop::inject::{Pace, Typist};

const USAGE: &str = "check-auto [--minutes M] [--keys N] [--hitches N] [--seed N] [--tipme FILE]";

/// Programs that make the hitches; each is a link to the shell, so that each is another culprit.
const NAMES: [&str; 12] = [
    "warden", "sluice", "mortar", "quarry", "beacon", "cinder", "harbor", "jigsaw", "lumber", "magnet", "nickel",
    "oyster",
];

/// What is typed at, each for an equal part of the session: Xt, GTK 3, Qt 5, GTK 4; and what only the pointer is moved over.
const PROGRAMS: [&[&str]; 5] = [
    &["xterm", "-geometry", "100x30+20+20", "-e", "bash", "--norc", "--noprofile", "-i"],
    &["mousepad"],
    &["featherpad"],
    &["gnome-text-editor"],
    &["xterm", "-geometry", "100x30+20+20", "-e", "sh", "-c", "stty -icanon; printf '\\033[?1003h'; exec cat"],
];

/// From one move of the pointer to the next, and how many they are between two bursts, and around a hitch.
const MOVE: Duration = Duration::from_millis(8);
const MOVES: u32 = 40;
const MOVES_AROUND: u32 = 250;

/// Nobody waits for a program that starts to follow the pointer.
const SETTLES: Duration = Duration::from_secs(15);

/// A mark belongs to a hitch that began so long before at most: it waits for quiet, and for the look before.
const MARK_WITHIN: Duration = Duration::from_secs(35);

/// After the session, for a mark that is being made.
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
}

/// What stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StallKind {
    StopsProgram,
    /// The shell in a terminal, else the program itself.
    StopsShell,
    StopsServer,
    TakesCpu,
    /// The program, which nobody types at.
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

/// A line of the recorder, and when it came.
struct RecorderLine {
    at: Instant,
    text: String,
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

/// The arguments; what is not given follows from the minutes.
fn plan() -> Result<StallPlan> {
    let mut values = std::collections::HashMap::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        values.insert(word, words.next().context(USAGE)?);
    }
    let mut take = |name: &str| values.remove(name);
    let number = |text: Option<String>, default: f64| text.map_or(Ok(default), |text| text.parse().context(USAGE));
    let minutes = number(take("--minutes"), 30.0)?;
    let keys = number(take("--keys"), minutes * 100.0)? as usize;
    let hitches = number(take("--hitches"), (minutes * 1.8).clamp(1.0, NAMES.len() as f64))? as usize;
    let seed = number(take("--seed"), 1.0)? as u64;
    let tipme = take("--tipme").map_or("target/release/tipme".into(), PathBuf::from);
    if !values.is_empty() || hitches > NAMES.len() {
        bail!("{USAGE}; at most {} hitches", NAMES.len());
    }
    Ok(StallPlan {
        minutes,
        keys,
        hitches,
        seed,
        tipme: tipme.canonicalize().context("cannot find tipme; run make build")?,
    })
}

fn run(plan: &StallPlan) -> Result<bool> {
    require(&PROGRAMS.map(|words| words[0]))?;
    let interrupt = InterruptFlag::install()?;
    let mut session = PrivateSession::start(SessionOptions { cpu: Some(1), ..SessionOptions::default() })?;
    let (mut recorder, lines) = start_recorder(plan, &session)?;
    let mut random = Rng::with_seed(plan.seed);
    let hitches = hitches(plan, &mut random);
    let (begin, before) = (Instant::now(), cpu_seconds(recorder.pid())?);
    let typed = work(plan, &mut session, &hitches, &mut random, &interrupt)?;
    interrupt.sleep(TAIL)?;
    let after = cpu_seconds(recorder.pid())?;
    let cpu = (after.0 - before.0, after.1 - before.1);
    let wall = begin.elapsed().as_secs_f64();
    let status = status(session.folder()).unwrap_or_else(|error| format!("{error:#}"));
    recorder.expect_alive()?;
    drop(recorder);
    Ok(report(&hitches, &lines.try_iter().collect::<Vec<_>>(), begin, typed, (cpu, wall), &status))
}

fn start_recorder(plan: &StallPlan, session: &PrivateSession) -> Result<(ProcessGroup, Receiver<RecorderLine>)> {
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
    let first = lines.recv_timeout(ARM_TIMEOUT).context("the recorder did not arm; it needs root")?;
    if !first.text.starts_with("recording") {
        bail!("the recorder said: {}", first.text);
    }
    Ok((recorder, lines))
}

/// One hitch in each of equal parts of the session, after some typing to learn from.
fn hitches(plan: &StallPlan, random: &mut Rng) -> Vec<Hitch> {
    let begin = Instant::now();
    let millis = (plan.minutes * 60_000.0) as u64;
    let first = (millis / 10).clamp(15_000, 60_000);
    let part = (millis - first.min(millis)) / plan.hitches.max(1) as u64;
    let hitch = |(index, name): (usize, &&'static str)| {
        let after = first + part * index as u64 + random.u64(..part.saturating_sub(24_000).max(1));
        let after = Duration::from_millis(after);
        let hovered = after >= hovered_from(plan);
        Hitch {
            at: begin + if hovered { after.max(hovered_from(plan) + SETTLES) } else { after },
            kind: if hovered { StallKind::StopsHovered } else { KINDS[index % KINDS.len()] },
            name,
            millis: 650 + random.u64(..900),
        }
    };
    NAMES.iter().take(plan.hitches).enumerate().map(hitch).collect()
}

/// For how long each program is there.
fn part(plan: &StallPlan) -> Duration {
    Duration::from_secs_f64(plan.minutes * 60.0) / PROGRAMS.len() as u32
}

/// From when on the last program is there.
fn hovered_from(plan: &StallPlan) -> Duration {
    part(plan) * (PROGRAMS.len() as u32 - 1)
}

/// Types in bursts with pauses, at one program after the other, the pointer moving before each; where a hitch is due, it
/// begins in the middle of a burst. Over the last program the pointer moves alone. How many keys were pressed.
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

/// Opens a program in the place of the one before.
fn open(session: &mut PrivateSession, words: &[&str]) -> Result<()> {
    let mut command = Command::new(words[0]);
    session.prepare(command.args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::null()));
    session.open_program(words[0], command)
}

/// Lines for a shell, without end: some capitals, some keys that draw nothing.
fn text(seed: u64) -> impl Iterator<Item = char> {
    let mut random = Rng::with_seed(seed ^ 0x5eed);
    let line = "echo The quick Brown fox jumps over the Lazy dog\n";
    line.chars().cycle().map(move |key| match random.u64(..100) {
        0 => '\u{1b}',
        _ => key,
    })
}

fn type_keys(typist: &mut Typist, text: &mut impl Iterator<Item = char>, count: usize) -> Result<usize> {
    for key in text.take(count) {
        typist.key(key)?;
    }
    Ok(count)
}

/// Moves the pointer to and fro over where windows are.
fn move_pointer(typist: &mut Typist, moves: u32) -> Result<()> {
    for step in 0..moves {
        let place = (step * 7 % 800) as i16;
        typist.move_to(60 + (place % 400 - 200).abs(), 60 + place / 4)?;
        std::thread::sleep(MOVE);
    }
    Ok(())
}

/// Starts what makes the hitch; it ends by itself, and at the latest with the value.
fn inject(session: &PrivateSession, hitch: &Hitch) -> Result<ProcessGroup> {
    let program = session.folder().join(hitch.name);
    std::os::unix::fs::symlink("/bin/sh", &program).with_context(|| format!("cannot link {}", program.display()))?;
    let program_pid = session.terminal_pid().context("no program is open")?;
    let seconds = format!("{}.{:03}", hitch.millis / 1_000, hitch.millis % 1_000);
    let stop = |pid: u32| format!("kill -STOP {pid}; sleep {seconds}; kill -CONT {pid}");
    let script = match hitch.kind {
        StallKind::StopsProgram | StallKind::StopsHovered => stop(program_pid),
        StallKind::StopsShell => stop(family(program_pid).get(1).copied().unwrap_or(program_pid)),
        StallKind::StopsServer => stop(server_of(session)?),
        StallKind::TakesCpu => "while :; do :; done".to_owned(),
    };
    let mut words = vec![program.into_os_string(), "-c".into(), script.into()];
    if hitch.kind == StallKind::TakesCpu {
        let before = ["timeout", &seconds, "chrt", "--fifo", "10", "taskset", "-c", "1"].map(OsString::from);
        words = before.into_iter().chain(words).collect();
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ProcessGroup::start(hitch.name, command, None)
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn server_of(session: &PrivateSession) -> Result<u32> {
    let authority = session.folder().join("authority").to_string_lossy().into_owned();
    let serves = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with("Xvfb") && line.contains(&authority)
    };
    pids().find(serves).context("the display server was not found")
}

/// CPU time of a process, and of its children that have ended, in seconds.
fn cpu_seconds(pid: u32) -> Result<(f64, f64)> {
    let (own, children) = cpu_times(pid).with_context(|| format!("no process {pid}"))?;
    Ok((own.as_secs_f64(), children.as_secs_f64()))
}

/// What the recorder counted.
fn status(folder: &Path) -> Result<String> {
    let mut stream = UnixStream::connect(folder.join("control.sock")).context("cannot ask the recorder")?;
    stream.write_all(b"\"status\"\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let auto = text.split_once("\"auto\":").map_or("", |(_, auto)| auto);
    Ok(auto.trim_end().trim_end_matches('}').trim_start_matches('{').replace('"', ""))
}

/// Prints the table and the bars; whether all are met.
fn report(
    hitches: &[Hitch],
    lines: &[RecorderLine],
    begin: Instant,
    typed: usize,
    (cpu, wall): ((f64, f64), f64),
    status: &str,
) -> bool {
    let mut marks: Vec<&RecorderLine> = lines.iter().filter(|line| line.text.starts_with("marked ")).collect();
    let mut found = 0;
    for hitch in hitches {
        let belongs = |line: &&RecorderLine| line.at > hitch.at && line.at.duration_since(hitch.at) <= MARK_WITHIN;
        // A mark that names something else is a false one, whatever else this machine had to do.
        let named = |line: &&RecorderLine| belongs(line) && line.text.contains(hitch.name);
        let mark = marks.iter().position(named).map(|at| marks.remove(at));
        found += usize::from(mark.is_some());
        let what = mark.map_or("-", |line| line.text.split_once("(auto: ").map_or("", |(_, what)| what));
        let at = hitch.at.duration_since(begin).as_secs_f64();
        let kind = format!("{:?}", hitch.kind);
        println!("{at:7.1} s  {:4} ms  {kind:<13}  {:<7}  {}", hitch.millis, hitch.name, what.trim_end_matches(')'));
    }
    for line in lines.iter().filter(|line| line.text.starts_with("not recorded")) {
        println!("{}", line.text);
    }
    for line in &marks {
        println!("false mark at {:.1} s: {}", line.at.duration_since(begin).as_secs_f64(), line.text);
    }
    let percent = 100.0 * (cpu.0 + cpu.1) / wall;
    println!("{typed} keys in {wall:.0} s; CPU: recorder {:.2} s, its children {:.2} s; {status}", cpu.0, cpu.1);
    let missed = hitches.len() - found;
    let bars = [
        bar("hitches that were missed or not named", &missed.to_string(), missed <= MISSED_MAX),
        bar("false marks", &marks.len().to_string(), marks.len() <= FALSE_MAX),
        bar("CPU in percent of one", &format!("{percent:.3}"), percent < CPU_PERCENT_MAX),
    ];
    bars.iter().all(|met| *met)
}

fn bar(what: &str, value: &str, met: bool) -> bool {
    println!("{} {what}: {value}", if met { "ok    " } else { "MISSED" });
    met
}
