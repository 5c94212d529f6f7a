// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's end of a helper session.
//!
//! The client retries now and then to reach a helper that is gone or hangs. Until then it changes
//! nothing, and nothing stays changed either: the helper restores everything when it ends, and
//! again when it starts.

use crate::helper_service::messages::{
    AppliedCounts, Explained, HelperRequest, HelperResponse, HelperSocket, Opened, Terms,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tipme_control::{CallError, ClientOf, Dialogue};
use tipme_desktop::clock;
use tipme_policy::{Action, Identity, Strength};
use tipme_record::Nanos;
use tipme_sched::Restored;

/// Timeout of a request to the helper: paging out memory to a slow disk takes a while.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two attempts to reach a lost helper.
const AGAIN: Nanos = Nanos::from_secs(10);
/// Maximum size of the actions in one request; the rest of a line is for the JSON around them.
const REQUEST_BYTES: usize = tipme_control::MAX_LINE_BYTES - 1_024;
/// Maximum size of an assignment without its members, and of one member.
const ACTION_BYTES: usize = 384;
const MEMBER_BYTES: usize = 96;

/// A helper session, or the record of a lost one.
pub(crate) struct HelperClient {
    dir: PathBuf,
    terms: Terms,
    talk: Result<Dialogue<HelperSocket>, Lost>,
    helper: u32,
}

struct Lost {
    why: String,
    /// Time of the next attempt.
    again: Nanos,
}

impl HelperClient {
    /// Connects to the helper; [`HelperClient::open`] then opens the helper session.
    ///
    /// # Errors
    /// Fails if no helper answers, or if the answering process does not run as root.
    pub(crate) fn find(dir: &Path) -> Result<HelperClient, String> {
        let talk = connect(dir)?;
        let helper = talk.server().pid;
        Ok(HelperClient { dir: dir.to_owned(), terms: Terms::default(), talk: Ok(talk), helper })
    }

    /// Opens the helper session.
    ///
    /// # Errors
    /// Returns the helper's message, or the reason why there is no helper.
    pub(crate) fn open(&mut self, terms: Terms) -> Result<Opened, String> {
        self.terms = terms;
        match self.ask(&HelperRequest::Open(terms))? {
            HelperResponse::Opened(opened) => Ok(opened),
            other => Err(foreign(&other)),
        }
    }

    pub(crate) fn helper(&self) -> u32 {
        self.helper
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.talk
            .as_ref()
            .err()
            .map(|lost| format!("nothing is changed until the helper is back: {}", lost.why))
    }

    pub(crate) fn revive(&mut self, now: Nanos) -> bool {
        if !self.talk.as_ref().is_err_and(|lost| lost.again <= now) {
            return false;
        }
        let found = HelperClient::find(&self.dir)
            .and_then(|mut client| client.open(self.terms).map(|_| client));
        match found {
            Ok(client) => *self = client,
            Err(why) => self.talk = Err(Lost { why, again: clock::now().after(AGAIN) }),
        }
        self.talk.is_ok()
    }

    pub(crate) fn apply(&mut self, actions: &[Action]) -> AppliedCounts {
        let requests = split(actions)
            .into_iter()
            .map(|part| (part.len(), HelperRequest::Apply(part.to_vec())));
        requests.fold(AppliedCounts::default(), |applied, (count, request)| {
            applied.and(self.applied(&request, count))
        })
    }

    pub(crate) fn set_strength(&mut self, strength: Strength) -> AppliedCounts {
        self.terms.strength = strength;
        self.applied(&HelperRequest::Strength(strength), 0)
    }

    pub(crate) fn explain(&mut self, who: Identity) -> Option<Explained> {
        match self.ask(&HelperRequest::Explain { who }) {
            Ok(HelperResponse::Explained(explained)) => explained,
            _ => None,
        }
    }

    /// Restores everything. The counts of a lost helper are lost too: it restores by itself.
    pub(crate) fn restore(&mut self) -> Restored {
        match self.ask(&HelperRequest::Restore) {
            Ok(HelperResponse::Restored(restored)) => restored,
            _ => Restored::default(),
        }
    }

    /// Requests `count` changes; all of them count as skipped if the helper is lost.
    fn applied(&mut self, request: &HelperRequest, count: usize) -> AppliedCounts {
        match self.ask(request) {
            Ok(HelperResponse::Applied(applied)) => applied,
            _ => AppliedCounts { skipped: count, ..AppliedCounts::default() },
        }
    }

    fn ask(&mut self, request: &HelperRequest) -> Result<HelperResponse, String> {
        let talk = self.talk.as_mut().map_err(|lost| lost.why.clone())?;
        match talk.ask(request) {
            Ok(response) => Ok(response),
            Err(CallError::Refused(why)) => Err(why),
            Err(error) => {
                self.talk = Err(Lost { why: error.to_string(), again: clock::now().after(AGAIN) });
                Err(error.to_string())
            }
        }
    }
}

fn connect(dir: &Path) -> Result<Dialogue<HelperSocket>, String> {
    let talk = ClientOf::<HelperSocket>::new(dir)
        .with_timeout(TIMEOUT)
        .converse()
        .map_err(|error| error.to_string())?;
    match talk.server().uid {
        0 => Ok(talk),
        other => Err(format!(
            "the process that listens in {} belongs to user {other}, not to root",
            dir.display()
        )),
    }
}

fn foreign(response: &HelperResponse) -> String {
    format!("unexpected answer from the helper ({response:?}); restart it")
}

/// Splits the actions into parts of one request each. An empty list yields one part, since an empty
/// request is valid too.
fn split(actions: &[Action]) -> Vec<&[Action]> {
    let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (at, action) in actions.iter().enumerate() {
        let more = bytes_max(action);
        if at > begin && bytes + more > REQUEST_BYTES {
            parts.push(&actions[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += more;
    }
    parts.push(&actions[begin..]);
    parts
}

fn bytes_max(action: &Action) -> usize {
    match action {
        Action::Assign(assignment) => ACTION_BYTES + assignment.members.len() * MEMBER_BYTES,
        Action::Forget(_) => ACTION_BYTES,
        // May name a group by its path.
        Action::Memory(_) => serde_json::to_vec(action).map_or(0, |line| line.len() + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_policy::{
        Assignment, Identity, MEMBERS_MAX, Member, Membership, Reason, Role, SetId,
    };

    fn largest(members: usize) -> Action {
        let who = Identity { pid: u32::MAX, start: u64::MAX };
        let member = Member { who, because: Membership::Foreground };
        Action::Assign(Assignment {
            set: SetId(who),
            role: Role::Focused,
            reason: Reason::MemoryHog { bytes: u64::MAX },
            faded: 0.123_456_79,
            members: vec![member; members],
        })
    }

    #[test]
    fn every_part_fits_into_a_line_and_none_is_lost() {
        for (count, members) in [(0, 0), (1, MEMBERS_MAX), (9, MEMBERS_MAX), (300, 40), (2_000, 0)]
        {
            let actions = vec![largest(members); count];
            let parts = split(&actions);
            assert_eq!(parts.concat(), actions);
            for part in &parts {
                let line = serde_json::to_vec(&HelperRequest::Apply(part.to_vec())).unwrap();
                assert!(
                    line.len() < tipme_control::MAX_LINE_BYTES,
                    "{} bytes for {count} of {members}",
                    line.len()
                );
            }
        }
        assert_eq!(split(&[]).len(), 1);
    }
}
