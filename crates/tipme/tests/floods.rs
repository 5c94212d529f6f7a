// SPDX-License-Identifier: MIT OR Apache-2.0
//! Effects of a flooding user on the recorder and on others. Needs root and perl.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use support::{Recording, Running, mark_as, open_folder, stat, tipme_as};

/// A user without an account that may mark.
const ILL: u32 = 4242;

/// Repeats the same request, and prints the responses.
const ASK: &str = r#"
    use Socket; syscall 157, 1, 9; $SIG{PIPE} = "IGNORE"; my ($path, $line, $times) = @ARGV;
    for (1 .. $times) {
        socket my $server, AF_UNIX, SOCK_STREAM, 0 or die; connect $server, sockaddr_un($path) or die "$!";
        syswrite $server, "$line\n"; print <$server> // "closed\n";
    }
"#;

fn record() -> Recording {
    let options = ["--display", "none", "--memory", "16M", "--allow-user", "4242"];
    Recording::start_in(open_folder(), &options)
}

/// Returns a script to run as a user.
fn script(recording: &Recording, script: &str, uid: u32) -> Command {
    let mut command = Command::new("perl");
    command.args(["-e", script]).arg(recording.dir.path().join("control.sock")).uid(uid).gid(uid);
    command
}

/// Sends requests as the flooding user.
fn ask(recording: &Recording, line: &str, times: usize) -> Vec<String> {
    let output = script(recording, ASK, ILL).args([line, &times.to_string()]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn repeated_notes_neither_delay_nor_enlarge_an_incident() {
    let recording = record();
    let path = mark_as(ILL, recording.dir.path());
    let before = std::fs::metadata(&path).unwrap().len();
    let line = format!(
        r#"{{"describe":{{"incident":"{}","text":"{}"}}}}"#,
        path.display(),
        "word ".repeat(1_000)
    );
    let answers = ask(&recording, &line, 200);
    let done = answers.iter().filter(|answer| *answer == "\"done\"").count();
    let refused =
        answers.iter().filter(|answer| answer.contains("asks too often; try again in")).count();
    assert!(done >= 20 && done + refused == 200, "{done} done, {refused} refused");
    let growth = std::fs::metadata(&path).unwrap().len() - before;
    assert!(growth < 8_000, "{growth} bytes");
}

/// Opens many silent connections; reopens each that is closed.
const SILENT: &str = r#"
    use Socket; syscall 157, 1, 9; my ($path) = @ARGV; my @all; $| = 1;
    for (1 .. 300) {
        socket my $server, AF_UNIX, SOCK_STREAM, 0 or die; connect $server, sockaddr_un($path) or die "$!";
        push @all, $server;
    }
    print "ready\n"; sleep 60;
"#;

/// Connects as often as requested, as fast as possible, and prints the CPU time used in seconds.
const STORM: &str = r#"
    use Socket; syscall 157, 1, 9; my ($path, $times) = @ARGV;
    sub spent { my ($user, $system) = times; $user + $system } my $before = spent;
    for (1 .. $times) {
        socket my $server, AF_UNIX, SOCK_STREAM, 0 or die; connect $server, sockaddr_un($path) or die "$!";
    }
    print spent() - $before;
"#;

/// Starts a script that reports when it is ready.
fn start(mut command: Command) -> Running {
    Running::start_saying(&mut command).0
}

#[test]
fn silent_connections_of_a_user_do_not_delay_roots_mark() {
    let recording = record();
    let _silent = start(script(&recording, SILENT, ILL));
    let begun = std::time::Instant::now();
    recording.mark();
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(6), "{took:?}");
}

#[test]
fn many_marks_at_once_are_refused_but_not_roots() {
    let recording = record();
    let dir = recording.dir.path().to_owned();
    let marks: Vec<_> = (0..12)
        .map(|_| {
            let mut command = tipme_as(ILL, &dir, &["mark"]);
            std::thread::spawn(move || command.output().unwrap())
        })
        .collect();
    recording.mark();
    let marks: Vec<Output> = marks.into_iter().map(|mark| mark.join().unwrap()).collect();
    let refused = marks.iter().filter(|mark| !mark.status.success());
    let refused: Vec<String> =
        refused.map(|mark| String::from_utf8_lossy(&mark.stderr).into_owned()).collect();
    assert!((1..12).contains(&refused.len()), "{refused:?}");
    let known = ["marks too often; wait", "written already; wait a second", "too many ask at once"];
    assert!(refused.iter().all(|why| known.iter().any(|one| why.contains(one))), "{refused:?}");
}

/// Returns the CPU time of a process, in ticks of 10 ms.
fn ticks(pid: u32) -> u64 {
    stat(pid)[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Returns a process's share of a CPU over two seconds.
fn share(pid: u32) -> f64 {
    let before = ticks(pid);
    std::thread::sleep(std::time::Duration::from_secs(2));
    (ticks(pid) - before) as f64 / 200.0
}

/// Number of connections in a storm.
const STORM_CONNECTIONS: u32 = 10_000;

/// Maximum rate at which the recorder accepts connections of users that may not call: 64, followed
/// by a pause of 20 ms.
const TAKEN_PER_S: u32 = 3_200;

/// Returns the recorder's CPU time for a storm, relative to that of the storm itself.
fn storm(recording: &Recording) -> f64 {
    let recorder = recording.child.id();
    // Other activity on the machine costs the recorder as well.
    let calm = share(recorder);
    let (begun, before) = (std::time::Instant::now(), ticks(recorder));
    let output =
        script(recording, STORM, 4343).arg(STORM_CONNECTIONS.to_string()).output().unwrap();
    // Comes last in the socket's queue: its response means that the whole storm was accepted.
    ask(recording, "\"status\"", 1);
    let took = begun.elapsed().as_secs_f64();
    let spent = (ticks(recorder) - before) as f64 / 100.0 - calm * took;
    assert!(
        took > f64::from(STORM_CONNECTIONS) / f64::from(TAKEN_PER_S) - 0.1,
        "all were taken within {took} s"
    );
    let own: f64 = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    println!("took {took:.2} s, the recorder's CPU {spent:.2} s, the storm's {own:.2} s");
    spent / own
}

/// The cost of a connection for the recorder, relative to that for its client, does not depend on
/// the machine's speed: 4.0 in an unoptimized build.
#[test]
fn a_storm_of_connections_of_another_user_costs_little() {
    let recording = record();
    let mut costs: Vec<f64> = (0..3).map(|_| storm(&recording)).collect();
    costs.sort_by(f64::total_cmp);
    assert!(costs[1] < 6.0, "{costs:?}");
    recording.mark();
}

#[test]
fn mutated_lines_leave_the_recorder_as_it_was() {
    let recording = record();
    support::lines::send_mutated(
        "recorder",
        &recording.dir.path().join("control.sock"),
        recording.child.id(),
    );
    recording.mark();
}
