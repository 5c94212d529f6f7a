// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of files and of the folder. The full-disk tests mount a small file system and need root.

use crate::support::incident;
use fastrand::Rng;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tipme_record::incident::{Incident, Section, Words};
use tipme_store::{IncidentFolder, append_words, read, write};

fn words(text: &str) -> Words {
    Words { text: text.into(), right: None, at_ns: 9 }
}

fn said(path: &Path) -> String {
    let incident = read(path).unwrap();
    assert_eq!(incident.damage, []);
    incident.json::<Words>(Section::Words).unwrap().text
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_judgement_and_a_text_do_not_replace_each_other() {
    let dir = TempDir::new().unwrap();
    let mut unsaid = incident("one");
    unsaid.sections.retain(|(section, _)| *section != Section::Words);
    let path = write(dir.path(), &unsaid, 0).unwrap();
    append_words(&path, &words("it hung")).unwrap();
    append_words(&path, &Words { right: Some(false), at_ns: 10, ..Words::default() }).unwrap();
    append_words(&path, &Words { right: Some(true), at_ns: 11, ..Words::default() }).unwrap();
    assert_eq!(
        read(&path).unwrap().words().unwrap(),
        Words { text: "it hung".into(), right: Some(true), at_ns: 11 }
    );
}

#[test]
fn a_file_is_whole_private_and_owned_by_the_marker() {
    let dir = TempDir::new().unwrap();
    let path = write(dir.path(), &incident("one"), 12345)
        .expect("root may give files away; run the tests as root");
    assert_eq!(path, dir.path().join("one.tipme"));
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.permissions().mode() & 0o777, meta.uid()), (0o600, 12345));
    let copy = read(&path).unwrap();
    assert_eq!((copy.sections, copy.damage), (incident("one").sections, vec![]));
    assert_eq!(names(dir.path()), ["one.tipme"]);
}

#[test]
fn an_incident_never_replaces_another() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &incident("one"), 0).unwrap();
    let error = write(dir.path(), &incident("one"), 0).expect_err("it exists").to_string();
    assert!(error.contains("File exists"), "{error}");
    assert_eq!(names(dir.path()), ["one.tipme"]);
}

#[test]
fn an_id_cannot_leave_the_folder() {
    let dir = TempDir::new().unwrap();
    for id in ["", "../up", "a/b", ".hidden", "new\nline"] {
        let error = write(dir.path(), &incident(id), 0).expect_err("no plain id").to_string();
        assert!(error.contains("is not a plain file name"), "{error}");
    }
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// A file system of 0.5 MiB, unmounted on drop.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> SmallDisk {
        let dir = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=512k", "none"])
            .arg(dir.path())
            .status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "cannot mount a tmpfs; run the tests as root"
        );
        SmallDisk(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Fills a disk to the last byte, until nothing becomes free in 50 ms: a large write may fail where
/// a small one fits, and removed blocks are released with a delay.
fn fill(dir: &Path) {
    let mut filler = fs::File::create(dir.join("filler")).unwrap();
    let mut has_room = true;
    while has_room {
        has_room = false;
        for size in [1 << 20, 4_096, 1] {
            while std::io::Write::write(&mut filler, &vec![1; size]).is_ok_and(|bytes| bytes > 0) {
                has_room = true;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let disk = SmallDisk::mount();
    let dir = disk.0.path();
    let kept = write(dir, &incident("kept"), 0).unwrap();
    let mut large = incident("large");
    let mut noise = Rng::with_seed(3);
    large.push(Section::Rare, (0..2 << 20).map(|_| noise.u8(..)).collect());
    let error = write(dir, &large, 0).expect_err("2 MiB do not fit").to_string();
    assert!(error.ends_with(
        "the disk is full; free some space there, or record with --state-dir on another disk"
    ));
    assert_eq!(names(dir), ["kept.tipme"]);

    fill(dir);
    let before = fs::read(&kept).unwrap();
    let text: String = (0..60_000).map(|_| char::from(b'!' + noise.u8(..90))).collect();
    append_words(&kept, &words(&text)).expect_err("the disk is full");
    assert_eq!(fs::read(&kept).unwrap(), before);
}

/// Returns an incident that takes 64 KiB on the disk.
fn sizeable(id: &str) -> Incident {
    let (mut incident, mut noise) = (incident(id), Rng::with_seed(3));
    incident.push(Section::Rare, (0..64 << 10).map(|_| noise.u8(..)).collect());
    incident
}

#[test]
fn old_incidents_of_the_same_owner_make_room_on_a_full_disk() {
    let disk = SmallDisk::mount();
    let folder = IncidentFolder::open(disk.0.path()).unwrap();
    for (id, owner) in [("a", 4343), ("b", 4242), ("c", 4242)] {
        folder.write(&sizeable(id), owner).unwrap();
    }
    assert!(
        fs::write(folder.path().join("filler"), vec![1; 2 << 20]).is_err(),
        "the disk is not full"
    );
    let (path, _) = folder.keep(&sizeable("d"), 4242).unwrap();
    assert_eq!(read(&path).unwrap().damage, []);
    assert_eq!(names(folder.path()), ["a.tipme", "d.tipme", "filler"]);
    fs::OpenOptions::new()
        .append(true)
        .open(folder.path().join("filler"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[1; 2 << 20]))
        .ok();
    let full =
        folder.keep(&sizeable("e"), 4444).expect_err("there is nothing of this user").to_string();
    assert!(full.contains("the disk is full"), "{full}");
    folder.keep(&sizeable("f"), 0).unwrap();
}

#[test]
fn incidents_that_make_too_little_room_stay() {
    let disk = SmallDisk::mount();
    let folder = IncidentFolder::open(disk.0.path()).unwrap();
    folder.write(&sizeable("a"), 4242).unwrap();
    fill(disk.0.path());
    let mut large = sizeable("large");
    let mut noise = Rng::with_seed(4);
    large.push(Section::Sched, (0..64 << 10).map(|_| noise.u8(..)).collect());
    let error = folder.keep(&large, 4242).expect_err("128 KiB do not fit into 64").to_string();
    assert!(error.contains("the disk is full"), "{error}");
    assert_eq!(names(folder.path()), ["a.tipme", "filler"]);
    folder
        .keep(&sizeable("b"), 0)
        .expect_err("64 KiB beside what a file system may need do not fit into 64");
    assert_eq!(names(folder.path()), ["a.tipme", "filler"]);
}

#[test]
fn the_last_words_count() {
    let dir = TempDir::new().unwrap();
    let path = write(dir.path(), &incident("one"), 0).unwrap();
    append_words(&path, &words("first")).unwrap();
    append_words(&path, &words("second")).unwrap();
    assert_eq!(said(&path), "second");
}

#[test]
fn words_take_the_place_of_earlier_ones() {
    let dir = TempDir::new().unwrap();
    let path = write(dir.path(), &incident("one"), 0).unwrap();
    append_words(&path, &words(&"long ".repeat(1_000))).unwrap();
    append_words(&path, &words("short")).unwrap();
    let once = fs::read(&path).unwrap();
    for _ in 0..100 {
        append_words(&path, &words("short")).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), once);
    // A tail that the owner appended is cut as well.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(3 << 30).unwrap();
    append_words(&path, &words("short")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), once);
}

#[test]
fn words_follow_an_interrupted_call_but_no_damage() {
    let dir = TempDir::new().unwrap();
    let path = write(dir.path(), &incident("one"), 0).unwrap();
    let sealed = fs::read(&path).unwrap();
    append_words(&path, &words("first")).unwrap();
    let longer = fs::read(&path).unwrap();
    fs::write(&path, &longer[..longer.len() - 3]).unwrap();
    append_words(&path, &words("second")).unwrap();
    assert_eq!(said(&path), "second");

    fs::write(&path, &sealed[..sealed.len() - 3]).unwrap();
    let error = append_words(&path, &words("third")).expect_err("it is cut").to_string();
    assert!(error.ends_with("it is damaged"), "{error}");
    let error = append_words(&path, &words(&"x".repeat(70_000))).expect_err("too long").to_string();
    assert!(error.ends_with("they have more than 65536 bytes"), "{error}");
}

#[test]
fn words_from_a_socket_stay_in_the_folder() {
    let dir = TempDir::new().unwrap();
    let folder = IncidentFolder::open(&dir.path().join("incidents")).unwrap();
    let inside = folder.write(&incident("one"), 1000).unwrap();
    let outside = write(dir.path(), &incident("one"), 1000).unwrap();
    folder.append_words(&inside, &words("mine"), 1000).unwrap();
    assert_eq!(said(&inside), "mine");

    let link = folder.path().join("link.tipme");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    for (path, why) in [
        (&link, "symbolic link"),
        (&outside, "it is not an incident in"),
        (&folder.path().join("../one.tipme"), "it is not an incident in"),
    ] {
        let error = folder.append_words(path, &words("x"), 0).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = folder.append_words(&inside, &words("x"), 1001).expect_err("refused").to_string();
    assert!(error.ends_with("it belongs to another user"), "{error}");
}

/// Perl script that holds a file lease: opens by others block for 45 s unless O_NONBLOCK is set.
const LEASE: &str = r#"
    $SIG{IO} = "IGNORE"; $| = 1;
    open(F, "+<", $ARGV[0]) && fcntl(F, 1024, 1) or die "no lease: $!";
    print "held\n"; sleep 600;
"#;

#[test]
fn words_do_not_wait_for_the_owner_of_a_file() {
    let dir = TempDir::new().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = write(dir.path(), &incident("one"), 4242).unwrap();
    let mut holder = Command::new("perl");
    holder.args(["-e", LEASE]).arg(&path).uid(4242).gid(4242).stdout(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let held = BufReader::new(holder.stdout.take().unwrap()).lines().next();
    let refused = append_words(&path, &words("mine")).map_err(|error| error.to_string());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(held.unwrap().unwrap(), "held");
    assert!(refused.expect_err("somebody else holds it").contains("temporarily unavailable"));
    append_words(&path, &words("mine")).unwrap();
}

#[test]
fn a_stale_partial_file_goes_at_the_start() {
    let dir = TempDir::new().unwrap();
    let folder = IncidentFolder::open(dir.path()).unwrap();
    folder.write(&incident("one"), 0).unwrap();
    fs::write(dir.path().join("two.tipme.partial"), b"TIPME").unwrap();
    assert_eq!(folder.list().unwrap().len(), 1);
    let folder = IncidentFolder::open(dir.path()).unwrap();
    assert_eq!(names(folder.path()), ["one.tipme"]);
}

#[test]
fn a_missing_folder_or_file_is_no_surprise() {
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("none");
    assert_eq!(IncidentFolder::at(&missing).list().unwrap(), []);
    let error = write(&missing, &incident("one"), 0).expect_err("no folder").to_string();
    assert!(
        error.ends_with("check that the folder exists and that the recorder may write there"),
        "{error}"
    );
    assert!(read(&missing).expect_err("no file").to_string().starts_with("it cannot be opened: "));
    let empty = Incident::default();
    assert!(
        write(dir.path(), &empty, 0)
            .expect_err("no id")
            .to_string()
            .starts_with("incident id \"\"")
    );
}
