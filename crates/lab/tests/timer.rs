// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench timer` as a user runs it. Needs root to explain late wakeups.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use support::family::for_everybody;
use support::{lab, schema};
use tempfile::TempDir;

/// A user without privileges.
const NOBODY: u32 = 65_534;

fn bench(arguments: &[&str]) -> Command {
    let mut command = lab();
    command.args(["bench", "timer"]).args(arguments);
    command
}

fn words(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Measures, and reads the written document.
fn measured(folder: &Path, arguments: &[&str]) -> (Output, Value) {
    let path = folder.join("result.json");
    let output = bench(arguments).arg("--json").arg(&path).output().unwrap();
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {}", words(&output)));
    let document = serde_json::from_slice(&text).unwrap();
    schema::assert_fits("timer", &document);
    (output, document)
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Returns deadlines and lateness of one mechanism's runs.
fn runs(document: &Value, mechanism: &str) -> Vec<(Vec<u64>, Vec<u64>)> {
    let runs = document["runs"].as_array().unwrap().iter();
    let own =
        runs.filter(|run| run["name"].as_str().unwrap().starts_with(&format!("{mechanism}/")));
    own.map(|run| &run["classes"][0])
        .map(|events| (numbers(&events["starts_ns"]), numbers(&events["latencies_ns"])))
        .collect()
}

#[test]
fn every_deadline_is_accounted_for_by_every_mechanism() {
    let folder = TempDir::new().unwrap();
    let (output, document) =
        measured(folder.path(), &["--mechanism", "all", "-d", "300ms", "--no-trace"]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    let cpus = document["machine"]["cpus"].as_u64().unwrap();
    let mechanisms = document["mechanisms"].as_array().unwrap();
    assert_eq!(mechanisms.len(), 6);
    for one in mechanisms {
        let [expected, lost, overruns] =
            ["expected", "lost", "overruns"].map(|key| one[key].as_u64().unwrap());
        let wakes = one["lateness_us"]["n"].as_u64().unwrap();
        assert_eq!((expected, lost), (300 * cpus, 0), "{one:#}");
        assert_eq!(wakes + overruns, expected, "{one:#}");
        let name = one["mechanism"].as_str().unwrap();
        let own = runs(&document, name);
        assert_eq!(own.iter().map(|(_, late)| late.len() as u64).sum::<u64>(), wakes, "{name}");
        for (deadlines, _) in own {
            let grid = deadlines
                .windows(2)
                .all(|pair| pair[1] > pair[0] && (pair[1] - pair[0]).is_multiple_of(1_000_000));
            assert!(grid, "{name}: {deadlines:?}");
        }
    }
    for mechanism in ["absolute", "nanosleep", "relative", "timerfd", "itimer", "poll"] {
        assert!(words(&output).contains(mechanism), "{}", words(&output));
    }
}

#[test]
fn the_document_has_the_keys_that_were_promised() {
    let folder = TempDir::new().unwrap();
    let plots = folder.path().join("plots");
    let svg = plots.to_str().unwrap();
    let (output, document) = measured(
        folder.path(),
        &["-d", "200ms", "--cpus", "0", "--no-trace", "--slack", "1000", "--rates", "--svg", svg],
    );
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    for key in ["schema", "overruns", "lost"] {
        assert!(document[key].is_u64(), "{key}");
    }
    for spread in ["interval_us", "lateness_us"] {
        for key in ["min", "max", "mean", "sd", "p50"] {
            assert!(document[spread][key].is_number(), "{spread} {key}: {document:#}");
        }
        assert!(document[spread].get("p99").is_some() && document["outliers"].is_array());
    }
    let bins = document["histogram_100us"].as_array().unwrap();
    let counted: u64 = bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(document["interval_us"]["n"].as_u64(), Some(counted));
    assert_eq!((&document["kind"], &document["policy"]), (&"timer".into(), &"other".into()));
    assert_eq!(document["threads"][0]["slack_ns"].as_u64(), Some(1_000));
    assert!(document["clocks"]["hz"].as_u64().is_some_and(|hz| hz >= 24), "{}", document["clocks"]);
    assert_eq!(document["rates"].as_array().unwrap().len(), 6);
    for name in ["timer-intervals.svg", "timer-lateness.svg"] {
        assert!(std::fs::read_to_string(plots.join(name)).unwrap().contains("</svg>"), "{name}");
    }
}

#[test]
fn naive_sleeping_falls_behind_and_stays_there() {
    let folder = TempDir::new().unwrap();
    let (output, document) =
        measured(folder.path(), &["--mechanism", "relative,absolute", "-d", "400ms", "--no-trace"]);
    for (_, late) in runs(&document, "relative") {
        assert!(late.windows(2).all(|pair| pair[0] <= pair[1]), "{late:?}");
        assert!(late.last() > Some(&0) && late.len() > 1);
    }
    let text = words(&output);
    assert!(
        text.contains("Before: sleeping for 1 ms") && text.contains("After:  sleeping until"),
        "{text}"
    );
}

#[test]
fn results_are_shown_side_by_side() {
    let folder = TempDir::new().unwrap();
    let paths: Vec<PathBuf> =
        ["before", "after"].map(|name| folder.path().join(format!("{name}.json"))).to_vec();
    for path in &paths {
        let output = bench(&["-d", "100ms", "--no-trace", "--json"]).arg(path).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    }
    let first: Value = serde_json::from_slice(&std::fs::read(&paths[0]).unwrap()).unwrap();
    let from = first["histogram_100us"][0][0].as_u64().unwrap();
    let bin = format!("{from}-{} µs", from + 100);
    let output = bench(&["--show"]).args(&paths).output().unwrap();
    let text = words(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in [
        "before: absolute",
        "after: absolute",
        "Std Dev µs",
        "Times between wake-ups falling within",
        &bin,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    std::fs::write(&paths[0], "{\"schema\": 1}").unwrap();
    let output = bench(&["--show"]).args(&paths).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words(&output).contains("before.json is not a result of tipme bench timer"),
        "{}",
        words(&output)
    );
}

#[test]
fn repeats_are_one_result_for_compare() {
    let folder = TempDir::new().unwrap();
    for name in ["before", "after"] {
        let arguments =
            ["-d", "20ms", "--cpus", "0", "--no-trace", "--repeat", "5", "--json", name];
        let output = bench(&arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
        assert!(words(&output).contains("Repeat 5 of 5"), "{}", words(&output));
        let files: Vec<PathBuf> = std::fs::read_dir(folder.path().join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(files.len(), 5, "{files:?}");
        for file in files {
            schema::assert_fits(
                "timer",
                &serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap(),
            );
        }
    }
    let mut compare = lab();
    compare
        .args(["compare", "before", "after", "--json", "difference.json"])
        .current_dir(folder.path());
    let output = compare.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", words(&output));
    let text = std::fs::read(folder.path().join("difference.json")).unwrap();
    let difference: Value = serde_json::from_slice(&text).unwrap();
    let sides = difference["groups"][0]["classes"][0]["sides"].as_array().unwrap();
    assert_eq!(
        sides.iter().map(|side| &side["repeats"]).collect::<Vec<_>>(),
        [5, 5],
        "{difference:#}"
    );
    let again = bench(&["-d", "20ms", "--repeat", "2", "--json", "before"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(words(&again).contains("would count as a repeat"), "{}", words(&again));
}

#[test]
fn the_latest_are_explained_and_their_budgets_sum_up() {
    let folder = TempDir::new().unwrap();
    let (output, document) = measured(folder.path(), &["-d", "300ms", "--threshold", "1ns"]);
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let outliers = document["outliers"].as_array().unwrap();
    assert_eq!(document["mechanisms"][0]["outliers_over"], document["lateness_us"]["n"]);
    assert!((1..=100).contains(&outliers.len()), "{}", outliers.len());
    let explained: Vec<&Vec<Value>> =
        outliers.iter().filter_map(|outlier| outlier["budget"].as_array()).collect();
    assert!(!explained.is_empty(), "{}", words(&output));
    for budget in explained {
        let percent: f64 = budget.iter().map(|portion| portion["percent"].as_f64().unwrap()).sum();
        assert!((percent - 100.0).abs() < 0.01, "{budget:#?}");
    }
    assert!(!document["culprits"].as_array().unwrap().is_empty());
}

/// The planted culprit, which ends on drop.
struct Culprit(Child);

impl Culprit {
    /// Computes for 40 ms, twice a second.
    fn start() -> Culprit {
        let mut command = lab();
        command.args(["worker", "timer-culprit", "500", "40", "40", "50"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Culprit(child)
    }
}

impl Drop for Culprit {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_planted_culprit_is_named_with_its_period() {
    let folder = TempDir::new().unwrap();
    let _culprit = Culprit::start();
    let (output, document) = measured(folder.path(), &["-d", "5s"]);
    let culprits = document["culprits"].as_array().unwrap();
    let found = culprits.iter().find(|culprit| culprit["name"] == "timer-culprit");
    let found = found.unwrap_or_else(|| panic!("{}", words(&output)));
    assert_eq!(found["cause"], "thread");
    assert!(found["outliers"].as_u64().unwrap() >= 5, "{found:#}");
    let period =
        found["period_s"].as_f64().unwrap_or_else(|| panic!("no period: {}", words(&output)));
    assert!((period - 0.5).abs() < 0.01, "{found:#}");
    assert!(words(&output).contains("thread timer-culprit"), "{}", words(&output));
}

#[test]
fn a_refused_policy_names_the_remedy() {
    let (_folder, program) = for_everybody(&["tipme-lab", "tipme"]);
    let mut command = Command::new(program);
    command.args(["bench", "timer", "-d", "100ms"]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let given = command.output().unwrap();
    let refused = command.args(["--policy", "fifo:80"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = words(&refused);
    assert!(
        said.contains("cannot use policy fifo:80") && said.contains("RLIMIT_RTPRIO is 0"),
        "{said}"
    );
    assert!(said.contains("use sudo"), "{said}");
    assert_eq!(given.status.code(), Some(0), "{}", words(&given));
    assert!(words(&given).contains("visible to root only"), "{}", words(&given));
}

#[test]
fn nonsense_is_refused() {
    for (arguments, why) in [
        (&["--period", "1us"][..], "choose a period"),
        (&["--cpus", "8191"], "may not use CPU 8191"),
        (&["--policy", "fifo"], "needs a priority"),
        (&["-d", "1h", "--period", "10us"], "too many"),
        (&["-d", "1us"], "is shorter than a period"),
        (&["--show", "a.json", "--rates"], "cannot be used with"),
    ] {
        let output = bench(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(words(&output).contains(why), "{arguments:?}: {}", words(&output));
    }
}

/// Returns the names of a process's threads.
fn thread_names(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn an_interrupt_ends_everything() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("result.json");
    let mut command = bench(&["-d", "1h", "--period", "100ms", "--json"]);
    let child = command.arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !thread_names(child.id()).iter().any(|name| name.starts_with("tipme-timer/")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let recorders = children(child.id());
    assert_eq!(recorders.len(), 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("interrupted"), "{}", words(&output));
    assert!(!Path::new(&format!("/proc/{}", recorders[0])).exists());
    assert!(!path.exists());
}
