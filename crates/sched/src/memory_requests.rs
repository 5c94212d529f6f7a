// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requested memory limits, and the resulting limits of folders (`memory.high`).

use std::collections::BTreeMap;
use tipme_policy::MemoryGroup;

#[derive(Debug, Default)]
pub(crate) struct MemoryRequests {
    pub(crate) asked: BTreeMap<MemoryGroup, RequestedLimit>,
    /// By the folder of the control group.
    pub(crate) folders: BTreeMap<String, FolderLimit>,
}

#[derive(Debug)]
pub(crate) struct RequestedLimit {
    pub(crate) folder: String,
    pub(crate) bytes: u64,
}

/// The limit of a folder, with the requests from which it was computed.
#[derive(Clone, Debug)]
pub(crate) struct FolderLimit {
    pub(crate) asked: BTreeMap<MemoryGroup, u64>,
    pub(crate) bytes: i64,
}
