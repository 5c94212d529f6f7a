// SPDX-License-Identifier: MIT OR Apache-2.0
//! Used files are in memory again after the next login, regardless of a damaged history.

use crate::other_users::{NOBODY, other_users_terminal};
use crate::rootless::User;
use rustix::fs::{Advice, Mode};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::managed::{Desktop, Managed};
use support::open_folder;
use tempfile::TempDir;
use tipme_bench::until;

const MIB: u64 = 1 << 20;
/// Bytes of the preloaded 9 MiB that may be gone again: a kernel that pages out cold memory (DAMON)
/// reclaims unused pages even while memory is free.
const PAGED_OUT_MAX: u64 = MIB;

/// A program installed for everyone, larger than the kernel's own readahead.
struct InstalledProgram(TempDir);

impl InstalledProgram {
    fn new() -> InstalledProgram {
        let folder = tempfile::Builder::new().prefix("tipme-test-").tempdir_in("/var/lib").unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let program = InstalledProgram(folder);
        // Copied by another process: a program start from another thread of this one would keep it
        // open for writing.
        let script = "cp /usr/bin/sleep \"$0\" && head -c 9M /dev/zero >> \"$0\"";
        assert!(
            Command::new("sh").args(["-c", script]).arg(program.path()).status().unwrap().success()
        );
        program
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("sleeper")
    }

    /// Creates a file beside it.
    fn beside(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, vec![7; 9 * MIB as usize]).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }
}

/// Returns the number of bytes fetched from the disk to read this file.
fn fetched(path: &Path) -> u64 {
    let before = fetched_so_far();
    File::open(path).unwrap().read_to_end(&mut Vec::new()).unwrap();
    fetched_so_far() - before
}

fn fetched_so_far() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let bytes = text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap();
    bytes.parse().unwrap()
}

/// Evicts an unused file from the page cache.
fn evict(path: &Path) {
    until("that the file is not in memory", || {
        discard(path);
        let was_discarded = fetched(path) >= 9 * MIB;
        discard(path);
        was_discarded
    });
}

fn discard(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// Returns the preload result once it is complete.
fn read_ahead(managed: &Managed) -> Value {
    let mut found = Value::Null;
    until("the end of reading ahead", || {
        found = managed.status()["preload"].clone();
        found["state"] != "under_way"
    });
    assert_eq!(found["state"], "done", "{found:#}");
    found
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn a_program_that_was_used_is_in_memory_after_the_next_login() {
    let (desktop, program) = (Desktop::start(), InstalledProgram::new());
    let path = program.path();
    let terminal = desktop.terminal_with("+20+20", &format!("exec {} 4000", path.display()));
    let mut first = Managed::start(&desktop, &[]);
    let kept = first.path().join("preload.json");
    until("that the program is remembered", || {
        std::fs::read_to_string(&kept).unwrap_or_default().contains(path.to_str().unwrap())
    });
    assert_eq!(first.stop(Signal::TERM), Some(0));
    assert_eq!(std::fs::metadata(&kept).unwrap().mode() & 0o777, 0o600);
    drop(terminal);
    evict(&path);
    let next = Managed::start_in(first.dir.take().unwrap(), &desktop, &[]);
    let result = read_ahead(&next);
    assert!(number(&result["fetched_bytes"]) >= 9 * MIB, "it was not in memory before: {result:#}");
    assert!(fetched(&path) <= PAGED_OUT_MAX, "it was not read ahead: {result:#}");
    assert!(number(&result["programs"]) >= 1 && number(&result["files"]) >= 2, "{result:#}");
    let text = next.said(&["manage", "status"]);
    assert!(text.contains("read ahead at the start: "), "{text}");
}

#[test]
fn a_damaged_history_is_reported_and_kept() {
    let (desktop, dir) = (Desktop::start(), open_folder());
    std::fs::write(dir.path().join("preload.json"), "{\"programs\": [").unwrap();
    let mut managed = Managed::start_in(dir, &desktop, &[]);
    assert_eq!(number(&read_ahead(&managed)["files"]), 0);
    assert_eq!(managed.stop(Signal::TERM), Some(0));
    let said = std::io::read_to_string(managed.child.stderr.take().unwrap()).unwrap();
    let aside = managed.path().join("preload.damaged.json");
    assert!(said.contains(&format!("it is now {}", aside.display())), "{said}");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{\"programs\": [");
}

/// A user's manager reads only files that everyone may read and only root may change, whatever the
/// user's own history lists; it blocks on nothing.
#[test]
fn only_files_for_everyone_are_read_ahead() {
    let (desktop, user, program) = (Desktop::start(), User::new(), InstalledProgram::new());
    let (_terminal, _) = other_users_terminal(&desktop, &user.keys);
    let state = user.state();
    let (secret, own, fifo) =
        (program.beside("secret", 0o600), program.beside("own", 0o644), state.path().join("fifo"));
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let paths = [
        program.path(),
        secret.clone(),
        own.clone(),
        fifo,
        "/dev/tty".into(),
        program.path().join("gone"),
    ];
    write_history(&state, &paths);
    paths[..3].iter().for_each(|path| evict(path));
    let managed = Managed::start_by(
        user.command(),
        state,
        &desktop.session.display_name(),
        &["--helper", "none"],
    );
    let result = read_ahead(&managed);
    assert_eq!((number(&result["files"]), number(&result["skipped"])), (1, 5), "{result:#}");
    assert!(number(&result["fetched_bytes"]) >= 9 * MIB, "it was not in memory before: {result:#}");
    assert!(fetched(&program.path()) <= PAGED_OUT_MAX, "{result:#}");
    assert!(fetched(&secret) >= 9 * MIB && fetched(&own) >= 9 * MIB, "{result:#}");
}

/// Writes the history of one program with these files.
fn write_history(state: &TempDir, paths: &[PathBuf]) {
    let files = paths.iter().map(|path| {
        let (bytes, changed) =
            std::fs::metadata(path).map_or((1, 0), |found| (found.len().max(1), found.mtime()));
        json!({"path": path, "bytes": bytes, "changed_s": changed})
    });
    let files: Vec<Value> = files.collect();
    let history = json!({"programs": {"sleeper": {"files": files, "turn": 1}}, "turn": 1});
    let mut file = File::create(state.path().join("preload.json")).unwrap();
    file.write_all(history.to_string().as_bytes()).unwrap();
    std::os::unix::fs::fchown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
}
