// SPDX-License-Identifier: MIT OR Apache-2.0
//! Callers that receive notifications.

use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_control::{
    CallError, Client, Focused, Follower, Following, Gate, RecorderRequest, RecorderResponse,
    SOCKET_NAME, Server,
};

fn focus(since_ns: u64) -> RecorderResponse {
    RecorderResponse::Focus(Focused { server: 7, client: Some(9), since_ns })
}

/// Returns a following client, and the daemon's side of it. The daemon sends these responses all at
/// once.
fn following(
    first: &RecorderResponse,
    news: &[RecorderResponse],
) -> (Result<Following, CallError>, Follower) {
    let dir = TempDir::new().unwrap();
    let mut server = Server::bind(&dir.path().join(SOCKET_NAME), Gate::new(&[])).unwrap();
    let client = Client::new(dir.path()).with_timeout(Duration::from_secs(60));
    let asking = std::thread::spawn(move || Following::begin(client, &RecorderRequest::Follow));
    let call = loop {
        if let Some(call) = server.calls(Instant::now()).pop() {
            break call;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(call.request, RecorderRequest::Follow);
    let follower = call.follow();
    assert!(follower.tell(first) && news.iter().all(|news| follower.tell(news)));
    (asking.join().unwrap(), follower)
}

#[test]
fn notifications_come_in_order_until_one_side_ends() {
    let (following, follower) = following(&RecorderResponse::Done, &[focus(1), focus(2)]);
    let mut following = following.unwrap();
    assert_eq!(following.news().unwrap(), [focus(1), focus(2)]);
    assert_eq!(following.news().unwrap(), []);
    assert!(follower.tell(&focus(3)) && follower.is_there());
    assert_eq!(following.news().unwrap(), [focus(3)]);
    drop(following);
    assert!(!follower.is_there() && !follower.tell(&focus(4)));
}

#[test]
fn the_end_of_the_daemon_is_reported() {
    let (following, follower) = following(&RecorderResponse::Done, &[focus(1), focus(2)]);
    drop(follower);
    let mut following = following.unwrap();
    assert!(matches!(following.news(), Err(CallError::Closed { .. })));
}

#[test]
fn a_refusal_ends_following() {
    let (following, _) = following(&RecorderResponse::Error("too many".to_owned()), &[]);
    assert!(matches!(following, Err(CallError::Refused(why)) if why == "too many"));
}

#[test]
fn a_follower_that_does_not_read_is_dropped() {
    let (_following, follower) = following(&RecorderResponse::Done, &[]);
    assert!(
        (0..100_000).any(|at| !follower.tell(&focus(at))),
        "what is not read is kept without bound"
    );
}
