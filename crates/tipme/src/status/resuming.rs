// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remedies for a recording that a user has stopped.

use crate::record;
use rustix::process::geteuid;
use tipme_control::RecorderStatus;

/// Key that restarts the recording of input, unless the agent was given another one.
pub const INPUT_KEY: &str = "the agent's key, Ctrl+Alt+1";

/// Describes input that is not recorded, with the remedy; `restart_key` restarts one's own.
pub fn without_input(status: &RecorderStatus, restart_key: &str) -> String {
    let remedy = |by| resume(by, geteuid().as_raw(), &format!("restart it by {restart_key}"));
    match status.input_stopped_by_uid {
        // Root cannot overrule another user here.
        Some(by) if by != 0 && by != geteuid().as_raw() => {
            let name = record::user_name(by);
            format!("not recorded, since {name} stopped it; ask {name} for: tipme resume")
        }
        by => format!("not recorded; {}", remedy(by.unwrap_or(geteuid().as_raw()))),
    }
}

/// Returns the remedy for this user after a pause by another one, which root may end.
pub fn resume(by: u32, own: u32, by_key: &str) -> String {
    if own == 0 || by == own {
        format!("{by_key}, or: tipme resume")
    } else {
        "run: sudo tipme resume".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_paused_and_root_are_sent_to_resume() {
        assert_eq!([resume(7, 7, "key"), resume(7, 0, "key")], ["key, or: tipme resume"; 2]);
        assert_eq!([resume(0, 7, "key"), resume(8, 7, "key")], ["run: sudo tipme resume"; 2]);
        let own = geteuid().as_raw();
        let of = |by| {
            without_input(
                &RecorderStatus { input_stopped_by_uid: by, ..RecorderStatus::default() },
                "F9",
            )
        };
        assert_eq!(of(Some(own)), of(None));
        assert!(
            of(Some(own + 1)).contains("; ask ")
                && of(None).ends_with("; restart it by F9, or: tipme resume")
        );
    }
}
