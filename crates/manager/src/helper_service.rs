// SPDX-License-Identifier: MIT OR Apache-2.0
//! The helper: turns knobs for managers that run without root.
//!
//! A manager connects, opens a helper session, and says which role each set of its user's processes has. The helper has
//! no policy and looks at no display. It checks who calls (the kernel says so), that each process is that user's,
//! and it takes every value from the policy's table. The helper session ends with the connection, so also when the
//! caller is killed: then all that it changed is taken back. What a killed helper has left is taken back when the
//! next one starts.
//!
//! Root may call, the users that are named to the helper, and who sits at this machine (`seat`), since favour for one
//! user is taken from the others. Whether a user still sits there is looked at with each request and every two seconds;
//! the helper session ends with the seat. Who has it for sitting there has only processes of the session in front
//! favoured.
//!
//! Each helper session has a thread of its own. A caller that floods, sends half lines, never reads, or has the kernel
//! do slow things, holds up only itself; what it may cost is bounded in callers ([`CONVERSATIONS_MAX`],
//! [`OF_ONE_USER_MAX`]), bytes (a line's), sets and members (`bounds`), and CPU time (`budget`).

mod bounds;
mod budget;
pub(crate) mod messages;
mod seat;
mod session;

use crate::signals::TerminationSignals;
use crate::state::StateDir;
use anyhow::{Context, Result};
use messages::{HelperRequest, HelperResponse, HelperSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seat::Seats;
use session::SharedState;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tipme_control::journal::{self, JournalEvent};
use tipme_control::{Caller, ClientOf, Conversation, DEFAULT_STATE_DIR, Daemon as _, SocketListener};
use tipme_desktop::logind::Logind;
use tipme_policy::{Action, Assignment, Backend, Member, Membership, Reason, Role, SetId, Strength};
use tipme_sched::{Config, Mechanism, processes};

/// Callers at a time, with and without a helper session.
const CONVERSATIONS_MAX: usize = 16;
/// Of these, callers of one user: one with the helper session, and one who asks how the helper is.
const OF_ONE_USER_MAX: usize = 2;
/// Callers that are accepted in a row; then nobody for a moment.
const ACCEPTED_MAX: usize = 64;
/// Journals of dead predecessors that are looked at.
const JOURNALS_MAX: usize = 4_096;
/// How long the helper may take to say how it is.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How to help.
#[derive(Clone, Debug)]
pub struct HelperOptions {
    /// For the socket and the journals; `None`: `/run/tipme`.
    pub dir: Option<PathBuf>,
    /// Users who may call, besides root and who sits at the machine.
    pub allowed: Vec<u32>,
}

/// Serves managers until SIGINT or SIGTERM. Prints a line that starts with `helping` once it is ready. Whatever
/// was changed is taken back before it returns.
///
/// # Errors
/// Where the user's rights or another helper forbid it; the message names the remedy.
pub fn help(options: &HelperOptions) -> Result<()> {
    let signals = TerminationSignals::catch()?;
    let dir = options.dir.clone().unwrap_or_else(|| DEFAULT_STATE_DIR.into());
    let state = StateDir::choose(Some(&dir));
    state.make()?;
    let mut listener = SocketListener::bind::<HelperSocket>(&dir.join(HelperSocket::SOCKET))?;
    let shared = SharedState {
        seats: Seats { logind: Logind::default(), proc: "/proc".into() },
        allowed: options.allowed.clone(),
        journals: dir.join("sessions"),
        sessions: AtomicUsize::new(0),
        budgets: Mutex::default(),
    };
    StateDir::choose(Some(&shared.journals)).make()?;
    restore_dead(&shared);
    let own = favour_itself(&shared);
    let mut callers = HelperConnections { shared: Arc::new(shared), open: Vec::new() };
    let words = format!("helping managers at {}", dir.join(HelperSocket::SOCKET).display());
    journal::info(words).event(JournalEvent::Helping).tell();
    while !signals.have_come() {
        wait(&listener, &signals)?;
        callers.admit(&mut listener);
    }
    callers.end();
    drop(own);
    Ok(())
}

/// Whether a helper answers, in words for people.
///
/// # Errors
/// Why none does, and the remedy.
pub fn ask_helper(dir: Option<&Path>) -> Result<String, String> {
    let client = ClientOf::<HelperSocket>::new(dir.unwrap_or(Path::new(DEFAULT_STATE_DIR))).with_timeout(TIMEOUT);
    match client.call(&HelperRequest::Status) {
        Ok(HelperResponse::Status(status)) => Ok(format!("answers: pid {}, sessions: {}", status.pid, status.sessions)),
        Ok(_) => Err("the helper answered with something else; restart it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Holds any actions against the bounds of a helper session, more than once.
pub(crate) fn admit_any(actions: Vec<Action>) {
    let mut bounds = bounds::MemberCounts::default();
    drop((bounds.admit(actions.clone()), bounds.admit(actions)));
}

/// Waits for a caller or a signal.
fn wait(listener: &SocketListener, signals: &TerminationSignals) -> Result<()> {
    let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
    fds.extend(listener.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let due = listener.deadline().map(|due| due.saturating_duration_since(Instant::now()));
    let timeout = due.and_then(|due| Timespec::try_from(due).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for callers"),
    }
}

/// Those who have connected.
struct HelperConnections {
    shared: Arc<SharedState>,
    open: Vec<OpenConversation>,
}

/// A conversation in its thread.
struct OpenConversation {
    uid: u32,
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl HelperConnections {
    fn admit(&mut self, listener: &mut SocketListener) {
        let now = Instant::now();
        for _ in 0..ACCEPTED_MAX {
            let Some((stream, caller)) = listener.accept(now) else { return };
            self.open.retain(|open| !open.thread.is_finished());
            match self.refusal(caller) {
                None => self.begin(stream, caller),
                Some(why) => {
                    Conversation::<HelperSocket>::new(stream, caller).answer(&HelperResponse::Error(why));
                }
            }
        }
        listener.rest(now);
    }

    fn refusal(&self, caller: Caller) -> Option<String> {
        if !self.shared.admits(caller.uid) {
            return Some(HelperSocket::not_allowed(caller.uid));
        }
        let of_user = self.open.iter().filter(|open| open.uid == caller.uid).count();
        let full = self.open.len() >= CONVERSATIONS_MAX || of_user >= OF_ONE_USER_MAX;
        full.then(|| format!("the helper has too many callers; user {} has {of_user} of them", caller.uid))
    }

    /// Gives a caller its thread. Where there is none to be had, the connection is closed.
    fn begin(&mut self, stream: UnixStream, caller: Caller) {
        let (shared, Ok(other)) = (Arc::clone(&self.shared), stream.try_clone()) else { return };
        let serve = move || session::serve(Conversation::new(stream, caller), &shared);
        if let Ok(thread) = std::thread::Builder::new().name(format!("session-{}", caller.uid)).spawn(serve) {
            self.open.push(OpenConversation { uid: caller.uid, stream: other, thread });
        }
    }

    /// Ends all conversations, and waits until everything is taken back.
    fn end(self) {
        for open in &self.open {
            // One that is closed already needs no ending.
            open.stream.shutdown(Shutdown::Both).ok();
        }
        for open in self.open {
            if open.thread.join().is_err() {
                journal::warning(format!("the helper session of user {} ended with an error", open.uid)).tell();
            }
        }
    }
}

/// Takes back what dead predecessors have left, and removes journals that say nothing any more.
fn restore_dead(shared: &SharedState) {
    let entries = std::fs::read_dir(&shared.journals).into_iter().flatten().flatten().take(JOURNALS_MAX);
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".journal"));
        let Some(uid) = name.and_then(|name| name.split('.').next()?.parse::<u32>().ok()) else { continue };
        let owner = if name.is_some_and(|name| name.ends_with(".server")) { 0 } else { uid };
        match Mechanism::open(config(shared, path.clone(), owner)) {
            Ok((_, restored)) if restored.failed > 0 || restored.unreadable > 0 => {
                crate::daemon::tell_restored("a helper that was killed", &restored.into());
            }
            Ok((mechanism, _)) => {
                drop(mechanism);
                // What stays is read again at the next start.
                std::fs::remove_file(&path).ok();
            }
            Err(error) => journal::warning(error).tell(),
        }
    }
}

/// The helper belongs to what every answer needs: without it no favour goes with the focus. Threads inherit it.
fn favour_itself(shared: &SharedState) -> Option<Mechanism> {
    let who = processes::identity(&shared.seats.proc, std::process::id())?;
    let own = rustix::process::geteuid().as_raw();
    let config = Config { under: Some(who), ..config(shared, shared.journals.join("helper.journal"), own) };
    let (mut mechanism, _) = Mechanism::open(config).ok()?;
    let members = vec![Member { who, because: Membership::Client }];
    let (role, reason) = (Role::Core, Reason::Session);
    mechanism.apply(&[Action::Assign(Assignment { set: SetId(who), role, reason, faded: 0.0, members })]);
    Some(mechanism)
}

fn config(shared: &SharedState, journal: PathBuf, owner: u32) -> Config {
    Config {
        backend: Backend::Nice,
        strength: Strength::Normal,
        proc: shared.seats.proc.clone(),
        cgroup: None,
        journal,
        owner: Some(owner),
        under: None,
    }
}
