// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries for fuzzing: lines of the helper's socket, and the history of files.

use crate::helper_service;
use crate::helper_service::messages::{HelperRequest, HelperResponse};
use tipme_policy::preload::FileHistory;

/// Reads a line as a request to the helper, keeps its bounds, and reads it as an answer; whether it is either. It must
/// not panic.
pub fn exercise_lines(line: &[u8]) -> bool {
    let request = serde_json::from_slice(line);
    let understood = request.is_ok() || serde_json::from_slice::<HelperResponse>(line).is_ok();
    if let Ok(HelperRequest::Apply(actions)) = request {
        helper_service::admit_any(actions);
    }
    understood
}

/// Reads a history of files, plans with it, and writes it down again; whether it is one. It must not panic.
pub fn exercise_files(bytes: &[u8]) -> bool {
    let Ok(mut history) = serde_json::from_slice::<FileHistory>(bytes) else { return false };
    let plan = history.plan(1 << 30);
    history.remember("emacs", plan.into_iter().flatten().collect());
    serde_json::to_vec(&history).is_ok()
}
