// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages for newcomers: wrong arguments, no recorder, missing privileges, damaged files. Each
//! message names the remedy. Also tests the layout of text on terminals. Needs root, to be another
//! user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use support::{said, tipme};
use tempfile::TempDir;

/// A user other than root.
const USER: u32 = 12_345;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/stopped.tipme");

/// Asserts that a command fails with this remedy.
fn refuses(mut command: Command, remedy: &str) {
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let (code, text) = said(command.output().unwrap());
    assert!(code == Some(2) && text.contains(remedy), "{command:?}: {code:?}: {text}");
}

#[test]
fn every_refusal_names_what_to_do() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let junk = folder.path().join("junk.tipme");
    fs::write(&junk, "no incident").unwrap();
    let junk = junk.to_str().unwrap();
    let cases: [(&[&str], &str); 28] = [
        (&["dignose"], "a similar subcommand exists: 'diagnose'"),
        (&["diagnose", "--state-dir", place], "press the hot key, or mark one with: tipme mark"),
        (&["diagnose", "nope", "--state-dir", place], "see: tipme incidents"),
        (
            &["diagnose", junk],
            "it is not an incident file; list the incidents with: tipme incidents",
        ),
        (&["diagnose", place], " is not an incident file; see: tipme incidents"),
        (
            &["diagnose", GOLDEN, "--at", "x"],
            "give a number of seconds before the mark, such as 12.5",
        ),
        (
            &["diagnose", GOLDEN, "--at", "-3"],
            "give a number of seconds before the mark, such as 12.5",
        ),
        (&["diagnose", GOLDEN, "--app", "nobody"], "leave the option out"),
        (&["diagnose", "--explain", "disk"], "a similar value exists: 'disk-queue'"),
        (&["mark", "--state-dir", place], "start one with: sudo tipme record"),
        (&["mark", "it", "hung", "--state-dir", place], "start one with: sudo tipme record"),
        (&["incidents", "--since", "yesterday"], "write it like 90min, 12h or 3d"),
        (&["incidents", "rm", "2026", "--state-dir", place], "see: tipme incidents"),
        // Every id starts with the empty string: a script may have an empty variable.
        (&["incidents", "rm", "", "--state-dir", place], "the name of the incident is empty"),
        (&["incidents", "pin", "", "--state-dir", place], "the name of the incident is empty"),
        (&["incidents", "show", "", "--state-dir", place], "the name of the incident is empty"),
        (&["incidents", "--kind", "disk"], "disk-queue"),
        (
            &["report", GOLDEN, "-o", "/proc/page.html"],
            "cannot write /proc/page.html; name another file with -o",
        ),
        (&["day", "--date", "9999-12-31"], "name one of the last 32 days, such as yesterday"),
        (
            &["record", "--detail", "locks", "--for", "5", "--state-dir", place],
            "start one with: sudo tipme record",
        ),
        (&["scrub", GOLDEN, "/nonexistent/copy"], "it must be a new file in a folder of yours"),
        (&["agent"], "set DISPLAY or give --display"),
        (
            &["agent", "--display", "foo"],
            "\"foo\" is not a display of this machine; name one like :0",
        ),
        (&["agent", "--mark-key", "hyper+x"], "write it like Ctrl+Alt+Minus"),
        (&["record", "--memory", "1X"], "use K, M or G"),
        (&["measure", "nope", "--", "xterm"], "shipped are editor, "),
        (&["selftest", "gremlins"], "tipme selftest --list names them"),
        (&["manage", "status", "--state-dir", place], "start one with: sudo tipme manage"),
    ];
    for (words, remedy) in cases {
        let mut command = tipme();
        command.args(words);
        refuses(command, remedy);
    }
}

#[test]
fn a_missing_right_is_refused_with_its_owner() {
    let folder = TempDir::new().unwrap();
    let secret = folder.path().join("secret.tipme");
    fs::copy(GOLDEN, &secret).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["record"], "recording needs root; run: sudo tipme record --allow-user 12345"),
        (&["manage-helper"], "run: sudo tipme manage-helper"),
        (&["demo"], "recording needs root; run: sudo "),
        (&["selftest"], "recording needs root; run: sudo "),
        (&["diagnose", secret.to_str().unwrap()], "only its owner and root may read it"),
    ];
    for (words, remedy) in cases {
        let mut command = tipme();
        command.args(words).uid(USER).env("HOME", "/nonexistent");
        refuses(command, remedy);
    }
}

#[test]
fn a_recorder_in_a_container_names_the_option_to_add() {
    for words in [&["record", "--hot-keys", "off"][..], &["demo"]] {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_tipme")]).args(words);
        if words[0] == "record" {
            command.arg("--state-dir").arg(folder.path());
        }
        refuses(command, "docker run --pid=host");
    }
}

/// Returns the output on a terminal with this many columns.
fn on_terminal(columns: usize, environment: &str, words: &str) -> String {
    let line = format!(
        "stty cols {columns} rows 40; {environment} {} {words}",
        env!("CARGO_BIN_EXE_tipme")
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--command", &line, "/dev/null"]).env("TERM", "xterm-256color");
    let text = String::from_utf8(without_wishes(&mut command).output().unwrap().stdout).unwrap();
    text.replace('\r', "")
}

/// Returns the output of a diagnosis in a pipe.
fn diagnosis(incident: &str, arguments: &[&str]) -> String {
    let mut command = tipme();
    without_wishes(command.args(["diagnose", incident]).args(arguments));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Removes colour settings of the environment, including those of continuous integration.
fn without_wishes(command: &mut Command) -> &mut Command {
    ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"]
        .into_iter()
        .fold(command, |command, name| command.env_remove(name))
}

/// Removes colour sequences.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

fn widest(text: &str) -> usize {
    plain(text).lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn text_is_as_wide_as_the_terminal() {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("incidents")).unwrap();
    fs::copy(GOLDEN, place.path().join("incidents/20260131T230000.000Z.tipme")).unwrap();
    let cache = format!("XDG_CACHE_HOME={}", place.path().join("cache").display());
    for verb in ["diagnose", "incidents", "diagnose --explain stall", "doctor --verbose", "--help"]
    {
        let dir = if verb == "--help" || verb.contains("stall") { "" } else { "--state-dir" };
        let words = format!(
            "{verb} {dir} {}",
            if dir.is_empty() { Path::new("") } else { place.path() }.display()
        );
        for columns in [60, 80, 200] {
            let text = on_terminal(columns, &cache, &words);
            assert!(
                text.contains('\u{1b}') && text.lines().count() > 1,
                "{verb} at {columns}: {text}"
            );
            // A path has no line break opportunity.
            let lines = plain(&text)
                .lines()
                .filter(|line| !line.contains('/'))
                .collect::<Vec<_>>()
                .join("\n");
            assert!(widest(&lines) <= columns, "{verb} at {columns}: {text}");
        }
    }
}

#[test]
fn colours_are_for_those_who_want_them() {
    let words = format!("diagnose {GOLDEN}");
    assert!(!on_terminal(80, "NO_COLOR=1", &words).contains('\u{1b}'));
    assert!(!on_terminal(80, "TERM=dumb", &words).contains('\u{1b}'));
    assert!(!on_terminal(80, "", &format!("--color never {words}")).contains('\u{1b}'));
    let text = diagnosis(GOLDEN, &[]);
    assert!(
        !text.contains('\u{1b}') && widest(&text) > 80,
        "each fact has one line for programs: {text}"
    );
    assert!(diagnosis(GOLDEN, &["--color", "always"]).contains('\u{1b}'));
    assert!(text.lines().any(|line| line.starts_with("Try: ")), "{text}");
}

#[test]
fn kernel_functions_are_for_those_who_ask() {
    let incident = GOLDEN.replace("stopped", "page-in-behind-writer");
    let text = diagnosis(&incident, &[]);
    let verbose = diagnosis(&incident, &["--verbose"]);
    assert!(!text.contains(" <- "), "{text}");
    assert!(verbose.contains("- in the kernel: folio_wait_bit_common <- "), "{verbose}");
    let explained = diagnosis(&incident, &["--explain"]);
    assert!(
        explained.starts_with(&text) && explained.contains("\npage-in\nThe program touched "),
        "{explained}"
    );
    let stall = diagnosis(&incident, &["--explain", "stall"]);
    assert!(stall.starts_with("stall\nA CPU made no progress"), "{stall}");
}
