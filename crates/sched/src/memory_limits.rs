// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of memory that are asked, and what follows from them.

use std::collections::BTreeMap;
use tipme_policy::MemoryGroup;

/// What is asked, and what follows from it.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) asked: BTreeMap<MemoryGroup, Asked>,
    pub(crate) folders: BTreeMap<String, Limit>,
}

#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) folder: String,
    pub(crate) bytes: u64,
}

/// The limit of a folder, with what it was reckoned from.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) asked: BTreeMap<MemoryGroup, u64>,
    pub(crate) bytes: i64,
}
