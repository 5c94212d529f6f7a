// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a process that was stopped: by a signal, by the freezer of its control group, or by a debugger.

use crate::explain::chain::Doing;
use crate::explain::partition::{Budget, Group, length};
use crate::model::Culprit;

/// Kernel functions in which frozen threads stand, and traced ones.
const FREEZES: [&str; 2] = ["do_freezer_trap", "__refrigerator"];
const TRACES: &str = "ptrace_stop";

/// What held a thread, where it was no signal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Frozen,
    Traced,
}

fn hold(budget: &Budget<'_>, group: &Group) -> Option<Hold> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let Doing::Waited(_, Some(wait)) = longest.doing else { return None };
    let mut functions = budget.recording.names.kernel_functions(wait.stack);
    functions.find_map(|name| match name {
        name if FREEZES.contains(&name) => Some(Hold::Frozen),
        TRACES => Some(Hold::Traced),
        _ => None,
    })
}

/// Who did what to whom.
pub fn headline(budget: &Budget<'_>, group: &Group, culprit: &str, waiters: &str) -> String {
    match hold(budget, group) {
        Some(Hold::Frozen) => format!("the control group of {waiters} was frozen"),
        Some(Hold::Traced) => format!("a debugger held {waiters}"),
        None => format!("{culprit} stopped {waiters}"),
    }
}

/// What lets a process go on that no signal stopped.
pub fn remedy(budget: &Budget<'_>, group: &Group, culprit: &Culprit) -> Option<String> {
    let Culprit::Process { pid, .. } = culprit else { return None };
    Some(match hold(budget, group)? {
        Hold::Frozen => format!(
            "thaw its control group: 0 into cgroup.freeze, or THAWED into freezer.state, of the group in /proc/{pid}/cgroup"
        ),
        Hold::Traced => format!("let it go in the debugger: TracerPid in /proc/{pid}/status"),
    })
}
