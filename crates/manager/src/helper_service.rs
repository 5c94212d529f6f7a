// SPDX-License-Identifier: MIT OR Apache-2.0
//! The helper: applies knobs for managers that run without root.
//!
//! A manager connects, opens a helper session, and assigns a role to each set of its user's
//! processes. The helper has no policy and follows no display. It checks the caller's identity
//! (peer credentials of the kernel) and the owner of each process, and takes every value from the
//! policy's table. The helper session ends with the connection, also if the caller is killed; the
//! helper then restores all its changes. Leftovers of a killed helper are restored when the next
//! one starts.
//!
//! Callers must be root, a user named to the helper, or a user present at this machine (`seat`),
//! since favour for one user is taken from the others. The helper checks the user's presence with
//! each request and every two seconds; the helper session ends when the user loses the seat. For a
//! user admitted by presence, only processes of the active session are favoured.
//!
//! Each helper session has a thread of its own. A caller that floods, sends partial lines, never
//! reads, or makes the kernel do slow work delays only itself. Its cost is bounded in callers
//! ([`CONVERSATIONS_MAX`], [`OF_ONE_USER_MAX`]), bytes (of a line), sets and members (`bounds`),
//! and CPU time (`budget`).

mod bounds;
mod budget;
pub(crate) mod messages;
mod seat;
mod session;

use crate::state::StateDir;
use anyhow::{Context, Result};
use messages::{HelperRequest, HelperResponse, HelperSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seat::Seats;
use session::SharedState;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tipme_control::journal::{self, JournalEvent};
use tipme_control::life::{SIGINT, SIGTERM, SignalStream};
use tipme_control::{
    Caller, ClientOf, Conversation, DEFAULT_STATE_DIR, Daemon as _, SocketListener,
};
use tipme_desktop::logind::Logind;
use tipme_policy::{
    Action, Assignment, Backend, Member, Membership, Reason, Role, SetId, Strength,
};
use tipme_sched::{Config, Mechanism, processes};

/// Maximum number of concurrent callers, with and without a helper session.
const CONVERSATIONS_MAX: usize = 16;
/// Maximum number of concurrent callers of one user: one with the helper session, and one that
/// queries the status.
const OF_ONE_USER_MAX: usize = 2;
/// Maximum number of callers accepted in a row before a pause.
const ACCEPTED_MAX: usize = 64;
/// Maximum number of leftover journals to read.
const JOURNALS_MAX: usize = 4_096;
/// Timeout of a status request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Options of the helper.
#[derive(Clone, Debug)]
pub struct HelperOptions {
    /// Folder of the socket and the journals; `None` selects `/run/tipme`.
    pub dir: Option<PathBuf>,
    /// Users admitted in addition to root and users present at the machine.
    pub allowed: Vec<u32>,
}

/// Serves managers until SIGINT or SIGTERM. Prints a line that starts with `helping` once it is
/// ready, and restores all changes before it returns.
///
/// # Errors
/// Fails if the user's privileges or another helper forbid it; the message names the remedy.
pub fn help(options: &HelperOptions) -> Result<()> {
    let signals = SignalStream::catch(&[SIGINT, SIGTERM]).context("cannot catch signals")?;
    let dir = options.dir.clone().unwrap_or_else(|| DEFAULT_STATE_DIR.into());
    let state = StateDir::choose(Some(&dir));
    state.make()?;
    let mut listener = SocketListener::bind::<HelperSocket>(&dir.join(HelperSocket::SOCKET))?;
    let shared = SharedState {
        seats: Seats { logind: Logind::default(), proc: "/proc".into() },
        allowed: options.allowed.clone(),
        journals: dir.join("sessions"),
        sessions: Arc::default(),
        budgets: Mutex::default(),
    };
    StateDir::choose(Some(&shared.journals)).make()?;
    restore_dead(&shared);
    let own = favour_itself(&shared);
    let mut callers = HelperConnections { shared: Arc::new(shared), open: Vec::new() };
    let words = format!("helping managers at {}", dir.join(HelperSocket::SOCKET).display());
    journal::info(words).event(JournalEvent::Helping).tell();
    while signals.arrived().is_empty() {
        wait(&listener, &signals)?;
        callers.admit(&mut listener);
    }
    callers.end();
    drop(own);
    Ok(())
}

/// Queries the helper's status, in words for people.
///
/// # Errors
/// Returns the reason why none answers, and the remedy.
pub fn ask_helper(dir: Option<&Path>) -> Result<String, String> {
    let client = ClientOf::<HelperSocket>::new(dir.unwrap_or(Path::new(DEFAULT_STATE_DIR)))
        .with_timeout(TIMEOUT);
    match client.call(&HelperRequest::Status) {
        Ok(HelperResponse::Status(status)) => {
            Ok(format!("answers: pid {}, sessions: {}", status.pid, status.sessions))
        }
        Ok(_) => Err("unexpected answer from the helper; restart it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks actions against the bounds of a helper session, twice.
pub(crate) fn admit_any(actions: Vec<Action>) {
    let mut bounds = bounds::MemberCounts::default();
    drop((bounds.admit(actions.clone()), bounds.admit(actions)));
}

/// Waits for a caller or a signal.
fn wait(listener: &SocketListener, signals: &SignalStream) -> Result<()> {
    let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
    fds.extend(listener.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let due = listener.deadline().map(|due| due.saturating_duration_since(Instant::now()));
    let timeout = due.and_then(|due| Timespec::try_from(due).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for callers"),
    }
}

/// Connected callers.
struct HelperConnections {
    shared: Arc<SharedState>,
    open: Vec<OpenConversation>,
}

/// A conversation with its thread.
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
                    Conversation::<HelperSocket>::new(stream, caller)
                        .answer(&HelperResponse::Error(why));
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
        full.then(|| {
            format!("the helper has too many callers; user {} has {of_user} of them", caller.uid)
        })
    }

    /// Starts a thread for a caller. Closes the connection if no thread is available.
    fn begin(&mut self, stream: UnixStream, caller: Caller) {
        let (shared, Ok(other)) = (Arc::clone(&self.shared), stream.try_clone()) else { return };
        let thread = std::thread::Builder::new().name(format!("session-{}", caller.uid));
        if let Ok(thread) =
            thread.spawn(move || session::serve(Conversation::new(stream, caller), &shared))
        {
            self.open.push(OpenConversation { uid: caller.uid, stream: other, thread });
        }
    }

    /// Ends all conversations, and waits until everything is restored.
    fn end(self) {
        for open in &self.open {
            // A connection that is already closed needs no shutdown.
            open.stream.shutdown(Shutdown::Both).ok();
        }
        for open in self.open {
            if open.thread.join().is_err() {
                journal::warning(format!("the helper session of user {} has failed", open.uid))
                    .tell();
            }
        }
    }
}

/// Restores leftovers of dead predecessors, and removes empty journals.
fn restore_dead(shared: &SharedState) {
    let entries =
        std::fs::read_dir(&shared.journals).into_iter().flatten().flatten().take(JOURNALS_MAX);
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".journal"));
        let Some(name) = name else { continue };
        let Some(Ok(uid)) = name.split('.').next().map(str::parse::<u32>) else { continue };
        let owner = if name.ends_with(".server") { 0 } else { uid };
        match Mechanism::open(config(shared, path.clone(), owner)) {
            Ok((_, restored)) if restored.failed > 0 || restored.unreadable > 0 => {
                crate::daemon::report_restored("a killed helper", &restored);
            }
            Ok((mechanism, _)) => {
                drop(mechanism);
                // The remaining journals are read again at the next start.
                std::fs::remove_file(&path).ok();
            }
            Err(error) => journal::warning(error).tell(),
        }
    }
}

/// Favours the helper itself as part of the core: no favour follows the focus without it. Threads
/// inherit the favour.
fn favour_itself(shared: &SharedState) -> Option<Mechanism> {
    let who = processes::identity(&shared.seats.proc, std::process::id())?;
    let own = rustix::process::geteuid().as_raw();
    let config =
        Config { under: Some(who), ..config(shared, shared.journals.join("helper.journal"), own) };
    let (mut mechanism, _) = Mechanism::open(config).ok()?;
    let members = vec![Member { who, because: Membership::Client }];
    let (role, reason) = (Role::Core, Reason::Session);
    mechanism.apply(&[Action::Assign(Assignment {
        set: SetId(who),
        role,
        reason,
        faded: 0.0,
        members,
    })]);
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
