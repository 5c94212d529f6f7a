// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delegated group, and the names of the groups below it.

use crate::world::KnobPlace;
use std::collections::BTreeMap;
use tipme_policy::{Identity, SetId};

/// The delegated group.
#[derive(Clone, Debug)]
pub(crate) struct Subtree {
    /// Its folder.
    pub(crate) dir: String,
    /// Mount point of its hierarchy.
    pub(crate) root: String,
    pub(crate) prepared: bool,
    /// Time at which enabling the controllers failed, in clock ticks.
    pub(crate) failed: Option<u64>,
    /// Protected memory of each set, in bytes.
    pub(crate) protected: BTreeMap<SetId, u64>,
}

impl Subtree {
    pub(crate) fn new(dir: String, root: String) -> Subtree {
        Subtree { dir, root, prepared: false, failed: None, protected: BTreeMap::new() }
    }

    /// Returns the place for the group of a process.
    pub(crate) fn member(&self, process: Identity) -> KnobPlace {
        KnobPlace::Member { process, root: self.root.clone() }
    }

    /// Returns the place for the existence of a group.
    pub(crate) fn place(&self, path: &str) -> KnobPlace {
        KnobPlace::Group { path: path.to_owned(), root: self.root.clone() }
    }

    /// Returns the folder of a set's group.
    pub(crate) fn group(&self, set: SetId) -> String {
        format!("{}/set-{}-{}", self.dir, set.0.pid, set.0.start)
    }

    /// Returns the folder of the group for one oversized process.
    pub(crate) fn hog(&self, who: Identity) -> String {
        format!("{}/hog-{}-{}", self.dir, who.pid, who.start)
    }

    /// Returns the process for which [`Subtree::hog`] names this group.
    pub(crate) fn hog_of(&self, group: &str) -> Option<Identity> {
        let (pid, start) = group.strip_prefix(&self.dir)?.strip_prefix("/hog-")?.split_once('-')?;
        Some(Identity { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }

    pub(crate) fn rest(&self) -> String {
        format!("{}/rest", self.dir)
    }

    /// Returns `true` for a group created by the engine.
    pub(crate) fn owns(&self, group: &str) -> bool {
        let name = group.strip_prefix(&self.dir).and_then(|rest| rest.strip_prefix('/'));
        name.filter(|name| !name.contains('/')).is_some_and(|name| {
            name == "rest" || name.starts_with("set-") || name.starts_with("hog-")
        })
    }

    /// Returns the systemd unit of a group, unless the delegated group is inside the same unit.
    pub(crate) fn unit(&self, group: &str) -> Option<String> {
        let parts: Vec<&str> = group.split('/').collect();
        let at = parts
            .iter()
            .rposition(|part| part.ends_with(".service") || part.ends_with(".scope"))?;
        let unit = parts[..=at].join("/");
        let inside = self.dir.strip_prefix(&unit).is_some_and(|rest| rest.starts_with('/'));
        (!inside).then(|| parts[at].to_owned())
    }

    pub(crate) fn forget(&mut self) {
        *self = Subtree::new(std::mem::take(&mut self.dir), std::mem::take(&mut self.root));
    }
}
