// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the socket. They change their uid for a while, so they need root.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_control::{
    Client, Gate, MAX_CONNECTIONS, READ_TIMEOUT, RecorderRequest, RecorderResponse, RecorderStatus,
    SOCKET_NAME, Server, Trigger,
};

/// A recorder's poll loop in a thread. Its status is the caller's pid, and "start" ends it.
struct Daemon {
    dir: TempDir,
    thread: Option<JoinHandle<u32>>,
}

impl Daemon {
    fn start() -> Daemon {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let server = Server::bind(&dir.path().join(SOCKET_NAME), Gate::new(&[4711])).unwrap();
        let thread = std::thread::spawn(move || serve(server));
        Daemon { dir, thread: Some(thread) }
    }

    fn client(&self) -> Client {
        Client::new(self.dir.path()).with_timeout(Duration::from_secs(10))
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(SOCKET_NAME)
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Ends the loop, and returns its number of iterations.
    fn finish(mut self) -> u32 {
        self.client().call(&RecorderRequest::Start).expect("the loop still turns");
        self.thread.take().expect("it was started").join().expect("the loop did not panic")
    }
}

fn serve(mut server: Server) -> u32 {
    for turns in 1.. {
        wait(&server);
        for call in server.calls(Instant::now()) {
            let (request, caller) = (call.request.clone(), call.caller);
            match request {
                RecorderRequest::Status => call.answer(&RecorderResponse::Status(RecorderStatus {
                    pid: caller.pid,
                    ..RecorderStatus::default()
                })),
                _ => call.answer(&RecorderResponse::Done),
            }
            if request == RecorderRequest::Start {
                return turns;
            }
        }
    }
    0
}

fn wait(server: &Server) {
    let timeout =
        server.timeout(Instant::now()).map(|rest| Timespec::try_from(rest).expect("a short time"));
    let fds = server.fds();
    let mut polled: Vec<PollFd> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    poll(&mut polled, timeout.as_ref()).expect("descriptors can be polled");
}

fn answer_to(mut stream: UnixStream, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes);
    let mut answer = String::new();
    // A connection closed with unread bytes ends with a reset after the answer.
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn mark() -> RecorderRequest {
    RecorderRequest::Mark { text: "slow".into(), trigger: Trigger::Command }
}

#[test]
fn a_call_gets_its_answer() {
    let daemon = Daemon::start();
    assert_eq!(daemon.client().call(&mark()).unwrap(), RecorderResponse::Done);
    let RecorderResponse::Status(status) = daemon.client().call(&RecorderRequest::Status).unwrap()
    else {
        panic!("no status")
    };
    assert_eq!(status.pid, std::process::id());
    daemon.finish();
}

fn error_of_call(dir: &Path) -> String {
    Client::new(dir).call(&RecorderRequest::Status).expect_err("nobody listens").to_string()
}

#[test]
fn without_a_recorder_the_error_has_the_remedy() {
    let dir = TempDir::new().unwrap();
    let socket = dir.path().join(SOCKET_NAME);
    let expected = format!(
        "no recorder listens at {}; start one with: sudo tipme record --state-dir {}",
        socket.display(),
        dir.path().display()
    );
    assert_eq!(error_of_call(dir.path()), expected);
    // A killed recorder leaves its socket file.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert_eq!(error_of_call(dir.path()), expected);
    Server::bind(&dir.path().join(SOCKET_NAME), Gate::new(&[]))
        .expect("a stale socket is replaced");
    let usual = error_of_call(Path::new("/run/tipme-none/../tipme"));
    assert!(usual.contains("sudo tipme record"), "{usual}");
}

#[test]
fn two_recorders_do_not_share_a_socket() {
    let daemon = Daemon::start();
    let error = Server::bind(&daemon.path(), Gate::new(&[])).expect_err("taken").to_string();
    assert!(error.ends_with("already; stop it, or use another --state-dir"), "{error}");
    assert_eq!(daemon.client().call(&mark()).unwrap(), RecorderResponse::Done);
    let path = daemon.path();
    daemon.finish();
    assert!(!path.exists(), "the socket file goes with the server");
}

/// Makes a call as another user; the uids of a thread are separate from those of the process.
fn call_as(uid: u32, client: &Client) -> Result<RecorderResponse, String> {
    let client = client.clone();
    let thread = std::thread::spawn(move || {
        rustix::thread::set_thread_uid(rustix::fs::Uid::from_raw(uid))
            .expect("root may; run the tests as root");
        client.call(&mark()).map_err(|error| error.to_string())
    });
    thread.join().expect("the caller did not panic")
}

#[test]
fn only_those_allowed_are_served() {
    let daemon = Daemon::start();
    assert_eq!(call_as(4711, &daemon.client()), Ok(RecorderResponse::Done));
    assert_eq!(
        call_as(4712, &daemon.client()),
        Err("user 4712 may not use this recorder; \
             run: tipme setup (it makes you a member of the group tipme)"
            .into())
    );
    daemon.finish();
}

#[test]
fn a_line_too_long_is_refused() {
    let daemon = Daemon::start();
    let answer = answer_to(daemon.connect(), &[b'x'; 200_000]);
    assert_eq!(answer, "{\"error\":\"the request has more than 65536 bytes\"}\n");
    let long = RecorderRequest::Mark { text: "x".repeat(65_536), trigger: Trigger::Command };
    let error = daemon.client().call(&long).expect_err("too long").to_string();
    assert_eq!(error, "the request has more than 65536 bytes; shorten the text");
    let fits = RecorderRequest::Mark { text: "x".repeat(65_000), trigger: Trigger::Command };
    assert_eq!(daemon.client().call(&fits).unwrap(), RecorderResponse::Done);
    daemon.finish();
}

#[test]
fn invalid_and_incomplete_lines_are_refused() {
    let daemon = Daemon::start();
    assert!(
        answer_to(daemon.connect(), b"\0\xff\n")
            .starts_with("{\"error\":\"the request is not understood")
    );
    let half = daemon.connect();
    (&half).write_all(b"\"sta").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(answer_to(half, b""), "{\"error\":\"the request ends without a line end\"}\n");
    daemon.finish();
}

#[test]
fn a_line_may_come_in_pieces() {
    let daemon = Daemon::start();
    let mut stream = daemon.connect();
    for piece in [&b"{\"ma"[..], b"rk\":", b"{}}"] {
        stream.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(answer_to(stream, b"\n"), "\"done\"\n");
    daemon.finish();
}

#[test]
fn silent_clients_lose_their_place_and_others_are_served() {
    let daemon = Daemon::start();
    let begin = Instant::now();
    let silent: Vec<UnixStream> = (0..MAX_CONNECTIONS + 4).map(|_| daemon.connect()).collect();
    assert_eq!(daemon.client().call(&mark()).unwrap(), RecorderResponse::Done);
    let waited = begin.elapsed();
    assert!(waited < 3 * READ_TIMEOUT, "served after {waited:?}");
    let first = silent.into_iter().next().expect("there are some");
    assert_eq!(answer_to(first, b""), "{\"error\":\"no request within 2 s\"}\n");
    let turns = daemon.finish();
    assert!(turns < 200, "the loop turned {turns} times: it was busy while nothing came");
}

#[test]
fn clients_that_vanish_leave_nothing() {
    let daemon = Daemon::start();
    for round in 0..100 {
        let mut stream = daemon.connect();
        stream.write_all(if round % 2 == 0 { b"\"status\"\n" } else { b"\"sta" }).unwrap();
    }
    assert_eq!(daemon.client().call(&mark()).unwrap(), RecorderResponse::Done);
    daemon.finish();
}

#[test]
fn a_missing_answer_is_an_error() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(SOCKET_NAME);
    let _deaf = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let client = Client::new(dir.path()).with_timeout(Duration::from_millis(50));
    let error = client.call(&RecorderRequest::Status).expect_err("nobody accepts").to_string();
    assert!(error.contains("did not answer within 50ms"), "{error}");
}
