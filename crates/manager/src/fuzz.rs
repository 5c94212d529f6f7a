// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzing entry points: lines of the helper's socket, and the file history.

use crate::helper_service;
use crate::helper_service::messages::{HelperRequest, HelperResponse};
use tipme_policy::preload::FileHistory;

/// Parses a line as a request to the helper, applies its bounds, and parses it as a response.
/// Returns `true` if it is either. Must not panic.
pub fn exercise_lines(line: &[u8]) -> bool {
    let request = serde_json::from_slice(line);
    let understood = request.is_ok() || serde_json::from_slice::<HelperResponse>(line).is_ok();
    if let Ok(HelperRequest::Apply(actions)) = request {
        helper_service::admit_any(actions);
    }
    understood
}

/// Parses a file history, plans with it, and serializes it again. Returns `true` if it is valid.
/// Must not panic.
pub fn exercise_files(bytes: &[u8]) -> bool {
    let Ok(mut history) = serde_json::from_slice::<FileHistory>(bytes) else { return false };
    let plan = history.plan(1 << 30);
    history.remember("emacs", plan.into_iter().flatten().collect());
    serde_json::to_vec(&history).is_ok()
}
