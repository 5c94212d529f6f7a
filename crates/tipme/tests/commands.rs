// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting commands in a terminal, each with a finding for its wait. Real programs, recorded,
//! marked and diagnosed. Needs root, bash and perl.

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::Running;
use support::shell::{marked, shell, type_command};
use tipme_bench::PrivateSession;
use tipme_bench::until;

/// A process that holds a resource until it is released; killed on drop.
struct Holder(Running);

impl Holder {
    /// Starts a perl script that prints a line when it is ready; also returns that line.
    fn start(session: &PrivateSession, script: &str) -> (Holder, String) {
        let mut command = Command::new("perl");
        command.args(["-e", script]).current_dir(session.folder());
        Holder::run(command)
    }

    fn run(mut command: Command) -> (Holder, String) {
        let (child, line) = Running::start_saying(command.stdin(Stdio::piped()));
        let said = line.trim().to_owned();
        assert!(!said.is_empty(), "the holder failed");
        (Holder(child), said)
    }

    fn release(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

/// Returns the verdict on the command after its resource was released.
fn verdict(session: &PrivateSession, release: impl FnOnce()) -> Value {
    let recording = type_command(session);
    release();
    until("the end of the command", || session.folder().join("d").exists());
    std::thread::sleep(Duration::from_millis(500));
    marked(&recording)
}

/// Returns the verdict while the command still waits.
fn verdict_meanwhile(session: &PrivateSession) -> Value {
    marked(&type_command(session))
}

/// Returns kind and culprit of the first finding, and all evidence.
fn first(verdict: &Value) -> (String, u64, String) {
    let finding = &verdict["findings"][0];
    let evidence: Vec<&str> =
        finding["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    (
        finding["kind"].as_str().unwrap_or_default().to_owned(),
        finding["culprit"]["pid"].as_u64().unwrap_or_default(),
        evidence.join("\n"),
    )
}

const HOLDS_FILE: &str = r#"
    use Fcntl ":flock"; $| = 1; open my $file, ">", "lock" or die; flock $file, LOCK_EX or die;
    print "ready\n"; <STDIN>; flock $file, LOCK_UN; <STDIN>;
"#;

const HOLDS_RANGE: &str = r#"
    use Fcntl; $| = 1; open my $file, ">", "lock" or die;
    my $all = pack "ssx4qqlx4", F_WRLCK, 0, 0x40000000, 2, 0; fcntl $file, F_SETLK, $all or die;
    print "ready\n"; <STDIN>; close $file; <STDIN>;
"#;

/// Locks a byte of the file with retries, as a database does.
const TRIES_RANGE: &str = r#"
    use Fcntl; open my $file, "+<", "lock" or die;
    my $one = pack "ssx4qqlx4", F_RDLCK, 0, 0x40000000, 1, 0;
    select undef, undef, undef, 0.05 until fcntl $file, F_SETLK, $one;
"#;

#[test]
fn a_lock_that_a_script_tries_again_and_again_has_its_holder() {
    let session = shell("until flock -n lock true; do sleep 0.1; done");
    let (mut holder, _) = Holder::start(&session, HOLDS_FILE);
    let verdict = verdict(&session, || holder.release());
    let (kind, culprit, evidence) = first(&verdict);
    assert_eq!((kind.as_str(), culprit), ("lock-wait", holder.id().into()), "{verdict:#}");
    let file = session.folder().join("lock");
    assert!(evidence.contains(&format!("failed to lock {}", file.display())), "{evidence}");
}

#[test]
fn a_lock_that_a_thread_tries_again_and_again_has_its_holder() {
    let session = shell(&format!("perl -e '{TRIES_RANGE}'"));
    let (mut holder, _) = Holder::start(&session, HOLDS_RANGE);
    let verdict = verdict(&session, || holder.release());
    let (kind, culprit, evidence) = first(&verdict);
    assert_eq!((kind.as_str(), culprit), ("lock-wait", holder.id().into()), "{verdict:#}");
    assert!(evidence.contains("failed to lock a file"), "{evidence}");
}

/// A server that never answers over UDP.
const SILENT: &str = r#"
    use IO::Socket::INET; $| = 1;
    my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Proto => "udp") or die;
    print $server->sockport, "\n"; <STDIN>;
"#;

/// Sends a request and polls for the answer three times, as resolvers do.
const ASKS: &str = r#"
    use IO::Socket::INET; use IO::Poll;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Proto => $ARGV[1]) or die;
    for (1 .. 3) {
        my $poll = IO::Poll->new; $poll->mask($socket => POLLIN);
        syswrite $socket, "name?"; last if $poll->poll(0.6);
    }
"#;

/// A server on a port or a local name that answers each client after a delay.
const ANSWERS_LATE: &str = r#"
    use IO::Socket::INET; use IO::Socket::UNIX; $| = 1;
    my $server = $ARGV[0] ? IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5)
        : IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 5) or die;
    print $ARGV[0] ? "ready" : $server->sockport, "\n";
    my $client = $server->accept; select undef, undef, undef, 1.5; syswrite $client, "answer\n"; <STDIN>;
"#;

/// Waits for an answer from a socket with poll or epoll.
const WAITS: &str = r#"
    use IO::Socket::INET; use IO::Socket::UNIX; use IO::Poll;
    my ($where, $how) = @ARGV;
    my $socket = $where =~ /^\d+$/ ? IO::Socket::INET->new(PeerAddr => "127.0.0.1:$where")
        : IO::Socket::UNIX->new(Peer => $where) or die;
    if ($how eq "poll") { my $poll = IO::Poll->new; $poll->mask($socket => POLLIN); $poll->poll(60) }
    if ($how eq "epoll") {
        my $set = syscall 291, 0; my $event = pack "LQ", 1, 0;
        syscall(233, $set, 1, fileno $socket, $event) == 0 or die;
        my $events = "\0" x 64; syscall 232, $set, $events, 4, 60_000;
    }
"#;

fn script(session: &PrivateSession, name: &str, text: &str) {
    std::fs::write(session.folder().join(name), text).unwrap();
}

/// Returns the verdict on a client of a server that answers late.
fn late(address: Option<&str>, how: &str) -> (String, u64, u64, Value) {
    let session = shell(&format!("exec 2>&1; perl w $(cat where) {how}"));
    script(&session, "w", WAITS);
    let mut command = Command::new("perl");
    command.args(["-e", ANSWERS_LATE]).args(address).current_dir(session.folder());
    let (holder, said) = Holder::run(command);
    script(&session, "where", address.unwrap_or(&said));
    let verdict = verdict(&session, || ());
    let (kind, culprit, _) = first(&verdict);
    (kind, culprit, holder.id().into(), verdict)
}

#[test]
fn an_answer_over_udp_that_does_not_come_has_its_address() {
    let session = shell("");
    script(&session, "a", ASKS);
    let (holder, port) = Holder::start(&session, SILENT);
    script(&session, "c", &format!("perl a {port} udp\n: > d\n"));
    let verdict = verdict(&session, || ());
    let (kind, _, evidence) = first(&verdict);
    assert_eq!(kind, "network-wait", "{verdict:#}");
    assert_eq!(verdict["findings"][0]["culprit"]["address"], format!("127.0.0.1:{port}"));
    assert!(
        evidence
            .starts_with(&format!("perl waited for 127.0.0.1:{port}, and no answer came for 1.")),
        "{evidence}"
    );
    drop(holder);
}

#[test]
fn a_poll_of_a_loopback_connection_leads_to_the_server() {
    for how in ["poll", "epoll"] {
        let (kind, culprit, holder, verdict) = late(None, how);
        assert_eq!((kind.as_str(), culprit), ("peer-wait", holder), "{how}: {verdict:#}");
    }
}

#[test]
fn a_poll_of_a_local_socket_leads_to_its_other_end() {
    let (kind, culprit, holder, verdict) = late(Some("peer"), "poll");
    assert_eq!((kind.as_str(), culprit), ("peer-wait", holder), "{verdict:#}");
}

#[test]
fn the_holder_at_the_mark_is_named() {
    let session = shell(&format!("perl -e '{TRIES_RANGE}'"));
    let (holder, _) = Holder::start(&session, HOLDS_RANGE);
    let verdict = verdict_meanwhile(&session);
    let (kind, culprit, _) = first(&verdict);
    assert_eq!((kind.as_str(), culprit), ("lock-wait", holder.id().into()), "{verdict:#}");
}

#[test]
fn the_server_at_the_mark_is_named() {
    let session = shell("perl w $(cat where) poll");
    script(&session, "w", WAITS);
    let (holder, port) = Holder::start(&session, &ANSWERS_LATE.replace("1.5;", "99;"));
    script(&session, "where", &port);
    let verdict = verdict_meanwhile(&session);
    let (kind, culprit, _) = first(&verdict);
    assert_eq!((kind.as_str(), culprit), ("peer-wait", holder.id().into()), "{verdict:#}");
}
