// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said between a manager without root and the helper. Both come with the same program, so the forms are
//! theirs alone.
//!
//! No request holds a value of a knob: a caller says which role a set has, and the policy's table says what that is worth.

use serde::{Deserialize, Serialize};
use tipme_control::Daemon;
use tipme_control::manager::KnobStatus;
use tipme_policy::{Action, Backend, Identity, Strength};
use tipme_sched::RoleExplanation;

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
            "user {uid} does not sit at a seat of this machine, and may not use the helper; \
             start it with: sudo tipme manage-helper --allow-user {uid}"
        )
    }
}

/// What a manager asks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelperRequest {
    /// How the helper is. Answer: [`HelperResponse::Status`].
    Status,
    /// Begins the helper session, which ends with the connection. Answer: [`HelperResponse::Opened`].
    Open(Terms),
    /// Does what the actions say; with none, what had to wait. Answer: [`HelperResponse::Applied`].
    Apply(Vec<Action>),
    /// Goes over to another strength. Answer: [`HelperResponse::Applied`].
    Strength(Strength),
    /// What a process has, and why. Answer: [`HelperResponse::Explained`].
    Explain { who: Identity },
    /// Takes everything back, and forgets all sets. Answer: [`HelperResponse::Restored`].
    Restore,
}

/// What a helper session is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Terms {
    pub(crate) strength: Strength,
    /// `None`: the best that can be used.
    pub(crate) backend: Option<Backend>,
    /// Whose processes are to be changed; only root may name another user than itself.
    pub(crate) owner: Option<u32>,
    /// Only this process and those below it.
    pub(crate) under: Option<Identity>,
    /// The display server, where it belongs to root.
    pub(crate) server: Option<Identity>,
}

/// What the helper answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelperResponse {
    Status(HelperStatus),
    Opened(Opened),
    Applied(AppliedCounts),
    /// `None`: the process has no role, and nothing that it has inherited from one that has.
    Explained(Option<Explained>),
    Restored(RestoredCounts),
    /// It was not done: the object and the remedy, for people.
    Error(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct HelperStatus {
    pub(crate) pid: u32,
    /// Helper sessions that are open.
    pub(crate) sessions: usize,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) backend: Backend,
    /// What cannot be done, and why.
    pub(crate) missing: Vec<String>,
    /// What a helper that was killed had left of this user's.
    pub(crate) restored: RestoredCounts,
}

/// What a change has done, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AppliedCounts {
    pub(crate) changed: usize,
    /// Knobs that were left alone, and actions beyond the bounds.
    pub(crate) skipped: usize,
    /// Something waits for the kernel; see [`tipme_sched::AppliedCounts::later`].
    pub(crate) later: bool,
}

/// As [`tipme_sched::RestoredCounts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RestoredCounts {
    pub(crate) restored: usize,
    pub(crate) failed: usize,
    pub(crate) unreadable: usize,
}

/// What a process has, and why, in words.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Explained {
    /// `None`: it only has what it inherited.
    pub(crate) role: Option<RoleExplanation>,
    pub(crate) knobs: Vec<KnobStatus>,
    /// Knobs that were left alone, and why.
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

impl RestoredCounts {
    pub(crate) fn and(self, other: RestoredCounts) -> RestoredCounts {
        RestoredCounts {
            restored: self.restored + other.restored,
            failed: self.failed + other.failed,
            unreadable: self.unreadable + other.unreadable,
        }
    }
}

impl From<tipme_sched::Applied> for AppliedCounts {
    fn from(applied: tipme_sched::Applied) -> AppliedCounts {
        let skipped = applied.skipped.len() + applied.skipped_more;
        AppliedCounts { changed: applied.changed, skipped, later: applied.later }
    }
}

impl From<tipme_sched::Restored> for RestoredCounts {
    fn from(restored: tipme_sched::Restored) -> RestoredCounts {
        let tipme_sched::Restored { restored, failed, unreadable, .. } = restored;
        RestoredCounts { restored, failed, unreadable }
    }
}

impl From<tipme_sched::ProcessExplanation> for Explained {
    fn from(found: tipme_sched::ProcessExplanation) -> Explained {
        let knob = |state: &tipme_sched::KnobState| KnobStatus {
            name: state.knob.to_string(),
            baseline: state.baseline.clone(),
            applied: state.applied.clone(),
        };
        Explained {
            role: found.role.clone(),
            knobs: found.knobs.iter().map(knob).collect(),
            left: found.left.iter().map(|(knob, why)| format!("{knob}: {why}")).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_cannot_name_the_value_of_a_knob() {
        let line = r#"{"apply":[{"assign":{"set":{"pid":7,"start":1},"role":"focused","reason":"keyboard_focus",
            "faded":0.5,"members":[],"nice":-20,"knobs":{"nice":-20,"cpu_weight":10000}}}]}"#;
        let Ok(HelperRequest::Apply(actions)) = serde_json::from_str(line) else { panic!("no request") };
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
