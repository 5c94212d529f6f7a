// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded details of anonymous waits: polled files, and locks that are tried in a loop. Needs
//! root and perl.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Recording, records_of};
use tempfile::TempDir;
use tipme_record::RecordKind;
use tipme_record::incident::{Incident, Section};
use tipme_record::records::{Attempt, Polled};

/// Polls a connected UDP socket, then that one and a TCP socket with epoll, then five files, and
/// finally selects the TCP socket. Every step is repeated three times, so that it is seen at least
/// once on a busy machine.
const POLLS: &str = r#"
    use IO::Socket::INET; use IO::Poll; $| = 1;
    my ($udp, $tcp) = map {
        IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[$_]", Proto => ("udp", "tcp")[$_]) or die
    } 0, 1;
    my $poll = IO::Poll->new; $poll->mask($udp => POLLIN); $poll->poll(0.1) for 1 .. 3;
    my $set = syscall 291, 0;
    for my $one ($udp, $tcp) { my $event = pack "LQ", 1, 0; syscall(233, $set, 1, fileno $one, $event) == 0 or die }
    my $events = "\0" x 64; syscall 232, $set, $events, 4, 100 for 1 .. 3;
    pipe my $in, my $out; pipe my $more, my $end;
    $poll->mask($_ => POLLIN) for $tcp, $in, $more, *STDIN; $poll->poll(0.1);
    my $bits = ""; vec($bits, fileno $tcp, 1) = 1; print "done\n"; select $bits, undef, undef, 100;
"#;

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns a thread's polled files: those of the window, then those at the mark.
fn polled(incident: &Incident, tid: u32) -> Vec<Polled> {
    let mut found: Vec<Polled> =
        records_of(incident, Section::Rare, RecordKind::Polled, Polled::read).collect();
    let mut rest = incident.bytes(Section::Tasks);
    while let Some(one) = Polled::read(rest) {
        found.extend((one.head.kind == RecordKind::Polled as u8).then_some(one));
        rest = &rest[usize::from(one.head.size)..];
    }
    found.retain(|one| one.head.tid.0 == tid);
    found.sort_by_key(|one| one.head.ts);
    found
}

#[test]
fn the_files_of_small_sets_are_recorded() {
    let (udp, tcp) =
        (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let [udp, tcp] = [udp.local_addr().unwrap().port(), tcp.local_addr().unwrap().port()];
    let recording = Recording::start(&["--display", "none"]);
    let mut command = quiet("perl");
    command.args(["-e", POLLS, &udp.to_string(), &tcp.to_string()]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut polls, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    polls.read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    // It is about to wait for the last time.
    std::thread::sleep(Duration::from_millis(300));
    let (_, incident) = recording.mark();
    let polled = polled(&incident, child.id());
    let found: BTreeSet<(u8, u16, u16)> =
        polled.iter().map(|one| (one.files, one.socket, one.port)).collect();
    end(child);
    assert_eq!(found, [(1, 2, udp), (2, 1, tcp), (2, 2, udp), (1, 1, tcp)].into());
}

/// Sends from an unconnected socket and from a well-known port, then polls one socket after the
/// other. Every step is repeated three times, so that it is seen at least once on a busy machine.
const DATAGRAMS: &str = r#"
    use IO::Socket::INET; use IO::Poll; use Socket; $| = 1;
    my $to = pack_sockaddr_in($ARGV[0], inet_aton("127.0.0.1"));
    for my $own ([], [LocalAddr => "127.0.0.1"], [LocalPort => $ARGV[1]]) {
        my $socket = IO::Socket::INET->new(Proto => "udp", @$own) or die;
        send $socket, "x", 0, $to;
        my $poll = IO::Poll->new; $poll->mask($socket => POLLIN); $poll->poll(0.1) for 1 .. 3;
    }
"#;

#[test]
fn the_peer_of_a_datagram_socket_is_recorded() {
    let (asked, known) =
        (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
    let [asked_port, known_port] =
        [&asked, &known].map(|socket| socket.local_addr().unwrap().port());
    drop(known);
    let recording = Recording::start(&[]);
    let mut command = quiet("perl");
    let mut child = command
        .args(["-e", DATAGRAMS, &asked_port.to_string(), &known_port.to_string()])
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    let (_, incident) = recording.mark();
    let polled = polled(&incident, child.id());
    let found: BTreeSet<(u8, u16, u32)> =
        polled.iter().map(|one| (one.state, one.port, one.address)).collect();
    let loopback = u32::from_le_bytes([127, 0, 0, 1]);
    assert_eq!(found, [(1, asked_port, loopback), (7, 0, 0)].into());
}

#[test]
fn the_holder_of_a_lock_that_is_tried_in_vain_is_recorded() {
    let recording = Recording::start(&["--display", "none"]);
    let dir = TempDir::new().unwrap();
    let lock = dir.path().join("lock").display().to_string();
    let mut holder = quiet("flock").args([&lock, "sleep", "3"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let tries = format!("until flock -n {lock} true; do sleep 0.1; done");
    quiet("sh").args(["-c", &tries]).spawn().unwrap().wait().unwrap();
    let id = holder.id();
    holder.wait().unwrap();
    let (_, incident) = recording.mark();
    let inode = std::fs::metadata(&lock).unwrap().ino();
    let mut tries: Vec<Attempt> =
        records_of(&incident, Section::Rare, RecordKind::Attempt, Attempt::read).collect();
    tries.retain(|one| one.inode == inode);
    tries.sort_by_key(|one| one.head.ts);
    let got = tries.pop().unwrap();
    assert_eq!((got.failures, got.holder.0), (0, 0));
    assert!(tries.len() >= 3, "{tries:?}");
    assert!(tries.iter().all(|one| (one.failures, one.holder.0) == (1, id)), "{tries:?}");
}
