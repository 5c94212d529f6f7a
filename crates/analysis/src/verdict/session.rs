// SPDX-License-Identifier: MIT OR Apache-2.0
//! Culprits that draw the session: to hold them back would slow down every answer.

use crate::explain::partition::Budget;
use crate::model::{CauseKind, Culprit};
use tipme_record::Pid;
use tipme_record::session_programs::draws_session;

/// The remedy against a display server, compositor, window manager or shell, in place of one that
/// would lower its priority, limit it or end it; `None` where the culprit is none of these, or
/// where the usual remedy does nothing to it.
pub(crate) fn remedy(budget: &Budget<'_>, kind: CauseKind, culprit: &Culprit) -> Option<String> {
    let Culprit::Process { pid, comm, .. } = culprit else { return None };
    let draws = holds_back(kind) && (budget.recording.messages.is_server(Pid(*pid)) || draws_session(comm));
    draws.then(|| text(comm))
}

fn text(comm: &str) -> String {
    format!("turn off effects and extensions of {comm}, or tell its authors; it draws the screen: do not hold it back")
}

/// Whether the usual remedy holds back or ends the culprit.
fn holds_back(kind: CauseKind) -> bool {
    use CauseKind::{CpuCompetition, DiskQueue, Fsync, PageIn, Reclaim, ServerBusy, ServerGrab, SwapIn};
    matches!(kind, CpuCompetition | DiskQueue | Fsync | PageIn | Reclaim | ServerBusy | ServerGrab | SwapIn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tasks::Tasks;
    use crate::verdict::remedy::{self, Waiting};

    #[test]
    fn each_remedy_that_holds_back_the_culprit_is_known_as_such() {
        let culprit = Culprit::Process { pid: 7, comm: "xfwm4".into(), cmdline: String::new(), job: None };
        for kind in CauseKind::CAUSES {
            let usual = remedy::of(*kind, &culprit, Waiting { app: "xterm", itself: false }, &Tasks::default());
            let harms = ["renice", "ionice", "limit xfwm4", "ending 7"].iter().any(|part| usual.contains(part));
            assert_eq!(harms, holds_back(*kind), "{kind}: {usual}");
        }
        assert!(!["renice", "nice", "kill"].iter().any(|part| text("xfwm4").contains(part)));
    }
}
