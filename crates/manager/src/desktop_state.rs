// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the desktop: windows, their owners and the focus, and the part of it known to the
//! policy.

use crate::budget::LookBudget;
use crate::family::{Family, Terminal};
use crate::own_cpu::thread_time;
use crate::terminal_servers::{ServerAnswer, TerminalServers};
use crate::trust::{ClaimContext, ClaimRefusal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tipme_desktop::attention::{
    AttentionChange, HELPERS_MAX, WINDOWS_MAX, WindowOwner, WindowState,
};
use tipme_policy::{DesktopEvent, Identity, Member, Membership, SetId};
use tipme_record::Nanos;
use tipme_sched::LoadFile;
use tipme_sched::processes::{self, Stat};

/// Minimum time between two looks at the processes of a set.
const LOOK_PERIOD: Nanos = Nanos::from_millis(1000);
/// Maximum number of a client's foreground processes for which a terminal server is searched.
const ASKED_MAX: usize = 32;
/// Age up to which a set counts as new.
const YOUNG: Nanos = Nanos::from_millis(5_000);

/// The display's windows and the processes behind them.
pub(crate) struct DesktopState {
    proc: PathBuf,
    user: u32,
    server_knows: bool,
    server: Option<u32>,
    core: BTreeSet<u32>,
    windows: BTreeMap<u32, ClaimedWindow>,
    groups: BTreeMap<Identity, ClientGroup>,
    keyboard: FocusState,
    pointer: FocusState,
    load: LoadFile,
    budget: LookBudget,
    servers: TerminalServers,
    /// Busy processes without a set, after a look at the client above them.
    unplaced: BTreeSet<Identity>,
    pub(crate) counts: LossCounts,
}

/// Counts of dropped and refused input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LossCounts {
    /// Windows, processes and hints beyond the bounds.
    pub(crate) dropped: u64,
    pub(crate) disbelieved: u64,
}

struct ClaimedWindow {
    claim: Option<WindowOwner>,
    owner: Result<Identity, ClaimRefusal>,
    helper_pids: Vec<u32>,
    /// The helpers as they were when the window listed them: a reused PID is another process.
    helpers: Vec<Identity>,
    visible: bool,
}

/// The processes of one client, as last reported to the policy.
struct ClientGroup {
    sets: BTreeMap<SetId, Vec<Member>>,
    visible: bool,
    terminals: Vec<Terminal>,
    /// Time of the next search for terminal servers of its foreground.
    ask_again: Option<Nanos>,
    /// Time at which it appeared.
    first_seen: Nanos,
    looked: Nanos,
    /// Last PID on the machine at the last look, and at the one before.
    last_pid: [Option<u64>; 2],
}

/// A window with a focus, and the set that was reported for it.
#[derive(Default)]
struct FocusState {
    window: Option<u32>,
    reported: Option<SetId>,
}

impl DesktopState {
    /// Creates an empty desktop of a user. `server_knows` is `true` if the display server
    /// identifies the processes of its clients; `server` is the process that accepts connections of
    /// clients, if that is visible.
    pub(crate) fn new(
        proc: PathBuf,
        user: u32,
        server_knows: bool,
        server: Option<u32>,
    ) -> DesktopState {
        DesktopState {
            load: LoadFile::open(&proc),
            budget: LookBudget::default(),
            servers: TerminalServers::default(),
            unplaced: BTreeSet::new(),
            proc,
            user,
            server_knows,
            server,
            core: BTreeSet::new(),
            windows: BTreeMap::new(),
            groups: BTreeMap::new(),
            keyboard: FocusState::default(),
            pointer: FocusState::default(),
            counts: LossCounts::default(),
        }
    }

    /// Makes these processes part of the core, outside of all sets.
    pub(crate) fn set_core(&mut self, core: &[Identity]) -> Vec<DesktopEvent> {
        self.core = core.iter().map(|process| process.pid).collect();
        let mut freed = BTreeSet::new();
        for window in self.windows.values_mut() {
            if let Ok(owner) = window.owner
                && self.core.contains(&owner.pid)
            {
                window.owner = Err(ClaimRefusal::Core);
                freed.insert(owner);
            }
        }
        freed.into_iter().flat_map(|client| self.forget(client)).collect()
    }

    /// Turns changes of the display into events for the policy. A focus follows the windows that
    /// came with it.
    pub(crate) fn take(&mut self, changes: Vec<AttentionChange>, now: Nanos) -> Vec<DesktopEvent> {
        let mut touched = BTreeSet::new();
        // First, to make room for new windows.
        for change in &changes {
            if let AttentionChange::Gone(window) = change {
                touched.extend(self.windows.remove(window).and_then(|gone| gone.owner.ok()));
            }
        }
        for change in changes {
            match change {
                AttentionChange::Window(state) => touched.extend(self.put_window(state)),
                AttentionChange::Gone(_) => {}
                AttentionChange::Keyboard(window) => self.keyboard.window = window,
                AttentionChange::Pointer(window) => self.pointer.window = window,
            }
        }
        let mut events: Vec<DesktopEvent> =
            touched.into_iter().flat_map(|owner| self.update(owner, now)).collect();
        events.extend(self.update_focus());
        events
    }

    /// Looks at the processes of a client again, unless there can be no new ones or the budget is
    /// far overdrawn.
    pub(crate) fn refresh(&mut self, set: SetId, now: Nanos) -> Vec<DesktopEvent> {
        let last_pid = self.load.last_pid();
        let Some(group) = self.groups.get_mut(&set.0) else { return Vec::new() };
        if group.is_settled(last_pid, now) {
            group.looked = now;
            return Vec::new();
        }
        if self.budget.has_credit(now) { self.look(set.0, now) } else { Vec::new() }
    }

    /// Follows the focused client, at once if another job has come to the foreground of one of its
    /// terminals. The cheapest check is that no process was forked: [`DesktopState::follow_jobs`]
    /// finds a job that returns without a fork.
    pub(crate) fn follow(&mut self, set: SetId, now: Nanos) -> Vec<DesktopEvent> {
        let last_pid = self.load.last_pid();
        let is_settled =
            self.groups.get(&set.0).is_some_and(|group| group.is_settled(last_pid, now));
        let events = if is_settled { Vec::new() } else { self.follow_jobs(set, now) };
        if events.is_empty() && self.is_due(set, now) && self.budget.is_affordable(now) {
            return self.refresh(set, now);
        }
        events
    }

    /// Looks at the focused client if another job has come to the foreground of one of its
    /// terminals.
    pub(crate) fn follow_jobs(&mut self, set: SetId, now: Nanos) -> Vec<DesktopEvent> {
        if self.has_switched_job(set) && self.budget.has_credit(now) {
            self.look(set.0, now)
        } else {
            Vec::new()
        }
    }

    fn is_due(&self, set: SetId, now: Nanos) -> bool {
        self.groups
            .get(&set.0)
            .is_some_and(|group| now.since(group.looked) >= LOOK_PERIOD || group.asks_again(now))
    }

    /// Returns `true` if a set has just appeared, so that its programs may still be starting.
    pub(crate) fn is_young(&self, set: SetId, now: Nanos) -> bool {
        self.groups.get(&set.0).is_some_and(|group| now.since(group.first_seen) < YOUNG)
    }

    /// Returns `true` if another job has come to the foreground of one of the client's terminals.
    /// Reads one file per terminal.
    fn has_switched_job(&self, set: SetId) -> bool {
        let mut terminals = self.groups.get(&set.0).into_iter().flat_map(|group| &group.terminals);
        terminals.any(|terminal| {
            processes::foreground(&self.proc, terminal.leader) != Some(terminal.foreground)
        })
    }

    /// Looks again at the client with the oldest look, if one is due and affordable.
    pub(crate) fn refresh_stalest(&mut self, now: Nanos) -> Vec<DesktopEvent> {
        let due = self.groups.iter().filter(|(client, _)| self.is_due(SetId(**client), now));
        let stalest = due.min_by_key(|(_, group)| group.looked).map(|(client, _)| SetId(*client));
        match stalest.filter(|_| self.budget.is_affordable(now)) {
            Some(set) => self.refresh(set, now),
            None => Vec::new(),
        }
    }

    /// Looks, on credit, at the clients above processes that are in no set yet, so that a new
    /// process of a window is not taken for an unplaced one. A process that remains without a set
    /// is not looked up again while it is in the list.
    pub(crate) fn place_unplaced(
        &mut self,
        processes: &[Identity],
        now: Nanos,
    ) -> Vec<DesktopEvent> {
        let begun = thread_time();
        let placed: BTreeSet<Identity> =
            self.groups.values().flat_map(ClientGroup::processes).collect();
        let unplaced: BTreeSet<Identity> =
            processes.iter().copied().filter(|who| !placed.contains(who)).collect();
        self.unplaced.retain(|who| unplaced.contains(who));
        let new: Vec<Identity> = unplaced.difference(&self.unplaced).copied().collect();
        if new.is_empty() || !self.budget.has_credit(now) {
            return Vec::new();
        }
        let mut below: BTreeMap<Option<Identity>, Vec<Identity>> = BTreeMap::new();
        for process in new {
            below.entry(self.client_above(process)).or_default().push(process);
        }
        self.budget.spend(thread_time().since(begun), now);
        let mut events = Vec::new();
        for (client, processes) in below {
            self.unplaced.extend(processes);
            events.extend(client.into_iter().flat_map(|client| self.look(client, now)));
            // The others are looked at another time; the first is looked at in any case.
            if !self.budget.has_credit(now) {
                break;
            }
        }
        events
    }

    fn client_above(&self, process: Identity) -> Option<Identity> {
        let mut lineage = processes::lineage(&self.proc, process).map(|stat| stat.identity);
        lineage.find(|above| self.groups.contains_key(above))
    }

    /// Number of due looks that were not affordable, see [`LookBudget`].
    pub(crate) fn looks_left(&self) -> u64 {
        self.budget.left() + self.servers.left()
    }

    /// Returns the client with the keyboard focus.
    pub(crate) fn focused(&self) -> Option<SetId> {
        self.keyboard.reported
    }

    /// Returns the set of a process, and the reason for its membership.
    pub(crate) fn place(&self, pid: u32) -> Option<(SetId, Membership)> {
        let sets = self.groups.values().flat_map(|group| &group.sets);
        sets.flat_map(|(set, members)| members.iter().map(move |member| (*set, *member)))
            .find(|(_, member)| member.who.pid == pid)
            .map(|(set, member)| (set, member.because))
    }

    /// Returns the members of a client's own set.
    pub(crate) fn members(&self, set: SetId) -> Vec<Member> {
        let group = self.groups.get(&set.0);
        group.and_then(|group| group.sets.get(&set)).cloned().unwrap_or_default()
    }

    /// Returns `true` if the set is a background job of some client's terminal.
    pub(crate) fn is_job(&self, set: SetId) -> bool {
        !self.groups.contains_key(&set.0)
            && self.groups.values().any(|group| group.sets.contains_key(&set))
    }

    /// Returns the reason why a window's claim to belong to this process was refused, if there was
    /// one.
    pub(crate) fn refusal(&self, pid: u32) -> Option<ClaimRefusal> {
        let claims = self
            .windows
            .values()
            .filter(|window| window.claim.as_ref().is_some_and(|claim| claim.pid == pid));
        claims.filter_map(|window| window.owner.err()).next()
    }

    /// Records a window; returns the clients with changed sets.
    fn put_window(&mut self, state: WindowState) -> Vec<Identity> {
        if !self.windows.contains_key(&state.window) && self.windows.len() >= WINDOWS_MAX {
            self.counts.dropped += 1;
            return Vec::new();
        }
        let before = self.windows.remove(&state.window);
        let touched_before = before.as_ref().and_then(|window| window.owner.ok());
        let owner = self.owner_of(&state, before.as_ref());
        let (helper_pids, helpers) = self.helpers_of(&state, before, owner.is_ok());
        let visible = state.visible && !state.iconic;
        let window = ClaimedWindow { claim: state.owner, owner, helper_pids, helpers, visible };
        self.windows.insert(state.window, window);
        touched_before.into_iter().chain(owner.ok()).collect()
    }

    /// Returns the process of a window. It is fixed once found: the server's PID dates from the
    /// time when the client connected, and may be reused while a child holds the connection.
    fn owner_of(
        &mut self,
        state: &WindowState,
        before: Option<&ClaimedWindow>,
    ) -> Result<Identity, ClaimRefusal> {
        let same = before.filter(|window| claim_pid(&window.claim) == claim_pid(&state.owner));
        if let Some(owner) = same.and_then(|window| window.owner.ok()) {
            return Ok(owner);
        }
        let owner = self.believe(state.owner.as_ref());
        if matches!(owner, Err(why) if why != ClaimRefusal::Unknown && why != ClaimRefusal::Core)
            && same.is_none()
        {
            self.counts.disbelieved += 1;
        }
        owner
    }

    fn believe(&self, claim: Option<&WindowOwner>) -> Result<Identity, ClaimRefusal> {
        if claim.is_some_and(|claim| self.core.contains(&claim.pid)) {
            return Err(ClaimRefusal::Core);
        }
        let owner = self.trust().owner(claim, |process| self.is_client(process))?;
        let known = self
            .windows
            .values()
            .filter_map(|window| window.owner.ok())
            .find(|known| known.pid == owner.pid);
        if known.is_some_and(|known| known != owner) { Err(ClaimRefusal::Gone) } else { Ok(owner) }
    }

    fn helpers_of(
        &mut self,
        state: &WindowState,
        before: Option<ClaimedWindow>,
        owned: bool,
    ) -> (Vec<u32>, Vec<Identity>) {
        if !owned {
            return (Vec::new(), Vec::new());
        }
        let pids: Vec<u32> = state.helpers.iter().copied().take(HELPERS_MAX).collect();
        if let Some(before) = before.filter(|window| window.helper_pids == pids) {
            return (pids, before.helpers);
        }
        self.counts.dropped += (state.helpers.len() - pids.len()) as u64;
        let (helpers, refused) = self.trust().helpers(&pids);
        self.counts.disbelieved += refused;
        (pids, helpers)
    }

    fn trust(&self) -> ClaimContext<'_> {
        ClaimContext {
            proc: &self.proc,
            user: self.user,
            server_knows: self.server_knows,
            server: self.server,
        }
    }

    fn is_client(&self, process: Identity) -> bool {
        self.windows.values().any(|window| window.owner == Ok(process))
    }

    /// Reports the set of a client with changed windows. Looks at its processes only if it is new
    /// or its helpers changed.
    fn update(&mut self, client: Identity, now: Nanos) -> Vec<DesktopEvent> {
        let windows = self.windows.values().filter(|window| window.owner == Ok(client));
        let (mut there, mut visible, mut helpers) = (false, false, BTreeSet::new());
        for window in windows {
            (there, visible) = (true, visible || window.visible);
            helpers.extend(window.helpers.iter().copied());
        }
        if !there {
            return self.forget(client);
        }
        match self.groups.get_mut(&client) {
            Some(group) if group.has_helpers(&helpers) => group.show(SetId(client), visible),
            _ => self.look(client, now),
        }
    }

    fn forget(&mut self, client: Identity) -> Vec<DesktopEvent> {
        let gone = self.groups.remove(&client).into_iter().flat_map(|group| group.sets);
        gone.map(|(set, _)| DesktopEvent::Gone(set)).collect()
    }

    /// Reads the processes of a client, and reports the differences.
    fn look(&mut self, client: Identity, now: Nanos) -> Vec<DesktopEvent> {
        let (begun, last_pid) = (self.look_time(), self.load.last_pid());
        let Some(family) = self.family(client, now) else { return self.forget(client) };
        self.counts.dropped += family.dropped;
        let visible =
            self.windows.values().any(|window| window.owner == Ok(client) && window.visible);
        let mut sets: BTreeMap<SetId, Vec<Member>> =
            family.jobs.into_iter().map(|(job, members)| (SetId(job), members)).collect();
        sets.insert(SetId(client), family.members);
        let before = self.groups.remove(&client);
        let events = differences(before.as_ref(), &sets, SetId(client), visible);
        let (first_seen, last_pid_before) =
            before.map_or((now, None), |group| (group.first_seen, group.last_pid[0]));
        let group = ClientGroup {
            sets,
            visible,
            terminals: family.terminals,
            ask_again: family.ask_again,
            first_seen,
            looked: now,
            last_pid: [last_pid, last_pid_before],
        };
        self.groups.insert(client, group);
        self.budget.spend(self.look_time().since(begun), now);
        events
    }

    /// CPU time of this thread without searches, which have a budget of their own.
    fn look_time(&self) -> Nanos {
        Nanos(thread_time().0.saturating_sub(self.servers.searched().0))
    }

    /// Returns `None` if the client has ended.
    fn family(&mut self, client: Identity, now: Nanos) -> Option<Family> {
        let process = processes::living(&self.proc, client)?;
        let (mut family, mut fronts) = self.sorted(&process);
        let mut servers = std::mem::take(&mut self.servers);
        // The foreground processes of a server's own terminals are included, hence the bound.
        let mut looked = 0;
        while let Some(front) = fronts.get(looked).filter(|_| looked < ASKED_MAX) {
            let found = servers
                .find(&self.proc, self.user, front, now, |other| self.is_other(other, &family));
            match found {
                ServerAnswer::Found(server) if family.has(server.identity) => {}
                ServerAnswer::Found(server) => {
                    let (of_server, more) = self.sorted(&server);
                    family.take_in(of_server);
                    fronts.extend(more);
                }
                ServerAnswer::NotYet(again) => family.ask_again_at(again),
            }
            looked += 1;
        }
        self.servers = servers;
        let windows = self.windows.values().filter(|window| window.owner == Ok(client));
        for helper in windows.flat_map(|window| &window.helpers) {
            if processes::lives(&self.proc, *helper)
                && !self.is_client(*helper)
                && !family.has(*helper)
            {
                family.members.push(Member { who: *helper, because: Membership::Property });
            }
        }
        Some(family)
    }

    /// Returns `true` for a process outside of this family, the clients and the session's core.
    fn is_other(&self, process: &Stat, family: &Family) -> bool {
        let who = process.identity;
        !family.has(who) && !self.is_client(who) && !self.core.contains(&who.pid)
    }

    /// Returns the processes of a client or a server, and the foreground processes of its
    /// terminals.
    fn sorted(&self, top: &Stat) -> (Family, Vec<Stat>) {
        let mut below = processes::below(&self.proc, top, |_| false);
        below.retain(Stat::is_alive);
        let family = Family::sort(top, &below, |other| self.is_client(other));
        let fronts = family.fronts(&below).into_iter().cloned().collect();
        (family, fronts)
    }

    fn update_focus(&mut self) -> Vec<DesktopEvent> {
        let [keyboard, pointer] =
            [self.keyboard.window, self.pointer.window].map(|window| self.set_of_window(window?));
        let keyboard = self.keyboard.change(keyboard).then_some(DesktopEvent::Keyboard(keyboard));
        let pointer = self.pointer.change(pointer).then_some(DesktopEvent::Pointer(pointer));
        keyboard.into_iter().chain(pointer).collect()
    }

    fn set_of_window(&self, window: u32) -> Option<SetId> {
        let owner = self.windows.get(&window)?.owner.ok()?;
        self.groups.contains_key(&owner).then_some(SetId(owner))
    }
}

impl FocusState {
    /// Sets the reported set; returns `true` if it differs from the last one.
    fn change(&mut self, set: Option<SetId>) -> bool {
        std::mem::replace(&mut self.reported, set) != set
    }
}

impl ClientGroup {
    /// Returns `true` if no process was forked since the look before the last one, and no search is
    /// due. The last look alone is insufficient: it may have come between a fork and the `setpgid`
    /// that makes the child a job.
    fn is_settled(&self, last_pid: Option<u64>, now: Nanos) -> bool {
        last_pid.is_some() && self.last_pid == [last_pid; 2] && !self.asks_again(now)
    }

    fn asks_again(&self, now: Nanos) -> bool {
        self.ask_again.is_some_and(|at| at <= now)
    }

    fn processes(&self) -> impl Iterator<Item = Identity> + '_ {
        self.sets.values().flatten().map(|member| member.who)
    }

    /// Returns `true` if its helpers are exactly these.
    fn has_helpers(&self, helpers: &BTreeSet<Identity>) -> bool {
        let members = self.sets.values().flatten();
        let named = members.clone().filter(|member| member.because == Membership::Property);
        let named: BTreeSet<Identity> = named.map(|member| member.who).collect();
        let all: BTreeSet<Identity> = members.map(|member| member.who).collect();
        named.is_subset(helpers) && helpers.is_subset(&all)
    }

    /// Updates the visibility of its windows.
    fn show(&mut self, id: SetId, visible: bool) -> Vec<DesktopEvent> {
        if self.visible == visible {
            return Vec::new();
        }
        self.visible = visible;
        let members = self.sets.get(&id).cloned().unwrap_or_default();
        vec![DesktopEvent::Set { id, members, visible }]
    }
}

fn claim_pid(claim: &Option<WindowOwner>) -> Option<u32> {
    claim.as_ref().map(|owner| owner.pid)
}

/// Returns the events for a client's sets: losses first, so that no process is in two sets at a
/// time.
fn differences(
    before: Option<&ClientGroup>,
    now: &BTreeMap<SetId, Vec<Member>>,
    client: SetId,
    visible: bool,
) -> Vec<DesktopEvent> {
    let mut events = Vec::new();
    for (id, old) in before.into_iter().flat_map(|group| &group.sets) {
        let Some(new) = now.get(id) else {
            events.push(DesktopEvent::Gone(*id));
            continue;
        };
        let kept: Vec<Member> = new.iter().filter(|member| has(old, member)).copied().collect();
        if kept.len() < old.len() && kept.len() < new.len() {
            let visible = visible && *id == client;
            events.push(DesktopEvent::Set { id: *id, members: kept, visible });
        }
    }
    let mut gains = Vec::new();
    for (id, members) in now {
        let old = before.and_then(|group| group.sets.get(id));
        let same_look = *id != client || before.is_some_and(|group| group.visible == visible);
        if old == Some(members) && same_look {
            continue;
        }
        let visible = visible && *id == client;
        let event = DesktopEvent::Set { id: *id, members: members.clone(), visible };
        let only_loses = old.is_some_and(|old| members.iter().all(|member| has(old, member)));
        if only_loses { events.push(event) } else { gains.push(event) }
    }
    events.extend(gains);
    events
}

fn has(members: &[Member], wanted: &Member) -> bool {
    members.iter().any(|member| member.who == wanted.who)
}

#[cfg(test)]
mod tests;
