// SPDX-License-Identifier: MIT OR Apache-2.0
//! Permission to mark, besides root and named users, and owners of automatic marks: polkit and the
//! group decide. The recorder runs with private `/run`, users and groups. Needs root.

use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{Recording, files, noon, open_folder, recorder_by, session, tipme, tipme_as, typist};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_desktop::inject::Typist;
use zbus::blocking::{Connection, MessageIterator, connection::Builder};
use zbus::message::Type;

/// Logged in, without further permissions.
const ANN: u32 = 4242;
/// With an account, and a member of the group.
const BOB: u32 = 4343;
/// Named by an option.
const EVE: u32 = 4444;

/// Response of the authority.
const YES: u32 = 1;
const NO: u32 = 2;
const HANG: u32 = 3;

/// A message bus with polkit, which serves each connection in a thread of its own.
struct Polkit {
    dir: TempDir,
    says: Arc<AtomicU32>,
    asked: Arc<AtomicUsize>,
}

impl Polkit {
    fn start(says: u32) -> Polkit {
        let dir = open_folder();
        let listener = UnixListener::bind(dir.path().join("system_bus_socket")).unwrap();
        let (says, asked) = (Arc::new(AtomicU32::new(says)), Arc::<AtomicUsize>::default());
        let shared = (says.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (says, asked) = shared.clone();
                std::thread::spawn(move || answer(stream, &says, &asked));
            }
        });
        Polkit { dir, says, asked }
    }

    fn say(&self, says: u32) {
        self.says.store(says, Ordering::SeqCst);
    }
}

type Subject = (String, HashMap<String, zbus::zvariant::OwnedValue>);

/// Serves one connection until it ends.
fn answer(stream: UnixStream, says: &AtomicU32, asked: &AtomicUsize) {
    let builder = Builder::async_io_unix_stream(stream).server(zbus::Guid::generate()).unwrap();
    let messages: MessageIterator = builder.p2p().build_message_iterator().unwrap();
    let connection = Connection::from(zbus::Connection::from(messages.inner()));
    for message in
        messages.map_while(Result::ok).filter(|message| message.message_type() == Type::MethodCall)
    {
        let header = message.header();
        if header.member().is_some_and(|member| member == "Hello") {
            connection.reply(&header, &":1.7").unwrap();
            continue;
        }
        asked.fetch_add(1, Ordering::SeqCst);
        let body = message.body();
        let (subject, action, _, flags, _): (
            Subject,
            String,
            HashMap<String, String>,
            u32,
            String,
        ) = body.deserialize().unwrap();
        assert_eq!(
            (subject.0.as_str(), action.as_str(), flags),
            ("unix-process", "org.tipme.mark", 0)
        );
        assert_eq!(i32::try_from(&subject.1["uid"]), Ok(ANN as i32));
        assert!(
            u32::try_from(&subject.1["pid"]).unwrap() > 1
                && u64::try_from(&subject.1["start-time"]).unwrap() > 1
        );
        let none: HashMap<&str, &str> = HashMap::new();
        match says.load(Ordering::SeqCst) {
            HANG => {}
            says => connection.reply(&header, &((says == YES, false, none),)).unwrap(),
        }
    }
}

/// Starts a recorder that sees this bus at the usual place, and these users and groups.
fn record(bus: &Path) -> Recording {
    record_on(bus, &["--display", "none"])
}

fn record_on(bus: &Path, more: &[&str]) -> Recording {
    const SCRIPT: &str = "set -e; mount -t tmpfs none /run; mkdir -p /run/dbus /run/systemd/users
        mount --bind \"$1\" /run/dbus; touch /run/systemd/users/4242 /run/passwd /run/group
        echo bob:x:4343:4343::/:/bin/sh >/run/passwd; echo tipme:x:990:ann,bob >/run/group
        mount --bind /run/passwd /etc/passwd; mount --bind /run/group /etc/group; shift; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).arg(bus);
    command.arg(tipme().get_program());
    let options = [more, &["--memory", "16M", "--allow-user", "4444"]].concat();
    let dir = open_folder();
    Recording::start_by(recorder_by(command, &dir, &options), dir)
}

fn run(recording: &Recording, uid: u32, verb: &str) -> Output {
    tipme_as(uid, recording.dir.path(), &[verb]).env("TZ", noon()).output().unwrap()
}

/// Returns the reason why a mark was refused; empty if it was not.
fn refusal(recording: &Recording, uid: u32) -> String {
    let output = run(recording, uid, "mark");
    if output.status.success() {
        let path = String::from_utf8(output.stdout).unwrap();
        assert_eq!(std::fs::metadata(path.trim_end()).unwrap().uid(), uid);
        return String::new();
    }
    String::from_utf8(output.stderr).unwrap()
}

fn status(recording: &Recording, uid: u32) -> String {
    String::from_utf8(run(recording, uid, "status").stdout).unwrap()
}

#[test]
fn polkit_decides_for_users_that_are_logged_in_only() {
    let polkit = Polkit::start(YES);
    let recording = record(polkit.dir.path());
    assert_eq!(refusal(&recording, ANN), "");
    assert!(
        status(&recording, ANN)
            .contains("you may mark   because polkit allows it to you (org.tipme.mark)\n")
    );
    polkit.say(NO);
    let why = refusal(&recording, ANN);
    assert!(
        why.contains("user 4242 may not use this recorder")
            && why.contains("polkit does not allow"),
        "{why}"
    );
    let asked = polkit.asked.load(Ordering::SeqCst);
    let why = refusal(&recording, 4545);
    let one = "user 4545 may not use this recorder, since user 4545 is not logged in at this \
               machine; run: tipme setup (";
    assert!(why.contains(one) && why.matches("; ").count() == 1, "{why}");
    assert_eq!(
        [refusal(&recording, BOB), refusal(&recording, EVE), refusal(&recording, 0)],
        [""; 3]
    );
    assert_eq!(polkit.asked.load(Ordering::SeqCst), asked);
}

#[test]
fn a_hanging_polkit_delays_no_other_and_its_last_yes_counts() {
    let polkit = Polkit::start(HANG);
    let recording = record(polkit.dir.path());
    let dir = recording.dir.path().to_owned();
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let mut command = tipme_as(ANN, &dir, &["mark"]);
            std::thread::spawn(move || command.output().unwrap())
        })
        .collect();
    while polkit.asked.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        [refusal(&recording, BOB), refusal(&recording, EVE), refusal(&recording, 0)],
        [""; 3]
    );
    for wait in waits {
        let why = String::from_utf8(wait.join().unwrap().stderr).unwrap();
        assert!(why.contains("polkit is silent") || why.contains("cannot ask polkit"), "{why}");
    }
    polkit.say(YES);
    let begun = Instant::now();
    while !refusal(&recording, ANN).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "polkit answers, and is not heard");
    }
    polkit.say(HANG);
    assert_eq!(refusal(&recording, ANN), "");
}

#[test]
fn without_polkit_the_group_counts() {
    let nothing = open_folder();
    let recording = record(nothing.path());
    assert_eq!([refusal(&recording, BOB), refusal(&recording, EVE)], [""; 2]);
    assert!(
        status(&recording, BOB).contains("you may mark   because you are in the group tipme\n")
    );
    assert!(
        status(&recording, EVE)
            .contains("you may mark   because the recorder's --allow-user names you\n")
    );
    let why = refusal(&recording, ANN);
    assert!(why.contains("the group tipme") && why.contains("there is no system bus"), "{why}");
}

/// Starts a terminal of Ann on a display of root that no other user of this machine may see.
fn terminal_of_ann() -> (PrivateSession, Typist) {
    let mut session = session();
    for (name, mode) in [("", 0o755), ("authority", 0o644)] {
        std::fs::set_permissions(session.folder().join(name), Permissions::from_mode(mode))
            .unwrap();
    }
    let as_ann = ["setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups"];
    session.open_terminal(&as_ann.map(Into::into), &["cat".into()]).unwrap();
    let typist = typist(&session, 150.0);
    (session, typist)
}

/// Stops Ann's terminal while she types, until the recorder has looked at it.
fn hitch(recording: &Recording, session: &PrivateSession, typist: &mut Typist) {
    let before = decided(recording);
    let begun = Instant::now();
    while decided(recording) == before {
        assert!(begun.elapsed() < Duration::from_secs(90), "nobody looks at it");
        support::hitch(session, typist);
        std::thread::sleep(Duration::from_secs(4));
    }
}

/// Returns the number of looks with a result.
fn decided(recording: &Recording) -> u64 {
    let counts = support::status(recording.dir.path()).auto.unwrap();
    counts.marked + counts.known_causes + counts.without_finding + counts.failed
}

/// Returns the owners of automatic marks, and `true` for each of Ann, Bob and Eve with a hint about
/// them.
fn marked(recording: &Recording) -> (Vec<u32>, [bool; 3]) {
    let owners = files(&recording.incidents(), ".tipme")
        .iter()
        .map(|path| std::fs::metadata(path).unwrap().uid())
        .collect();
    (
        owners,
        [ANN, BOB, EVE]
            .map(|uid| status(recording, uid).contains(" since this morning: tipme incidents")),
    )
}

#[test]
fn a_user_allowed_by_polkit_has_own_hitches_only() {
    let polkit = Polkit::start(NO);
    let (session, mut typist) = terminal_of_ann();
    let recording = record_on(polkit.dir.path(), &["--auto", "--display", &session.display_name()]);
    hitch(&recording, &session, &mut typist);
    polkit.say(YES);
    let (owners, hints) = marked(&recording);
    assert!(!owners.contains(&ANN) && !hints[0], "{owners:?} {hints:?}");
    drop(recording);

    let recording = record_on(polkit.dir.path(), &["--auto", "--display", &session.display_name()]);
    hitch(&recording, &session, &mut typist);
    assert_eq!(marked(&recording), (vec![ANN], [true, false, false]));
}
