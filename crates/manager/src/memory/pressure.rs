// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory pressure (PSI) of the machine and of a control group.

use std::path::{Path, PathBuf};
use tipme_record::proc_text::{cgroup_mounts, control_group};
use tipme_sched::full_average;

/// Returns the mount point of the cgroup v2 hierarchy, if it is mounted.
pub(super) fn hierarchy(proc: &Path) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string(proc.join("self/mountinfo")).ok()?;
    cgroup_mounts(&mounts).find(|mount| mount.unified).map(|mount| mount.mount.into())
}

/// Returns the percentage of the last ten seconds in which all tasks of the process's control group
/// waited for memory. Returns `None` without a group of its own, or without PSI.
pub(super) fn full_percent(proc: &Path, hierarchy: &Path, pid: u32) -> Option<f32> {
    let groups = std::fs::read_to_string(proc.join(format!("{pid}/cgroup"))).ok()?;
    let group = control_group(&groups)?.strip_prefix('/').filter(|group| !group.is_empty())?;
    // A group outside of this process's view.
    if group.split('/').any(|part| part == "..") {
        return None;
    }
    full_average(&std::fs::read_to_string(hierarchy.join(group).join("memory.pressure")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_pressure_is_that_of_the_process_s_group() {
        let root = tempfile::tempdir().expect("a folder can be made");
        let (proc, mount) = (root.path().join("proc"), root.path().join("cg"));
        for folder in [proc.join("self"), proc.join("7"), proc.join("8"), mount.join("a/hog-7-1")] {
            fs::create_dir_all(folder).expect("it can be made");
        }
        let mounts = format!(
            "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             30 20 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
            mount.display()
        );
        for (path, text) in [
            (proc.join("self/mountinfo"), mounts.as_str()),
            (proc.join("7/cgroup"), "1:name=systemd:/x\n0::/a/hog-7-1\n"),
            (proc.join("8/cgroup"), "0::/\n"),
            (
                mount.join("a/hog-7-1/memory.pressure"),
                "some avg10=99.00 avg60=0.00 avg300=0.00 total=9\n\
                 full avg10=87.50 avg60=0 avg300=0 total=9\n",
            ),
        ] {
            fs::write(path, text).expect("it can be written");
        }
        let found = hierarchy(&proc).expect("it is mounted");
        assert_eq!(full_percent(&proc, &found, 7), Some(87.5));
        assert_eq!((full_percent(&proc, &found, 8), full_percent(&proc, &found, 9)), (None, None));
        assert_eq!(full_average("full avg10=NaN avg60=0"), None);
    }
}
