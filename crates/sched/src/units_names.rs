// SPDX-License-Identifier: MIT OR Apache-2.0
//! systemd units, derived from the folders of their control groups.
//!
//! A path suffices: `/user.slice/user-1000.slice/session-2.scope` is a unit of the system manager,
//! `/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope` one of user 1000's
//! manager. Groups below a scope or a service are internal to it.

use serde::{Deserialize, Serialize};
use tipme_record::named;

named! {
    /// A numeric property of a unit that can be set at run time, with systemd's name.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Property {
        CpuWeight = "CPUWeight",
        IoWeight = "IOWeight",
        MemoryLow = "MemoryLow",
        MemoryHigh = "MemoryHigh",
    }
}

impl Property {
    /// Returns `true` for the value that a unit has when nothing was set explicitly.
    pub(crate) fn is_default(self, value: i64) -> bool {
        match self {
            Property::CpuWeight | Property::IoWeight => value == -1 || value == 100,
            Property::MemoryLow => value == 0,
            Property::MemoryHigh => value == -1,
        }
    }
}

/// The service manager of a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ServiceManager {
    System,
    /// Manager of this user.
    User(u32),
}

/// A unit, derived from the folder of its control group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    pub(crate) service_manager: ServiceManager,
    pub(crate) name: String,
    /// Slice of the unit.
    pub(crate) slice: String,
}

impl Unit {
    /// Returns the unit of this group folder; `None` if it is not a scope, service or slice.
    pub(crate) fn from_folder(folder: &str) -> Option<Unit> {
        let (above, last) = folder.rsplit_once('/')?;
        let name = unescape(last).to_owned();
        kind(&name)?;
        let user = above.split('/').find_map(user_manager);
        let parent = above.rsplit('/').next().filter(|part| part.ends_with(".slice"));
        let slice = parent.map_or("-.slice", unescape).to_owned();
        Some(Unit {
            service_manager: user.map_or(ServiceManager::System, ServiceManager::User),
            name,
            slice,
        })
    }

    /// Returns the D-Bus interface of the unit's own properties.
    pub(crate) fn interface(&self) -> &'static str {
        kind(&self.name).unwrap_or("org.freedesktop.systemd1.Unit")
    }

    /// Returns the unit's object path; bytes other than letters and digits are hex-escaped.
    pub(crate) fn object(&self) -> String {
        let mut path = "/org/freedesktop/systemd1/unit/".to_owned();
        for (at, byte) in self.name.bytes().enumerate() {
            match byte {
                b'0'..=b'9' if at > 0 => path.push(char::from(byte)),
                b'a'..=b'z' | b'A'..=b'Z' => path.push(char::from(byte)),
                other => path.push_str(&format!("_{other:02x}")),
            }
        }
        path
    }
}

/// Returns the folder of the scope or service that contains a group, below the hierarchy's `root`.
pub(crate) fn unit_folder(root: &str, group: &str) -> Option<String> {
    let (mut folder, mut in_user) = (root.to_owned(), false);
    for part in group.strip_prefix(root)?.split('/').filter(|part| !part.is_empty()) {
        folder.push('/');
        folder.push_str(part);
        match () {
            () if part.ends_with(".slice") => {}
            () if !in_user && user_manager(part).is_some() => in_user = true,
            () => return is_scope_or_service(part).then_some(folder),
        }
    }
    None
}

/// Returns the ancestor folders inside a user's slice, nearest first, without the slice itself.
pub(crate) fn above_in_user_slice(root: &str, folder: &str) -> Vec<String> {
    let all = above(root, folder);
    let edge = all.iter().position(|folder| user_slice(root, folder).is_some());
    all.into_iter().take(edge.unwrap_or(0)).collect()
}

/// Returns the ancestor folders, nearest first, without the root.
pub(crate) fn above(root: &str, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = folder;
    while let Some((parent, _)) =
        rest.rsplit_once('/').filter(|(parent, _)| parent.len() > root.len())
    {
        found.push(parent.to_owned());
        rest = parent;
    }
    found
}

/// Returns the user if this folder is a user slice.
pub(crate) fn user_slice(root: &str, folder: &str) -> Option<u32> {
    let name = folder.strip_prefix(root)?.strip_prefix("/user.slice/user-")?;
    name.strip_suffix(".slice")?.parse().ok()
}

/// Returns `true` for a user's manager and the slices directly below it, which divide a whole
/// session.
pub(crate) fn divides_session(folder: &str) -> bool {
    let mut parts = folder.rsplit('/');
    let (last, parent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    user_manager(last).is_some() || (user_manager(parent).is_some() && last.ends_with(".slice"))
}

pub(crate) fn is_service(folder: &str) -> bool {
    folder.ends_with(".service")
}

/// Returns `true` for a login scope: processes started there belong to no particular program.
pub(crate) fn is_login(folder: &str) -> bool {
    folder.ends_with(".scope")
        && folder.rsplit('/').next().is_some_and(|name| name.starts_with("session-"))
}

/// Returns `true` for units that contain processes themselves.
pub(crate) fn is_scope_or_service(part: &str) -> bool {
    part.ends_with(".scope") || part.ends_with(".service")
}

fn user_manager(part: &str) -> Option<u32> {
    part.strip_prefix("user@")?.strip_suffix(".service")?.parse().ok()
}

fn kind(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "scope" => Some("org.freedesktop.systemd1.Scope"),
        "service" => Some("org.freedesktop.systemd1.Service"),
        "slice" => Some("org.freedesktop.systemd1.Slice"),
        _ => None,
    }
}

/// Removes the underscore that systemd prepends if a unit's name could be mistaken for a kernel
/// file.
fn unescape(part: &str) -> &str {
    part.strip_prefix('_').unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str =
        "/cg/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.slice/app-a.scope";

    #[test]
    fn a_folder_names_unit_keeper_and_slice() {
        let unit = Unit::from_folder(APP).expect("a unit");
        assert_eq!(
            (unit.service_manager, unit.name.as_str()),
            (ServiceManager::User(1000), "app-a.scope")
        );
        assert_eq!(unit.slice, "app-x.slice");
        assert_eq!(unit.object(), "/org/freedesktop/systemd1/unit/app_2da_2escope");
        let unit =
            Unit::from_folder("/cg/user.slice/user-1000.slice/user@1000.service").expect("a unit");
        assert_eq!(
            (unit.service_manager, unit.slice.as_str()),
            (ServiceManager::System, "user-1000.slice")
        );
        assert_eq!(unit.interface(), "org.freedesktop.systemd1.Service");
        let unit = Unit::from_folder("/cg/init.scope").expect("a unit");
        assert_eq!((unit.name.as_str(), unit.slice.as_str()), ("init.scope", "-.slice"));
        assert_eq!(Unit::from_folder("/cg/__x.scope").expect("a unit").name, "_x.scope");
        assert_eq!((Unit::from_folder("/cg/lxc"), Unit::from_folder("")), (None, None));
    }

    #[test]
    fn the_unit_of_a_group_is_the_outermost_that_holds_processes() {
        let inside = format!("{APP}/deep.service/x");
        assert_eq!(unit_folder("/cg", &inside).as_deref(), Some(APP));
        assert_eq!(
            unit_folder("/cg", "/cg/system.slice/a.service/b").as_deref(),
            Some("/cg/system.slice/a.service")
        );
        for none in [
            "/cg",
            "/cg/lxc/a.scope",
            "/cg/user.slice/user-1.slice/user@1.service",
            "/other/a.scope",
        ] {
            assert_eq!(unit_folder("/cg", none), None, "{none}");
        }
    }

    #[test]
    fn weighed_ancestors_end_below_the_users_slice() {
        let above = above_in_user_slice("/cg", APP);
        let names: Vec<&str> =
            above.iter().filter_map(|folder| folder.rsplit('/').next()).collect();
        assert_eq!(names, ["app-x.slice", "app.slice", "user@1000.service"]);
        let divides: Vec<bool> = above.iter().map(|folder| divides_session(folder)).collect();
        assert_eq!(divides, [false, true, true]);
        assert!(above_in_user_slice("/cg", "/cg/system.slice/x.service").is_empty());
        assert_eq!(super::above("/cg", APP).len(), 5);
    }
}
