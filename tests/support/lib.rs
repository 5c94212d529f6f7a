// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorders as users run them, and what else tests of programs share: managers, displays, and
//! stand-ins for parts of desktops.

pub mod compositor;
pub mod family;
pub mod helper_daemon;
pub mod journal;
pub mod kglobalaccel;
pub mod lines;
pub mod managed;
pub mod notification_server;
pub mod popups;
pub mod portal;
pub mod processes;
pub mod runs;
pub mod schema;
pub mod screen;
pub mod session_agent;
pub mod shell;
pub mod suffering;
pub mod unit;
pub mod x11;

pub use processes::{Running, open_folder};
pub use runs::{Ran, as_nobody, expect_ended, kill_one, lab_with, measured, names, numbers, run};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_bench::alone::MachineLock;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::session::SessionOptions;
use tipme_control::{Client, RecorderRequest, RecorderResponse, RecorderStatus};
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::incident::{Incident, Meta, Section};
use tipme_record::{CHUNK_BYTES, ChunkEntry, Nanos, RecordKind, entries};

/// Timeout of a wait for an incident, which only a failing test reaches.
const MARK_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for exclusive use of the machine among benchmarks and exclusive tests, and holds it.
pub fn alone() -> MachineLock {
    MachineLock::wait(&InterruptFlag::default(), || ()).unwrap()
}

/// Runs `work` while a process is stopped.
pub fn while_stopped(pid: u32, mut work: impl FnMut()) {
    let process = Pid::from_raw(pid as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    work();
    kill_process(process, Signal::CONT).unwrap();
}

/// Returns the program under test.
pub fn tipme() -> Command {
    Command::new(built("tipme"))
}

/// Returns the lab's program, which needs `tipme` beside it.
pub fn lab() -> Command {
    built("tipme");
    Command::new(built("tipme-lab"))
}

/// Returns the path of a program of the workspace.
pub fn built(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().with_file_name(name);
    assert!(path.is_file(), "{} is missing; build it first: cargo build -p {name}", path.display());
    path
}

/// Returns the number in a field of a JSON object.
pub fn number(object: &Value, field: &str) -> f64 {
    object[field].as_f64().unwrap_or_else(|| panic!("{field} is not a number: {object:#}"))
}

/// Returns the command for a recorder in this folder.
pub fn recorder(dir: &TempDir, arguments: &[&str]) -> Command {
    recorder_by(tipme(), dir, arguments)
}

/// Same with a command that runs its arguments.
pub fn recorder_by(mut command: Command, dir: &TempDir, arguments: &[&str]) -> Command {
    command.args(["record", "--hot-keys", "off", "--state-dir"]).arg(dir.path()).args(arguments);
    command
}

/// Runs a verb as a user, with this folder of a recorder.
pub fn tipme_as(uid: u32, dir: &Path, words: &[&str]) -> Command {
    let mut command = tipme();
    command.args(words).arg("--state-dir").arg(dir).uid(uid).gid(uid);
    command
}

/// Marks as a user; returns the path of the incident.
pub fn mark_as(uid: u32, dir: &Path) -> PathBuf {
    marked(&tipme_as(uid, dir, &["mark"]).output().unwrap())
}

/// Returns the path that a successful `tipme mark` has printed.
fn marked(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    PathBuf::from(text.lines().last().unwrap())
}

/// Returns exit code, standard output and standard error of a program.
pub fn said(output: Output) -> (Option<i32>, String) {
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &errors)
}

/// Returns the status of the recorder in this folder.
pub fn status(dir: &Path) -> RecorderStatus {
    match Client::new(dir).call(&RecorderRequest::Status).unwrap() {
        RecorderResponse::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

/// Starts a private display.
pub fn session() -> PrivateSession {
    PrivateSession::start(SessionOptions::default()).unwrap()
}

/// Starts a private display with a terminal that echoes.
pub fn session_with_terminal() -> PrivateSession {
    let mut session = session();
    session.open_terminal(&[], &["cat".into()]).unwrap();
    session
}

/// Returns a keyboard of a private display.
pub fn typist(session: &PrivateSession, words_per_minute: f64) -> Typist {
    Typist::open(&session.target(), Pace { words_per_minute, ..Pace::default() }).unwrap()
}

/// Types while the terminal of a private display is stopped for a while.
pub fn hitch(session: &PrivateSession, typist: &mut Typist) {
    typist.text("before").unwrap();
    while_stopped(session.terminal_pid().unwrap(), || {
        typist.text("now").unwrap();
        std::thread::sleep(Duration::from_millis(700));
    });
    typist.text("after").unwrap();
}

/// `tipme record` in a folder of its own; killed on drop.
pub struct Recording {
    pub child: Running,
    pub dir: TempDir,
    /// The line that reports that it is armed.
    pub line: String,
}

impl Recording {
    /// Starts it and waits until it is armed.
    pub fn start(arguments: &[&str]) -> Recording {
        Recording::start_in(TempDir::new().unwrap(), arguments)
    }

    pub fn start_in(dir: TempDir, arguments: &[&str]) -> Recording {
        Recording::start_by(recorder(&dir, arguments), dir)
    }

    /// Same with a modified command of [`recorder`].
    pub fn start_by(mut command: Command, dir: TempDir) -> Recording {
        let (child, line) = Running::start_saying(&mut command);
        assert!(line.starts_with("recording"), "not armed: {line:?}; these tests need root");
        Recording { dir, child, line }
    }

    /// Runs `tipme mark` against this recorder.
    pub fn mark_output(&self, text: &str) -> Output {
        tipme().args(["mark", "-m", text, "--state-dir"]).arg(self.dir.path()).output().unwrap()
    }

    /// Marks and reads the incident, with unpacked scheduler records.
    pub fn mark(&self) -> (PathBuf, Incident) {
        let path = marked(&self.mark_output("it hung"));
        let mut incident = tipme_store::read(&path).unwrap();
        assert_eq!(incident.damage, []);
        incident.push(Section::Sched, tipme_record::unpacked(incident.bytes(Section::Sched)));
        (path, incident)
    }

    /// Marks until `find` returns a result: on a busy machine some events may be in flight.
    pub fn mark_until<T>(
        &self,
        what: &str,
        mut find: impl FnMut(PathBuf, Incident) -> Option<T>,
    ) -> T {
        let begun = Instant::now();
        loop {
            let (path, incident) = self.mark();
            if let Some(found) = find(path, incident) {
                return found;
            }
            assert!(begun.elapsed() < MARK_TIMEOUT, "{what}: not in the incident");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn incidents(&self) -> PathBuf {
        self.dir.path().join("incidents")
    }
}

pub fn meta(incident: &Incident) -> Meta {
    incident.json(Section::Meta).unwrap()
}

/// Returns all records of a chunked section, except for packed ones.
pub fn records(incident: &Incident, section: Section) -> impl Iterator<Item = ChunkEntry<'_>> {
    incident.bytes(section).chunks(CHUNK_BYTES).flat_map(entries)
}

/// Returns the records of one kind, parsed by `read`.
pub fn records_of<T>(
    incident: &Incident,
    section: Section,
    kind: RecordKind,
    read: fn(&[u8]) -> Option<T>,
) -> impl Iterator<Item = T> {
    let records = records(incident, section).filter(move |entry| entry.kind == kind);
    records.filter_map(move |entry| read(entry.bytes))
}

/// Returns `true` if a word occurs in these bytes.
pub fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Returns `true` if this process has the thread.
pub fn is_own_thread(tid: u32) -> bool {
    Path::new(&format!("/proc/self/task/{tid}")).exists()
}

/// Returns a time zone in which it is about noon, so that no midnight falls between an event and
/// the report of its day.
pub fn noon() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("NOON{:+}", (since.as_secs() / 3_600 % 24) as i64 - 12)
}

/// Returns the files directly in a folder with this suffix.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    names.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Runs a diagnosis and returns its exit code and output.
pub fn diagnose(path: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = tipme().arg("diagnose").arg(path).args(arguments).output().unwrap();
    // Visible if the test fails.
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the verdict on an incident, or another document of a diagnosis.
pub fn verdict(path: &Path, arguments: &[&str]) -> Value {
    let (_, text) = diagnose(path, &[&["--json"], arguments].concat());
    serde_json::from_str(&text).unwrap()
}

/// Asserts that a verdict is about an input of this class to a client, late because a process was
/// stopped for this long.
pub fn assert_stopped(verdict: &Value, class: &str, client: u32, stopped: Duration) {
    let (interval, finding) = (&verdict["interval"], &verdict["findings"][0]);
    let about = (&interval["class"], &finding["kind"]);
    assert_eq!(about, (&class.into(), &"stopped".into()), "{verdict:#}");
    assert_eq!(interval["client"]["pid"], client, "{verdict:#}");
    let latency_ms = interval["latency_ms"].as_f64().unwrap();
    assert!(latency_ms >= stopped.as_secs_f64() * 900.0, "{verdict:#}");
}

/// Returns the interactions of an incident.
pub fn interactions(path: &Path) -> Vec<Value> {
    verdict(path, &["--interactions"])["interactions"].as_array().unwrap().clone()
}

/// Returns the fields of `/proc/PID/stat` from the state on.
pub fn stat(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect()
}

/// Returns a size in `/proc/PID/status` in bytes, such as `RssAnon`.
pub fn memory_bytes(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Returns the time of the mark.
pub fn mark_time(incident: &Incident) -> Nanos {
    Nanos(meta(incident).mark_ns)
}
