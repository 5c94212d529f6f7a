// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which paths lead to a file system on a disk of this machine.
//!
//! The list of mounts tells it without asking any of them: looking at a file of another machine, or of a file system that
//! a program serves, can take for ever.

use std::path::Path;

/// Types of file systems whose files lie on a disk of this machine, and layers of such.
const ON_DISK: [&str; 12] =
    ["bcachefs", "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "squashfs", "xfs", "zfs"];

/// The mounts that this process sees.
pub(crate) struct MountList(Vec<SeenMount>);

/// A mount point as the kernel writes it, and whether it is on a disk.
struct SeenMount {
    point: String,
    on_disk: bool,
}

impl MountList {
    /// Empty where the list cannot be read.
    pub(crate) fn read(proc: &Path) -> MountList {
        let text = std::fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
        MountList(text.lines().filter_map(parse).collect())
    }

    /// Whether a file with this absolute path, if there is one and no link is on the way, lies on a disk of this machine.
    pub(crate) fn is_on_disk(&self, path: &str) -> bool {
        if !is_plain(path) {
            return false;
        }
        let path = escaped(path);
        let above = |mount: &&SeenMount| {
            let rest = path.strip_prefix(mount.point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of several mounts at one point the last one is seen.
        self.0.iter().filter(above).max_by_key(|mount| mount.point.len()).is_some_and(|mount| mount.on_disk)
    }
}

/// Whether a path leads nowhere but down.
fn is_plain(path: &str) -> bool {
    let down = |part| !matches!(part, "" | "." | "..");
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(down))
}

/// A line such as `27 1 254:0 / /mnt rw,relatime shared:1 - ext4 /dev/vda rw`.
fn parse(line: &str) -> Option<SeenMount> {
    let (mount, source) = line.split_once(" - ")?;
    let on_disk = ON_DISK.contains(&source.split(' ').next()?);
    Some(SeenMount { point: mount.split(' ').nth(4)?.to_owned(), on_disk })
}

/// A path as the kernel writes it into its lists.
fn escaped(path: &str) -> String {
    path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = r"
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:21 / /proc rw - proc proc rw
22 20 0:40 / /home rw shared:3 - nfs4 server:/home rw
23 20 0:41 / /opt/my\040share rw - fuse.sshfs server rw
24 20 8:2 / /opt rw - xfs /dev/sdb rw
25 20 8:3 / /srv rw - xfs /dev/sdc rw
26 25 0:42 / /srv rw - cifs server rw
27 20 0:43 /resolv.conf /etc/resolv.conf rw - tmpfs tmpfs rw
damaged
";

    #[test]
    fn only_files_on_a_disk_of_this_machine_count() {
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir(proc.path().join("self")).unwrap();
        std::fs::write(proc.path().join("self/mountinfo"), MOUNTS).unwrap();
        let mounts = MountList::read(proc.path());
        for path in ["/usr/lib/libc.so.6", "/opt/a", "/homestead/a", "/opt/my shares/a"] {
            assert!(mounts.is_on_disk(path), "{path}");
        }
        for path in ["/home/anna/.fonts/a", "/opt/my share/a", "/proc/1/exe", "/srv/a", "/etc/resolv.conf", "relative"]
        {
            assert!(!mounts.is_on_disk(path), "{path}");
        }
        for path in ["/usr/../srv/a", "/usr/./a", "//usr/a", "/usr/", "/", ""] {
            assert!(!mounts.is_on_disk(path), "{path} may lead elsewhere");
        }
        assert!(!MountList::read(&proc.path().join("gone")).is_on_disk("/usr/lib/libc.so.6"));
    }
}
