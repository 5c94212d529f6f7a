// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a user who asks a lot can do to the recorder and to others. Needs root and perl.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use support::{Recording, tipme};

/// A user without an account, who may mark.
const ILL: u32 = 4242;

/// Asks the same so many times, and prints the answers.
const ASK: &str = r#"
    use Socket; syscall 157, 1, 9; my ($path, $line, $times) = @ARGV;
    for (1 .. $times) {
        socket my $server, AF_UNIX, SOCK_STREAM, 0 or die; connect $server, sockaddr_un($path) or die "$!";
        syswrite $server, "$line\n"; print <$server> // "closed\n";
    }
"#;

fn record() -> Recording {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    Recording::start_in(dir, &["--display", "none", "--memory", "16M", "--allow-user", "4242"])
}

/// As the user who means ill.
fn ask(recording: &Recording, line: &str, times: usize) -> Vec<String> {
    let mut command = Command::new("perl");
    command.args(["-e", ASK]).arg(recording.dir.path().join("control.sock")).args([line, &times.to_string()]);
    let output = command.uid(ILL).gid(ILL).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn mark_as_ill(recording: &Recording) -> Output {
    let mut command = tipme();
    command.args(["mark", "--state-dir"]).arg(recording.dir.path()).uid(ILL).gid(ILL);
    command.output().unwrap()
}

#[test]
fn descriptions_hold_nobody_up_and_an_incident_does_not_grow() {
    let recording = record();
    let marked = mark_as_ill(&recording);
    let path = PathBuf::from(String::from_utf8(marked.stdout).unwrap().trim_end());
    let before = std::fs::metadata(&path).unwrap().len();
    let line = format!(r#"{{"describe":{{"incident":"{}","text":"{}"}}}}"#, path.display(), "word ".repeat(1_000));
    let answers = ask(&recording, &line, 200);
    assert_eq!(answers, vec!["\"done\"".to_owned(); 200]);
    let growth = std::fs::metadata(&path).unwrap().len() - before;
    assert!(growth < 8_000, "{growth} bytes");
}
