// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known X servers, with the opcodes of their extensions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tipme_desktop::{DisplayTarget, server};
use tipme_record::Pid;
use tipme_record::incident::Display;

/// Maximum time for one server to answer; a hung server must not delay an incident.
const TIMEOUT: Duration = Duration::from_millis(150);

/// Maximum time for all servers together: any user can offer a display that does not answer.
const TIMEOUT_FOR_ALL: Duration = Duration::from_secs(2);

/// Delay before an unknown server is asked again, doubled after each attempt up to the maximum.
const ASK_AGAIN: Duration = Duration::from_secs(10);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(640);

/// Maximum number of servers remembered, both known ones and those asked in vain.
const SERVERS_MAX: usize = 64;

/// Displays known so far. Servers are asked at the start and when an incident is sealed, an unknown
/// one when a user presses a key or button there.
#[derive(Clone, Default)]
pub(crate) struct Displays(Arc<Mutex<KnownDisplays>>);

#[derive(Default)]
struct KnownDisplays {
    all: Vec<Display>,
    /// Changed since it was last fetched.
    is_news: bool,
    asked: AskedServers,
}

/// Time of the next permitted attempt and the wait before it, by display number and listening
/// process.
#[derive(Default)]
struct AskedServers(HashMap<(u32, Pid), (Instant, Duration)>);

impl Displays {
    /// Asks all servers: a new process may have replaced a known one.
    pub(crate) fn refresh(&self) -> Vec<Display> {
        let known = self.known();
        let until = Instant::now() + TIMEOUT_FOR_ALL;
        let found = server::find().into_iter().filter_map(|display| look(&known, display, until));
        let found: Vec<Display> = found.collect();
        self.lock().set(found.clone());
        found
    }

    /// Asks a server in the background, unless it was asked in vain recently.
    pub(crate) fn ask(&self, display: u32, listener: Pid) {
        if !self.lock().asked.may_be_asked((display, listener), Instant::now()) {
            return;
        }
        let displays = self.clone();
        let thread = std::thread::Builder::new().name("display".to_owned()).spawn(move || {
            if let Ok(described) = describe(display) {
                displays.lock().add(described);
            }
        });
        // If there is no thread, the next call asks.
        thread.ok();
    }

    /// Returns the known displays if they have changed since the last call.
    pub(crate) fn news(&self) -> Option<Vec<Display>> {
        let mut mine = self.lock();
        std::mem::take(&mut mine.is_news).then(|| mine.all.clone())
    }

    /// Returns the displays found so far.
    pub(crate) fn known(&self) -> Vec<Display> {
        self.lock().all.clone()
    }

    fn lock(&self) -> MutexGuard<'_, KnownDisplays> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownDisplays {
    fn set(&mut self, all: Vec<Display>) {
        self.all = all;
        self.is_news = true;
    }

    fn add(&mut self, display: Display) {
        let others = self
            .all
            .drain(..)
            .filter(|other| other.display != display.display)
            .take(SERVERS_MAX - 1);
        let mut all: Vec<Display> = others.collect();
        all.push(display);
        self.set(all);
    }
}

impl AskedServers {
    fn may_be_asked(&mut self, server: (u32, Pid), now: Instant) -> bool {
        let wait = match self.0.get(&server) {
            Some((next, _)) if now < *next => return false,
            Some((_, wait)) => (2 * *wait).min(ASK_AGAIN_MAX),
            None => ASK_AGAIN,
        };
        if self.0.len() >= SERVERS_MAX {
            self.0.retain(|_, (next, _)| now < *next);
        }
        if self.0.len() >= SERVERS_MAX {
            return false;
        }
        self.0.insert(server, (now + wait, wait));
        true
    }
}

fn describe(display: u32) -> Result<Display, tipme_desktop::DisplayError> {
    server::describe(&DisplayTarget { timeout: TIMEOUT, ..DisplayTarget::new(display) })
}

/// Describes a display; one that does not answer in time keeps its earlier description.
fn look(known: &[Display], display: u32, until: Instant) -> Option<Display> {
    let described = if Instant::now() < until { describe(display).ok() } else { None };
    described.or_else(|| known.iter().find(|old| old.display == display).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(display: u32, server_pid: u32) -> Display {
        Display { display, server_pid, ..Display::default() }
    }

    #[test]
    fn found_displays_are_news_once() {
        let displays = Displays::default();
        assert!(displays.news().is_none());
        displays.lock().set(vec![display(0, 5), display(1, 6)]);
        assert_eq!((displays.news(), displays.news()), (Some(displays.known()), None));
        displays.lock().add(display(0, 7));
        assert_eq!(displays.news(), Some(vec![display(1, 6), display(0, 7)]));
        (2..200).for_each(|number| displays.lock().add(display(number, 8)));
        assert_eq!(displays.known().len(), SERVERS_MAX);
    }

    #[test]
    fn a_silent_server_is_asked_ever_less_and_blocks_no_other() {
        let (mut asked, begin) = (AskedServers::default(), Instant::now());
        let times: Vec<u64> = (0..3_000).filter(|s| may_ask(&mut asked, begin, 1, *s)).collect();
        assert_eq!(times, [0, 10, 30, 70, 150, 310, 630, 1_270, 1_910, 2_550]);
        assert!(may_ask(&mut asked, begin, 2, 2_551) && !may_ask(&mut asked, begin, 2, 2_552));
        let others = (10..200).filter(|server| may_ask(&mut asked, begin, *server, 4_000)).count();
        assert_eq!(others, SERVERS_MAX, "of those before none waits any more");
        assert!(may_ask(&mut asked, begin, 3, 4_011));
    }

    fn may_ask(asked: &mut AskedServers, begin: Instant, server: u32, seconds: u64) -> bool {
        asked.may_be_asked((server, Pid(3)), begin + Duration::from_secs(seconds))
    }
}
