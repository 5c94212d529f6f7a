// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user's helper session: a mechanism for the processes of that user, for the lifetime of the
//! connection.

use super::bounds::MemberCounts;
use super::budget::CpuBudget;
use super::messages::{
    AppliedCounts, Explained, HelperRequest, HelperResponse, HelperSocket, HelperStatus, Opened,
    Terms,
};
use super::seat::Seats;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tipme_control::{Caller, Conversation, Daemon as _, READ_TIMEOUT, Received};
use tipme_policy::{Action, Backend, Identity, Role, Strength};
use tipme_sched::{Config, Mechanism, MechanismError, Offer, Restored, processes};

/// Backends available to a helper session: those that change only processes and their sessions.
/// Groups and units would be shared with other helper sessions, and users set the weights of their
/// own groups without help.
const BACKENDS: [Backend; 2] = [Backend::Autogroup, Backend::Nice];

/// Number of attempts to open a user's journal that is still in use, and the pause between them.
const BUSY_TRIES: usize = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Interval of seat checks while a caller sends no request.
const SEAT_EVERY: Duration = Duration::from_secs(2);

/// State shared by all helper sessions.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) seats: Seats,
    /// Users admitted regardless of presence.
    pub(super) allowed: Vec<u32>,
    /// Folder of the journals.
    pub(super) journals: PathBuf,
    /// Held once by each open helper session.
    pub(super) sessions: Arc<()>,
    /// Budget of each user: reconnecting does not reset it. The number of admitted users is small.
    pub(super) budgets: Mutex<BTreeMap<u32, CpuBudget>>,
}

impl SharedState {
    /// Path of the journal of changes made for a user.
    pub(super) fn journal(&self, owner: u32) -> PathBuf {
        self.journals.join(format!("{owner}.journal"))
    }

    /// Path of the journal for a user's display server that runs as root.
    pub(super) fn server_journal(&self, owner: u32) -> PathBuf {
        self.journals.join(format!("{owner}.server.journal"))
    }

    /// Returns `true` if a user is admitted regardless of presence.
    fn is_exempt(&self, uid: u32) -> bool {
        uid == 0 || self.allowed.contains(&uid)
    }

    /// Returns `true` if a user is admitted now.
    pub(super) fn admits(&self, uid: u32) -> bool {
        self.is_exempt(uid) || self.seats.has(uid)
    }

    /// Charges CPU time to a user; returns the time to wait until the debt is paid off.
    fn spend(&self, uid: u32, cpu: Duration) -> Duration {
        let now = Instant::now();
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.entry(uid).or_insert(CpuBudget(now)).spend(cpu, now)
    }
}

/// Serves a caller until it disconnects, violates the protocol, or does not read; then restores
/// everything.
pub(super) fn serve(mut caller: Conversation<HelperSocket>, shared: &SharedState) {
    let (uid, mut session, mut spent) = (caller.caller().uid, None, Duration::ZERO);
    loop {
        let debt = shared.spend(uid, spent);
        if !debt.is_zero() && !caller.pause(debt) {
            break;
        }
        let begun = thread_time();
        if !serve_one(&mut caller, &mut session, shared) {
            break;
        }
        spent = thread_time().saturating_sub(begun);
    }
    let begun = thread_time();
    drop(session);
    shared.spend(uid, thread_time().saturating_sub(begun));
}

/// Answers one request. Returns `false` if the conversation is over.
fn serve_one<'a>(
    caller: &mut Conversation<HelperSocket>,
    session: &mut Option<Session<'a>>,
    shared: &'a SharedState,
) -> bool {
    // A caller without a helper session must send its request soon.
    let received = caller.receive(Some(if session.is_none() { READ_TIMEOUT } else { SEAT_EVERY }));
    let uid = caller.caller().uid;
    match received {
        Received::Gone => false,
        // The seat may have passed to another user: then everything is restored.
        _ if !shared.admits(uid) => {
            caller.answer(&HelperResponse::Error(HelperSocket::not_allowed(uid)));
            false
        }
        Received::Nothing if session.is_some() => true,
        Received::Nothing => {
            caller.answer(&HelperResponse::Error("no request came in time".to_owned()));
            false
        }
        Received::Bad(why) => {
            caller.answer(&HelperResponse::Error(why));
            false
        }
        Received::Request(request) => {
            let response = answer(session, request, caller.caller(), shared);
            caller.answer(&response.unwrap_or_else(HelperResponse::Error))
        }
    }
}

fn answer<'a>(
    session: &mut Option<Session<'a>>,
    request: HelperRequest,
    caller: Caller,
    shared: &'a SharedState,
) -> Result<HelperResponse, String> {
    match (request, session.as_mut()) {
        (HelperRequest::Status, _) => {
            let sessions = Arc::strong_count(&shared.sessions) - 1;
            Ok(HelperResponse::Status(HelperStatus { pid: std::process::id(), sessions }))
        }
        (HelperRequest::Open(terms), None) => {
            let (opened, answer) =
                Session::open(shared, caller.uid, owner(caller, &terms)?, &terms)?;
            *session = Some(opened);
            Ok(HelperResponse::Opened(answer))
        }
        (request, Some(session)) => Ok(session.answer(request)),
        (_, None) => Err("there is no helper session; open one first".to_owned()),
    }
}

/// Returns the owner of the processes to change: the caller, or any user for root.
fn owner(caller: Caller, terms: &Terms) -> Result<u32, String> {
    match terms.owner {
        Some(owner) if owner != caller.uid && caller.uid != 0 => {
            Err(format!("user {} may not have the processes of user {owner} changed", caller.uid))
        }
        owner => Ok(owner.unwrap_or(caller.uid)),
    }
}

/// Fields are dropped in this order: the helper session counts as open until everything is
/// restored.
struct Session<'a> {
    /// First: a caller that finds the other journal free finds this one free as well.
    server: Option<Server>,
    own: Mechanism,
    bounds: MemberCounts,
    shared: &'a SharedState,
    caller: u32,
    owner: u32,
    _counted: Arc<()>,
}

/// The display server, which runs as root and is changed in addition.
struct Server {
    who: Identity,
    mechanism: Mechanism,
}

impl Session<'_> {
    fn open<'a>(
        shared: &'a SharedState,
        caller: u32,
        owner: u32,
        terms: &Terms,
    ) -> Result<(Session<'a>, Opened), String> {
        let (backend, mut missing) =
            choose(&tipme_sched::plain_offers(&shared.seats.proc, None), terms.backend)?;
        let config = Config {
            backend,
            strength: terms.strength,
            proc: shared.seats.proc.clone(),
            cgroup: None,
            journal: shared.journal(owner),
            owner: Some(owner),
            under: terms.under,
        };
        let (own, mut restored) = open_soon(&config).map_err(|error| refusal(owner, &error))?;
        let server = terms.server.and_then(|who| match open_server(shared, owner, who, &config) {
            Ok((mechanism, more)) => {
                restored = total(restored, more);
                Some(Server { who, mechanism })
            }
            Err(why) => {
                missing.push(format!("the display server is not favoured: {why}"));
                None
            }
        });
        let bounds = MemberCounts::default();
        let session = Session {
            server,
            own,
            bounds,
            shared,
            caller,
            owner,
            _counted: Arc::clone(&shared.sessions),
        };
        Ok((session, Opened { backend, missing, restored }))
    }

    fn answer(&mut self, request: HelperRequest) -> HelperResponse {
        match request {
            HelperRequest::Apply(actions) => HelperResponse::Applied(self.apply(actions)),
            HelperRequest::Strength(strength) => {
                HelperResponse::Applied(self.set_strength(strength))
            }
            HelperRequest::Explain { who } => HelperResponse::Explained(self.explain(who)),
            HelperRequest::Restore => HelperResponse::Restored(self.restore()),
            HelperRequest::Status | HelperRequest::Open(_) => {
                HelperResponse::Error("this connection has its helper session already".to_owned())
            }
        }
    }

    fn apply(&mut self, actions: Vec<Action>) -> AppliedCounts {
        let (actions, refused) = self.bounds.admit(actions);
        let (of_server, own): (Vec<Action>, Vec<Action>) = actions
            .into_iter()
            .partition(|action| self.server.as_ref().is_some_and(|server| server.is_meant(action)));
        let (own, behind) = self.in_front(own);
        let applied = AppliedCounts { skipped: refused + behind, ..AppliedCounts::default() }
            .and(self.own.apply(&own).into());
        applied.and(self.apply_to_server(&of_server))
    }

    /// Removes members to favour that do not belong to the active session; also returns their
    /// number. The helper cannot know the focus, but it is never on a process that the user runs
    /// elsewhere.
    fn in_front(&self, mut actions: Vec<Action>) -> (Vec<Action>, usize) {
        let mut behind = 0;
        if !self.shared.is_exempt(self.caller) {
            for action in &mut actions {
                let Action::Assign(assignment) = action else { continue };
                if !assignment.role.is_favoured() {
                    continue;
                }
                let before = assignment.members.len();
                let seats = &self.shared.seats;
                assignment.members.retain(|member| seats.is_in_front(self.owner, member.who.pid));
                behind += before - assignment.members.len();
            }
        }
        (actions, behind)
    }

    /// The owner of the display server may have changed; the server is favoured or left alone,
    /// nothing else.
    fn apply_to_server(&mut self, actions: &[Action]) -> AppliedCounts {
        let Some(server) = self.server.as_mut() else { return AppliedCounts::default() };
        let refused = AppliedCounts { skipped: actions.len(), ..AppliedCounts::default() };
        if !actions.iter().all(Server::is_favour) {
            return refused;
        }
        if !actions.is_empty() && self.shared.seats.may_favour(self.owner, server.who).is_err() {
            server.mechanism.restore();
            return refused;
        }
        server.mechanism.apply(actions).into()
    }

    fn set_strength(&mut self, strength: Strength) -> AppliedCounts {
        let server =
            self.server.as_mut().map(|server| server.mechanism.set_strength(strength).into());
        AppliedCounts::from(self.own.set_strength(strength)).and(server.unwrap_or_default())
    }

    fn explain(&self, who: Identity) -> Option<Explained> {
        let server = self.server.as_ref().and_then(|server| server.mechanism.explain(who));
        let found = [self.own.explain(who), server].into_iter().flatten();
        found.max_by_key(|found| found.role.is_some()).map(Explained::from)
    }

    fn restore(&mut self) -> Restored {
        self.bounds.clear();
        let server = self.server.as_mut().map(|server| server.mechanism.restore());
        total(self.own.restore(), server.unwrap_or_default())
    }
}

/// Returns the sum of two counts, for the reply to a manager.
fn total(own: Restored, server: Restored) -> Restored {
    Restored {
        restored: own.restored + server.restored,
        failed: own.failed + server.failed,
        unreadable: own.unreadable + server.unreadable,
        ..own
    }
}

/// Opens a mechanism. If its journal is in use, a helper session may be just ending, so this
/// retries.
fn open_soon(config: &Config) -> Result<(Mechanism, Restored), MechanismError> {
    for _ in 0..BUSY_TRIES {
        match Mechanism::open(config.clone()) {
            Err(MechanismError::Busy { .. }) => std::thread::sleep(BUSY_PAUSE),
            other => return other,
        }
    }
    Mechanism::open(config.clone())
}

impl Server {
    fn is_meant(&self, action: &Action) -> bool {
        match action {
            Action::Assign(assignment) => assignment.set.0 == self.who,
            Action::Forget(set) => set.0 == self.who,
            Action::Memory(_) => false,
        }
    }

    fn is_favour(action: &Action) -> bool {
        !matches!(action, Action::Assign(assignment) if assignment.role != Role::Core)
    }
}

/// Opens a mechanism for the display server alone, if it may be favoured for this user.
fn open_server(
    shared: &SharedState,
    owner: u32,
    who: Identity,
    own: &Config,
) -> Result<(Mechanism, Restored), String> {
    shared.seats.may_favour(owner, who)?;
    if own.under.is_some_and(|top| !processes::is_below(&own.proc, who, top)) {
        return Err("it is not below the process to which changes are restricted".to_owned());
    }
    let journal = shared.server_journal(owner);
    let config = Config { journal, owner: Some(0), under: Some(who), ..own.clone() };
    open_soon(&config).map_err(|error| error.to_string())
}

/// Chooses the requested backend, or else the best usable one; also returns its limits.
fn choose(offers: &[Offer], asked: Option<Backend>) -> Result<(Backend, Vec<String>), String> {
    if let Some(asked) = asked.filter(|asked| !BACKENDS.contains(asked)) {
        return Err(format!(
            "the helper has no backend {asked}; use autogroup or nice, or run the manager as root"
        ));
    }
    let mut faults = Vec::new();
    for offer in offers.iter().filter(|offer| BACKENDS.contains(&offer.backend)) {
        match &offer.unusable {
            _ if asked.is_some_and(|asked| asked != offer.backend) => {}
            None => return Ok((offer.backend, offer.limits.clone())),
            Some(why) => faults.push(why.as_str()),
        }
    }
    let why = faults.first().copied().unwrap_or_default();
    Err(format!("the helper can change nothing: {why}"))
}

fn refusal(owner: u32, error: &MechanismError) -> String {
    match error {
        MechanismError::Busy { .. } => {
            format!("user {owner} has a helper session already; stop the manager that is running")
        }
        error => error.to_string(),
    }
}

/// CPU time of this thread.
fn thread_time() -> Duration {
    Duration::from_nanos(crate::own_cpu::thread_time().0)
}
