// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delegated group, and the names of the groups below it.

use std::collections::BTreeMap;
use tipme_policy::{Identity, SetId};

/// The delegated group.
#[derive(Clone, Debug)]
pub(crate) struct Subtree {
    /// Its folder.
    pub(crate) dir: String,
    /// The folder where its hierarchy is mounted.
    pub(crate) root: String,
    pub(crate) prepared: bool,
    /// When switching the controllers on failed, in clock ticks.
    pub(crate) failed: Option<u64>,
    /// The memory of sets that is protected, in bytes.
    pub(crate) protected: BTreeMap<SetId, u64>,
}

impl Subtree {
    pub(crate) fn new(dir: String, root: String) -> Subtree {
        Subtree { dir, root, prepared: false, failed: None, protected: BTreeMap::new() }
    }

    pub(crate) fn dir(&self) -> &str {
        &self.dir
    }

    /// The folder of a set's group.
    pub(crate) fn group(&self, set: SetId) -> String {
        format!("{}/set-{}-{}", self.dir, set.0.pid, set.0.start)
    }

    /// The folder of the group of one process that takes too much memory.
    pub(crate) fn hog(&self, who: Identity) -> String {
        format!("{}/hog-{}-{}", self.dir, who.pid, who.start)
    }

    pub(crate) fn rest(&self) -> String {
        format!("{}/rest", self.dir)
    }

    /// The folder of a group that is named by its folder, or by its path in the hierarchy.
    pub(crate) fn folder(&self, path: &str) -> String {
        let named = path.strip_prefix(&self.root).is_some_and(|rest| rest.starts_with('/'));
        if named { path.to_owned() } else { format!("{}/{}", self.root, path.trim_start_matches('/')) }
    }

    /// True for a group that was made here.
    pub(crate) fn owns(&self, group: &str) -> bool {
        let name = group.strip_prefix(&self.dir).and_then(|rest| rest.strip_prefix('/'));
        let ours = |name: &str| name == "rest" || name.starts_with("set-") || name.starts_with("hog-");
        name.is_some_and(|name| ours(name) && !name.contains('/'))
    }

    /// The service manager's unit that a group belongs to, unless the delegated group is inside the same unit.
    pub(crate) fn unit(&self, group: &str) -> Option<String> {
        let parts: Vec<&str> = group.split('/').collect();
        let at = parts.iter().rposition(|part| part.ends_with(".service") || part.ends_with(".scope"))?;
        let unit = parts[..=at].join("/");
        let inside = self.dir.strip_prefix(&unit).is_some_and(|rest| rest.starts_with('/'));
        (!inside).then(|| parts[at].to_owned())
    }

    pub(crate) fn forget(&mut self) {
        *self = Subtree::new(std::mem::take(&mut self.dir), std::mem::take(&mut self.root));
    }
}
