// SPDX-License-Identifier: MIT OR Apache-2.0
//! Autogroups: the scheduler's weight of a whole session.
//!
//! A session has one weight, so it gets that of its most favoured process. The other processes
//! cannot be treated differently, and each of them is reported.

use crate::engine::{Engine, Standing, rank};
use crate::journal::Log;
use crate::ledger::{CellDetails, LedgerStep};
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{Autogroup, KnobFault, KnobPlace, Value, World};
use std::collections::BTreeSet;
use tipme_policy::{Backend, Identity};

impl<W: World, L: Log> Engine<W, L> {
    /// Gives each session of these processes the value of its most favoured process.
    pub(crate) fn settle_sessions(&mut self, touched: &BTreeSet<Identity>, applied: &mut Applied) {
        if self.backend != Backend::Autogroup {
            return;
        }
        let sessions = self.find_sessions(touched);
        let mut steps = Vec::new();
        for autogroup in sessions {
            let members = self.members_of(autogroup);
            let best = members.iter().min_by_key(|(_, standing)| rank(*standing)).copied();
            let want = best.and_then(|(_, standing)| self.knobs(standing).autogroup).map(i64::from);
            let who = best.or_else(|| touched.iter().next().map(|who| (*who, NOBODY)));
            if let Some((who, standing)) = who {
                match self.plan_session(autogroup, want) {
                    Ok(step) => steps.extend(step),
                    Err(why) => self.skip(who, Knob::Autogroup, why, applied),
                }
                self.report_shared(autogroup, &members, standing, want, applied);
            }
        }
        let done = self.ledger.commit(steps);
        self.report(done, applied);
        let roles = &self.roles;
        self.autogroups.retain(|who, _| roles.contains_key(who));
    }

    /// Returns the former and the present autogroups of the processes.
    fn find_sessions(&mut self, touched: &BTreeSet<Identity>) -> BTreeSet<Autogroup> {
        let mut found = BTreeSet::new();
        for who in touched {
            found.extend(self.autogroups.remove(who));
            if let Some(autogroup) = self.ledger.world.autogroup(*who) {
                found.insert(autogroup);
                self.autogroups.insert(*who, autogroup);
            }
        }
        found
    }

    fn members_of(&self, autogroup: Autogroup) -> Vec<(Identity, Standing)> {
        let inside = self.autogroups.iter().filter(|(_, group)| **group == autogroup);
        inside.filter_map(|(who, _)| Some((*who, *self.roles.get(who)?))).collect()
    }

    fn plan_session(
        &mut self,
        autogroup: Autogroup,
        want: Option<i64>,
    ) -> Result<Option<LedgerStep>, SkipReason> {
        let Autogroup { number, session } = autogroup;
        let place = KnobPlace::Autogroup { number, session };
        let present = match self.ledger.world.get(&place) {
            Ok(present) => present,
            Err(KnobFault::Refused(code)) => return Err(SkipReason::Refused(code)),
            Err(_) => {
                self.ledger.abandon([place]);
                return Ok(None);
            }
        };
        let baseline = match self.ledger.cell(&place) {
            Some(cell) if cell.has_applied(&present) => cell.baseline.clone(),
            Some(_) => return Err(SkipReason::ChangedByOther(present.to_string())),
            None if present == Value::Number(0) => present.clone(),
            None => return Err(SkipReason::SetByOther(present.to_string())),
        };
        let to = want.map_or(baseline.clone(), Value::Number);
        let details = CellDetails { session, return_to: None };
        Ok((to != present).then_some(LedgerStep { place, to, baseline, from: present, details }))
    }

    fn report_shared(
        &mut self,
        autogroup: Autogroup,
        members: &[(Identity, Standing)],
        best: Standing,
        want: Option<i64>,
        applied: &mut Applied,
    ) {
        let why = SkipReason::SharedSession { session: autogroup.session, serves: best.role };
        for (who, standing) in members {
            if self.knobs(*standing).autogroup.map(i64::from) != want {
                self.skip(*who, Knob::Autogroup, why.clone(), applied);
            }
        }
    }
}

/// Stands for a session in which no process has a role any more.
const NOBODY: Standing = Standing {
    set: tipme_policy::SetId(Identity { pid: 0, start: 0 }),
    role: tipme_policy::Role::Rest,
    faded: 1.0,
};
