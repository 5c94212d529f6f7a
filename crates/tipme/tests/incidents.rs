// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme incidents` and `tipme diagnose` over real incidents. Needs root, to be other users.

use serde_json::Value;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{Recording, files, open_folder, schema, tipme, tipme_as};
use tempfile::TempDir;

/// A user other than root.
const USER: u32 = 12_345;

/// A folder of incidents and a folder of cached verdicts.
struct Desktop {
    dir: TempDir,
}

impl Desktop {
    /// Creates the folders, with golden incidents under these ids.
    fn with(incidents: &[(&str, &str)]) -> Desktop {
        let dir = open_folder();
        fs::create_dir(dir.path().join("incidents")).unwrap();
        let desktop = Desktop { dir };
        for (id, golden) in incidents {
            let golden =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(golden);
            fs::copy(golden.with_extension("tipme"), desktop.file(id)).unwrap();
            fs::set_permissions(desktop.file(id), fs::Permissions::from_mode(0o600)).unwrap();
        }
        desktop
    }

    fn file(&self, id: &str) -> PathBuf {
        self.dir.path().join("incidents").join(id).with_extension("000Z.tipme")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = tipme();
        command.args(words).arg("--state-dir").arg(self.dir.path());
        command.env("XDG_CACHE_HOME", self.dir.path().join("cache")).env("TZ", "UTC-3");
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn text(&self, words: &[&str]) -> String {
        String::from_utf8(self.output(words).stdout).unwrap()
    }

    fn complaint(&self, words: &[&str]) -> String {
        String::from_utf8(self.output(words).stderr).unwrap()
    }
}

const TWO: [(&str, &str); 2] =
    [("20260131T230000", "stopped"), ("20260201T120000", "mutex-asleep")];

/// Overwrites the file with other bytes of the same size and time stamp.
fn spoil(file: &Path) {
    let meta = fs::metadata(file).unwrap();
    fs::write(file, vec![0; meta.len() as usize]).unwrap();
    let times = FileTimes::new().set_modified(meta.modified().unwrap());
    File::options().write(true).open(file).unwrap().set_times(times).unwrap();
}

#[test]
fn a_list_shows_time_application_latency_and_cause() {
    let desktop = Desktop::with(&TWO);
    let text = desktop.text(&["incidents"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let heads: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heads, ["ID", "TIME", "APPLICATION", "LATENCY", "CAUSE", "WORDS"]);
    assert!(lines[1].starts_with("20260131T230000.000Z  2026-02-01 02:00:00  patient"), "{text}");
    assert!(lines[1].ends_with(" ms   stopped: power-saver"), "{text}");
    for (option, value, lines) in
        [("--kind", "stopped", 2), ("--app", "nobody", 1), ("--since", "1h", 1)]
    {
        assert_eq!(desktop.text(&["incidents", option, value]).lines().count(), lines, "{option}");
    }
    let json: Value = serde_json::from_str(&desktop.text(&["incidents", "--json"])).unwrap();
    schema::assert_fits("incidents", &json);
    assert_eq!(json["incidents"][0]["kind"], "stopped");
    assert_eq!(json["incidents"][1]["id"], "20260201T120000.000Z");
    assert_eq!((&json["foreign"], &json["right"]), (&0.into(), &0.into()));
}

#[test]
fn an_incident_with_a_cached_verdict_is_not_read() {
    let desktop = Desktop::with(&TWO);
    let first = desktop.text(&["incidents"]);
    TWO.iter().for_each(|(id, _)| spoil(&desktop.file(id)));
    assert_eq!(desktop.text(&["incidents"]), first, "the verdicts are known");
    let file = File::options().append(true).open(desktop.file(TWO[0].0)).unwrap();
    file.set_len(9).unwrap();
    let text = desktop.text(&["incidents"]);
    assert!(text.contains("cannot be read: "), "another file has another verdict: {text}");
    let kept = desktop.dir.path().join("cache/tipme/20260201T120000.000Z.verdict.json");
    let document = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, document.replace("\"analysis\":\"", "\"analysis\":\"old-")).unwrap();
    assert_eq!(
        desktop.text(&["incidents"]).matches("cannot be read: ").count(),
        2,
        "another analysis, another verdict"
    );
}

#[test]
fn a_prefix_of_the_id_is_enough_and_the_newest_needs_none() {
    let desktop = Desktop::with(&TWO);
    let newest = desktop.text(&["diagnose"]);
    assert_eq!(newest, desktop.text(&["diagnose", "20260201"]));
    assert_eq!(newest, desktop.text(&["diagnose", desktop.file(TWO[1].0).to_str().unwrap()]));
    assert_ne!(newest, desktop.text(&["diagnose", "20260131"]));
    assert!(desktop.text(&["incidents", "show"]).ends_with(&format!("\n\n{newest}")));
    let why = desktop.complaint(&["diagnose", "2026"]);
    assert!(
        why.contains("2 ids begin with \"2026\"; give more of it: 20260201T120000.000Z 20260131T2"),
        "{why}"
    );
    assert!(desktop.complaint(&["incidents", "show", "1999"]).contains("see: tipme incidents"));
    assert!(Desktop::with(&[]).complaint(&["diagnose"]).contains("no incident of yours in "));
    assert!(desktop.text(&["incidents", "disk-usage"]).contains("yours: 2 incidents, "));
}

#[test]
fn nothing_is_kept_of_an_incident_that_was_removed() {
    let desktop = Desktop::with(&TWO);
    desktop.text(&["incidents"]);
    let kept = desktop.dir.path().join("cache/tipme");
    fs::write(kept.join("20260131T230000.000Z.html"), "its page").unwrap();
    assert_eq!(files(&kept, "").len(), 3);
    assert!(desktop.output(&["incidents", "rm", "20260131"]).status.success());
    assert_eq!(files(&kept, ""), [kept.join("20260201T120000.000Z.verdict.json")]);
}

/// A copy has the id of its original.
#[test]
fn a_copy_elsewhere_does_not_stand_for_its_incident() {
    let desktop = Desktop::with(&TWO[..1]);
    let copy = desktop.dir.path().join(desktop.file(TWO[0].0).file_name().unwrap());
    fs::copy(desktop.file(TWO[0].0), &copy).unwrap();
    for verb in ["rm", "pin", "unpin"] {
        let why = desktop.complaint(&["incidents", verb, copy.to_str().unwrap()]);
        assert!(why.contains(" is not in "), "{verb}: {why}");
    }
    assert!(
        desktop.file(TWO[0].0).exists()
            && copy.exists()
            && !desktop.text(&["incidents"]).contains("(pinned)")
    );
    assert!(
        desktop
            .output(&["incidents", "pin", desktop.file(TWO[0].0).to_str().unwrap()])
            .status
            .success()
    );
    assert!(desktop.text(&["incidents"]).contains("  (pinned)"));
    let folder = desktop.dir.path().to_str().unwrap();
    assert!(
        desktop
            .complaint(&["diagnose", folder])
            .contains(" is not an incident file; see: tipme incidents")
    );
}

#[test]
fn incidents_of_others_are_counted() {
    let desktop = Desktop::with(&TWO);
    chown(desktop.file(TWO[0].0), Some(USER), None).unwrap();
    let output = desktop
        .command(&["incidents"])
        .uid(USER)
        .env("XDG_CACHE_HOME", "/nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("stopped: "), "{text}");
    assert!(text.ends_with("\nNot shown: 1 of other users; root sees all.\n"), "{text}");
}

#[test]
fn a_folder_of_verdicts_that_others_may_write_to_is_not_used() {
    let desktop = Desktop::with(&TWO[..1]);
    let cache = desktop.dir.path().join("cache/tipme");
    fs::create_dir_all(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(desktop.text(&["incidents"]).contains("stopped: "));
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
}

#[test]
fn notes_are_kept_and_answers_counted() {
    let recording = Recording::start(&["--display", "none"]);
    let (path, _) = recording.mark();
    let desktop = |words: &[&str]| {
        let mut command = tipme_as(0, recording.dir.path(), words);
        command.env("XDG_CACHE_HOME", recording.dir.path().join("cache"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(desktop(&["incidents"]).contains("it hung"));
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(
        desktop(&["incidents", "note", "hello"])
            .starts_with(&format!("note added to {}", path.display()))
    );
    assert!(desktop(&["incidents"]).contains("hello"), "without an id the newest is meant");
    assert_eq!(desktop(&["incidents", "note", &id]), "", "an id alone says nothing");
    assert!(
        desktop(&["incidents", "note", &id, "no, it", "stuttered"]).starts_with("note added to ")
    );
    let right = tipme_control::RecorderRequest::Describe {
        incident: path,
        text: String::new(),
        right: Some(true),
    };
    tipme_control::Client::new(recording.dir.path()).call(&right).unwrap();
    let text = desktop(&["incidents"]);
    assert!(text.contains("(it was this) no, it stuttered\n"), "{text}");
    assert!(text.ends_with("Answers to \"was it this?\": 1 yes, 0 no.\n"), "{text}");
    assert!(
        desktop(&["incidents", "show"])
            .contains("You said: no, it stuttered\nYou answered: it was this\n")
    );
}
