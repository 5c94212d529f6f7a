// SPDX-License-Identifier: MIT OR Apache-2.0
//! Culprits that draw the session: holding them back would slow down every answer.

use crate::explain::partition::Budget;
use crate::model::{CauseKind, Culprit};
use tipme_record::Pid;
use tipme_record::session_programs::draws_session;

/// Returns the remedy against a display server, compositor, window manager or shell, which replaces
/// lowering its priority, limiting it or ending it. Returns `None` for other culprits, or if the
/// usual remedy does not affect it.
pub(crate) fn remedy(budget: &Budget<'_>, kind: CauseKind, culprit: &Culprit) -> Option<String> {
    let Culprit::Process { pid, comm, .. } = culprit else { return None };
    let draws =
        holds_back(kind) && (budget.recording.messages.is_server(Pid(*pid)) || draws_session(comm));
    draws.then(|| text(comm))
}

fn text(comm: &str) -> String {
    format!(
        "turn off effects and extensions of {comm}, or report it to its developers; it draws the screen, so do not slow it down"
    )
}

/// Returns `true` if the usual remedy holds back or ends the culprit.
fn holds_back(kind: CauseKind) -> bool {
    use CauseKind::{
        CpuCompetition, DiskQueue, Fsync, PageIn, Reclaim, ServerBusy, ServerGrab, SwapIn,
    };
    matches!(
        kind,
        CpuCompetition | DiskQueue | Fsync | PageIn | Reclaim | ServerBusy | ServerGrab | SwapIn
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tasks::Tasks;
    use crate::verdict::remedy::{self, Waiting};

    #[test]
    fn each_remedy_that_holds_back_the_culprit_is_known_as_such() {
        let culprit =
            Culprit::Process { pid: 7, comm: "xfwm4".into(), cmdline: String::new(), job: None };
        for kind in CauseKind::CAUSES {
            let usual = remedy::of(
                *kind,
                &culprit,
                Waiting { app: "xterm", itself: false },
                &Tasks::default(),
            );
            let harms = ["renice", "ionice", "limit xfwm4", "ending 7"]
                .iter()
                .any(|part| usual.contains(part));
            assert_eq!(harms, holds_back(*kind), "{kind}: {usual}");
        }
        assert!(!["renice", "nice", "kill"].iter().any(|part| text("xfwm4").contains(part)));
    }
}
