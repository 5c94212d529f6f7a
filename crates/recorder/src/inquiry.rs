// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queries of live processes, which may never answer.
//!
//! Reading the memory of a process, or a file that it maps, can block for as long as its user
//! likes: the file may be on a file system that this user serves. So a thread does the queries, an
//! incident waits for the answers up to a timeout, and a thread that does not return is abandoned.
//! Its user's processes are then skipped, so that those of other users still get their names.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum number of abandoned threads; at that number there are no queries until one of them
/// returns.
const ABANDONED_MAX: usize = 8;

/// A uid that no user has.
const NOBODY: u32 = u32::MAX;

/// Abandoned query threads of all incidents, each with the owner of the process that blocks it.
#[derive(Clone, Default)]
pub(crate) struct Inquiries(Arc<Mutex<Vec<Weak<AtomicU32>>>>);

/// Answers that arrived in time, and the reason why there are not more.
pub(crate) struct Answers<T> {
    pub(crate) found: Vec<T>,
    pub(crate) missing: Option<String>,
}

/// State of the query thread.
pub(crate) struct Inquirer<T> {
    answers: Sender<T>,
    until: Instant,
    /// User of the process being queried.
    asked: Arc<AtomicU32>,
    silent: Vec<u32>,
}

impl Inquiries {
    /// Runs `ask` in a thread and returns its answers until it ends or times out. `ask` returns the
    /// reason why it found no more.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        timeout: Duration,
        ask: impl FnOnce(&Inquirer<T>) -> Option<String> + Send + 'static,
    ) -> Answers<T> {
        let silent = self.silent();
        if silent.len() >= ABANDONED_MAX {
            return Answers { found: Vec::new(), missing: Some(unanswered(&silent)) };
        }
        let (answers, receiver) = channel();
        let (until, asked) = (Instant::now() + timeout, Arc::new(AtomicU32::new(NOBODY)));
        let asker = Inquirer { answers, until, asked: asked.clone(), silent: silent.clone() };
        let thread = std::thread::spawn(move || ask(&asker));
        let (found, in_time) = receive(&receiver, until);
        if !in_time {
            let user = asked.load(Ordering::Acquire);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&asked));
            let why = format!(
                "processes of user {user} did not answer within {} s",
                timeout.as_secs_f32()
            );
            return Answers { found, missing: Some(why) };
        }
        let failed = "the thread that queries processes has failed; see the recorder's messages";
        let missing = thread.join().unwrap_or_else(|_| Some(failed.to_owned()));
        Answers {
            found,
            missing: missing.or_else(|| (!silent.is_empty()).then(|| unanswered(&silent))),
        }
    }

    /// Returns the owners of the blocking processes, once per thread.
    fn silent(&self) -> Vec<u32> {
        let mut abandoned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        abandoned.retain(|asked| asked.strong_count() > 0);
        abandoned
            .iter()
            .filter_map(Weak::upgrade)
            .map(|asked| asked.load(Ordering::Acquire))
            .collect()
    }
}

/// Receives answers until the thread ends or `until` passes; returns `true` with them if it ended.
fn receive<T>(answers: &Receiver<T>, until: Instant) -> (Vec<T>, bool) {
    let mut found = Vec::new();
    loop {
        match answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(answer) => found.push(answer),
            Err(error) => return (found, error == RecvTimeoutError::Disconnected),
        }
    }
}

fn unanswered(silent: &[u32]) -> String {
    let users: std::collections::BTreeSet<String> =
        silent.iter().map(|user| format!("user {user}")).collect();
    let users: Vec<String> = users.into_iter().collect();
    format!("processes of {} have not answered earlier questions yet", users.join(", "))
}

impl<T> Inquirer<T> {
    /// Returns `true` if a process of this user may be queried now: there is time left, and no
    /// thread blocks on this user.
    pub(crate) fn may_ask(&self, user: u32) -> bool {
        self.waits_for(user);
        Instant::now() < self.until && !self.silent.contains(&user)
    }

    /// Records that a process of this user is being queried.
    pub(crate) fn waits_for(&self, user: u32) {
        self.asked.store(user, Ordering::Release);
    }

    /// Returns the time left for answers.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Sends an answer. If the receiver is gone, the incident is already written.
    pub(crate) fn send(&self, answer: T) {
        self.answers.send(answer).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(60);

    /// Queries a process of each user in turn; the answers are the users queried.
    fn ask_all(inquiries: &Inquiries, users: &'static [u32]) -> Answers<u32> {
        inquiries.ask(LONG, |asker| {
            users.iter().filter(|user| asker.may_ask(**user)).for_each(|user| asker.send(*user));
            None
        })
    }

    /// Queries a process of user 7 that blocks until the sender is dropped.
    fn ask_silent(inquiries: &Inquiries) -> (Answers<u32>, Sender<()>) {
        let (sender, receiver) = channel::<()>();
        let answers = inquiries.ask(SOON, move |asker| {
            asker.send(1);
            asker.may_ask(7);
            receiver.recv().ok();
            assert!(!asker.may_ask(8), "it is too late");
            None
        });
        (answers, sender)
    }

    #[test]
    fn answers_in_time_count() {
        let all = ask_all(&Inquiries::default(), &[1, 7]);
        assert_eq!((all.found, all.missing), (vec![1, 7], None));
        let failed =
            Inquiries::default().ask(LONG, |_: &Inquirer<u32>| Some("it is not there".to_owned()));
        assert_eq!(failed.missing.as_deref(), Some("it is not there"));
        let (some, _sender) = ask_silent(&Inquiries::default());
        assert_eq!(some.found, [1]);
        assert_eq!(
            some.missing.as_deref(),
            Some("processes of user 7 did not answer within 0.1 s")
        );
    }

    #[test]
    fn a_silent_process_is_asked_no_more_until_it_answers() {
        let inquiries = Inquiries::default();
        let (_, sender) = ask_silent(&inquiries);
        let next = ask_all(&inquiries, &[1, 7, 8]);
        assert_eq!(next.found, [1, 8]);
        assert_eq!(
            next.missing.as_deref(),
            Some("processes of user 7 have not answered earlier questions yet")
        );
        drop(sender);
        while !inquiries.silent().is_empty() {
            std::thread::sleep(SOON);
        }
        assert_eq!(ask_all(&inquiries, &[1, 7]).found, [1, 7]);
    }

    #[test]
    fn abandoned_threads_are_few() {
        let inquiries = Inquiries::default();
        let senders: Vec<_> = (0..ABANDONED_MAX).map(|_| ask_silent(&inquiries).1).collect();
        let none = ask_all(&inquiries, &[1]);
        assert!(none.found.is_empty() && none.missing.is_some());
        drop(senders);
    }

    #[test]
    fn a_failed_thread_is_reported() {
        let answers = Inquiries::default().ask(LONG, |asker| {
            asker.send(1);
            panic!("a bug");
        });
        assert_eq!(answers.found, [1]);
        assert!(answers.missing.is_some_and(|why| why.contains("failed")));
    }
}
