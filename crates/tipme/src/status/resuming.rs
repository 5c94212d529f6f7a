// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remedies for a recording that a user has stopped.

use crate::record;
use rustix::process::geteuid;
use tipme_control::RecorderStatus;

/// Key of the agent that restarts the recording of input, unless it was given another one.
pub const INPUT_KEY: &str = "Ctrl+Alt+1";

/// Describes input that is not recorded, with the remedy; `restart_key` restarts one's own.
pub fn without_input(status: &RecorderStatus, restart_key: &str) -> String {
    let own = geteuid().as_raw();
    match status.input_stopped_by_uid.unwrap_or(own) {
        // Root cannot overrule another user here.
        by if by != 0 && by != own => {
            let name = record::user_name(by);
            format!("not recorded, because {name} paused it; ask {name} to run: tipme resume")
        }
        by => format!("not recorded; {}", resume(by, own, restart_key)),
    }
}

/// Returns the remedy for this user after a pause by another one, which root may end.
pub fn resume(by: u32, own: u32, key: &str) -> String {
    if own == 0 || by == own {
        format!("press {key}, or run: tipme resume")
    } else {
        "run: sudo tipme resume".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pausing_user_and_root_may_resume() {
        let own = geteuid().as_raw();
        assert_eq!([resume(7, 7, "F9"), resume(7, 0, "F9")], ["press F9, or run: tipme resume"; 2]);
        assert_eq!([resume(0, 7, "F9"), resume(8, 7, "F9")], ["run: sudo tipme resume"; 2]);
        for by in [None, Some(own), Some(own + 1)] {
            let status = RecorderStatus { input_stopped_by_uid: by, ..RecorderStatus::default() };
            let words = without_input(&status, "F9");
            let remedy = if by == Some(own + 1) { "; ask " } else { "; press F9, or run: " };
            assert!(words.contains(remedy), "{words}");
        }
    }
}
