// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversations: many requests over one connection, each answered before the next is read.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_control::{
    Caller, Client, Conversation, READ_TIMEOUT, Received, RecorderRequest, RecorderResponse,
    RecorderSocket, RecorderStatus, SOCKET_NAME, SocketListener,
};

/// A daemon that talks to one caller until that is gone, and returns the reason for the end.
struct Daemon {
    dir: TempDir,
    thread: JoinHandle<String>,
}

impl Daemon {
    fn start(timeout: Option<Duration>) -> Daemon {
        let dir = TempDir::new().unwrap();
        let mut listener =
            SocketListener::bind::<RecorderSocket>(&dir.path().join(SOCKET_NAME)).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, caller) = loop {
                if let Some(next) = listener.accept(Instant::now()) {
                    break next;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            talk(Conversation::new(stream, caller), timeout)
        });
        Daemon { dir, thread }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.dir.path().join(SOCKET_NAME)).unwrap()
    }

    fn end(self) -> String {
        self.thread.join().expect("the daemon did not panic")
    }
}

/// Answers with the number of the request.
fn talk(mut conversation: Conversation<RecorderSocket>, timeout: Option<Duration>) -> String {
    for number in 1.. {
        match conversation.receive(timeout) {
            Received::Gone => return format!("gone after {}", number - 1),
            Received::Bad(why) => return why,
            Received::Nothing => return "nothing came".to_owned(),
            Received::Request(RecorderRequest::Start) => {
                if !conversation.pause(Duration::from_secs(100)) {
                    return "gone in a pause".to_owned();
                }
            }
            Received::Request(_) => {
                if !conversation.answer(&RecorderResponse::Status(RecorderStatus {
                    pid: number,
                    ..RecorderStatus::default()
                })) {
                    return "does not read".to_owned();
                }
            }
        }
    }
    unreachable!("it is left by a return")
}

#[test]
fn many_requests_get_their_answers_in_turn() {
    let daemon = Daemon::start(None);
    let mut dialogue = Client::new(daemon.dir.path()).converse().unwrap();
    assert_eq!(
        dialogue.server(),
        Caller { pid: std::process::id(), uid: 0 },
        "run the tests as root"
    );
    for number in 1..=100 {
        let RecorderResponse::Status(status) = dialogue.ask(&RecorderRequest::Status).unwrap()
        else {
            panic!("no status")
        };
        assert_eq!(status.pid, number);
    }
    drop(dialogue);
    assert_eq!(daemon.end(), "gone after 100");
}

#[test]
fn lines_that_come_together_are_read_in_turn() {
    let daemon = Daemon::start(None);
    let mut stream = daemon.connect();
    stream.write_all(b"\"status\"\n\"status\"\n\"sta").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    stream.write_all(b"tus\"\n").unwrap();
    let mut reader = std::io::BufReader::new(&stream);
    for number in 1..=3 {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
        assert!(line.contains(&format!("\"pid\":{number},")), "{line}");
    }
    drop(stream);
    assert_eq!(daemon.end(), "gone after 3");
}

#[test]
fn an_incomplete_line_times_out() {
    let daemon = Daemon::start(None);
    let mut stream = daemon.connect();
    stream.write_all(b"\"status\"\n").unwrap();
    std::thread::sleep(READ_TIMEOUT / 2);
    stream.write_all(b"\"sta").unwrap();
    assert_eq!(daemon.end(), "no request within 2 s");
    let daemon = Daemon::start(None);
    let mut stream = daemon.connect();
    stream.write_all(b"\"sta").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(daemon.end(), "the request ends without a line end");
}

#[test]
fn the_timeout_of_a_silent_caller_is_kept() {
    let daemon = Daemon::start(Some(Duration::from_millis(50)));
    let _silent = daemon.connect();
    assert_eq!(daemon.end(), "nothing came");
}

#[test]
fn a_caller_that_does_not_read_is_noticed() {
    let daemon = Daemon::start(None);
    let mut stream = daemon.connect();
    // Until the daemon closes the connection.
    while stream.write_all(&b"\"status\"\n".repeat(1_000)).is_ok() {}
    assert_eq!(daemon.end(), "does not read");
}

#[test]
fn requests_of_a_caller_that_is_gone_are_not_served() {
    let daemon = Daemon::start(None);
    let mut stream = daemon.connect();
    stream.write_all(b"\"start\"\n\"status\"\n\"status\"\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    drop(stream);
    assert_eq!(daemon.end(), "gone in a pause");
    let daemon = Daemon::start(None);
    let mut stream = daemon.connect();
    stream.write_all(&[b'x'; 70_000]).unwrap();
    assert_eq!(daemon.end(), "the request has more than 65536 bytes");
}
