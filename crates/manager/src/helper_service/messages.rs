// SPDX-License-Identifier: MIT OR Apache-2.0
//! Protocol between a manager without root and the helper. Both are the same executable, so the
//! format is internal.
//!
//! No request contains a knob value: a caller names the role of a set, and the policy's table
//! supplies the values.

use serde::{Deserialize, Serialize};
use tipme_control::Daemon;
use tipme_control::manager::KnobStatus;
use tipme_policy::{Action, Backend, Identity, Strength};
use tipme_sched::{Restored, RoleExplanation};

/// The helper at its socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HelperSocket {}

impl Daemon for HelperSocket {
    type Request = HelperRequest;
    type Response = HelperResponse;
    const NAME: &'static str = "helper";
    const SOCKET: &'static str = "helper.sock";
    const START: &'static str = "sudo tipme manage-helper";

    fn refusal(why: String) -> HelperResponse {
        HelperResponse::Error(why)
    }

    fn granted(response: HelperResponse) -> Result<HelperResponse, String> {
        if let HelperResponse::Error(why) = response { Err(why) } else { Ok(response) }
    }

    fn not_allowed(uid: u32) -> String {
        format!(
            "user {uid} does not sit at a seat of this machine and may not use the helper; \
             start it with: sudo tipme manage-helper --allow-user {uid}"
        )
    }
}

/// A request of a manager.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelperRequest {
    /// Queries the helper's status. Response: [`HelperResponse::Status`].
    Status,
    /// Opens the helper session, which ends with the connection. Response:
    /// [`HelperResponse::Opened`].
    Open(Terms),
    /// Applies the actions; an empty list retries deferred changes. Response:
    /// [`HelperResponse::Applied`].
    Apply(Vec<Action>),
    /// Changes the strength. Response: [`HelperResponse::Applied`].
    Strength(Strength),
    /// Explains the knobs of a process. Response: [`HelperResponse::Explained`].
    Explain { who: Identity },
    /// Restores everything, and forgets all sets. Response: [`HelperResponse::Restored`].
    Restore,
}

/// Terms of a helper session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Terms {
    pub(crate) strength: Strength,
    /// Requested backend; `None` selects the best usable one.
    pub(crate) backend: Option<Backend>,
    /// Owner of the processes to change; only root may name another user.
    pub(crate) owner: Option<u32>,
    /// Restricts changes to this process and its descendants.
    pub(crate) under: Option<Identity>,
    /// The display server, if it runs as root.
    pub(crate) server: Option<Identity>,
}

/// A response of the helper.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelperResponse {
    Status(HelperStatus),
    Opened(Opened),
    Applied(AppliedCounts),
    /// `None` if the process has no role and inherited nothing from a process with one.
    Explained(Option<Explained>),
    Restored(Restored),
    /// The request failed: object and remedy, for people.
    Error(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct HelperStatus {
    pub(crate) pid: u32,
    /// Number of open helper sessions.
    pub(crate) sessions: usize,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) backend: Backend,
    /// Unavailable functions, with reasons.
    pub(crate) missing: Vec<String>,
    /// Changes that a killed helper had left for this user, now reverted.
    pub(crate) restored: Restored,
}

/// Counts of an applied change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AppliedCounts {
    pub(crate) changed: usize,
    /// Knobs left alone, and actions beyond the bounds.
    pub(crate) skipped: usize,
    /// Some change has to wait for the kernel; see [`tipme_sched::Applied::later`].
    pub(crate) later: bool,
}

/// Knobs of a process and their reasons, in words.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Explained {
    /// `None` if it only has inherited values.
    pub(crate) role: Option<RoleExplanation>,
    pub(crate) knobs: Vec<KnobStatus>,
    /// Knobs left alone, with reasons.
    pub(crate) left: Vec<String>,
}

impl AppliedCounts {
    pub(crate) fn and(self, other: AppliedCounts) -> AppliedCounts {
        AppliedCounts {
            changed: self.changed + other.changed,
            skipped: self.skipped + other.skipped,
            later: self.later || other.later,
        }
    }
}

impl From<tipme_sched::Applied> for AppliedCounts {
    fn from(applied: tipme_sched::Applied) -> AppliedCounts {
        let skipped = applied.skipped.len() + applied.skipped_more;
        AppliedCounts { changed: applied.changed, skipped, later: applied.later }
    }
}

impl From<tipme_sched::ProcessExplanation> for Explained {
    fn from(found: tipme_sched::ProcessExplanation) -> Explained {
        let knobs = found.knobs.into_iter().map(|state| KnobStatus {
            name: state.knob.to_string(),
            baseline: state.baseline,
            applied: state.applied,
        });
        Explained {
            role: found.role,
            knobs: knobs.collect(),
            left: found.left.iter().map(|(knob, why)| format!("{knob}: {why}")).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_cannot_name_the_value_of_a_knob() {
        let line = r#"{"apply":[{"assign":{"set":{"pid":7,"start":1},"role":"focused",
            "reason":"keyboard_focus","faded":0.5,"members":[],"nice":-20,
            "knobs":{"nice":-20,"cpu_weight":10000}}}]}"#;
        let Ok(HelperRequest::Apply(actions)) = serde_json::from_str(line) else {
            panic!("no request")
        };
        let said = serde_json::to_string(&actions).unwrap();
        assert!(!said.contains("nice") && !said.contains("weight"), "{said}");
    }

    #[test]
    fn damaged_requests_are_errors() {
        let terms = Terms { under: Some(Identity { pid: 7, start: 8 }), ..Terms::default() };
        let whole = serde_json::to_vec(&HelperRequest::Open(terms)).unwrap();
        for end in 0..whole.len() {
            assert!(serde_json::from_slice::<HelperRequest>(&whole[..end]).is_err());
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x04, 0x20, 0x80] {
                let mut bad = whole.clone();
                bad[at] ^= flip;
                let _ = serde_json::from_slice::<HelperRequest>(&bad);
            }
        }
    }
}
