// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths on file systems that lie on a disk of this machine.
//!
//! The mount list shows this without touching any of them: a look at a file of a network file
//! system, or of one served by a program, can block forever.

use std::path::Path;

/// Types of file systems on local disks, and layers on top of them.
const ON_DISK: [&str; 12] = [
    "bcachefs", "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "squashfs",
    "xfs", "zfs",
];

/// The mounts visible to this process.
pub(crate) struct MountList(Vec<SeenMount>);

/// A mount point as the kernel writes it, with the type of its storage.
struct SeenMount {
    point: String,
    on_disk: bool,
}

impl MountList {
    /// Reads the mount list; empty if that fails.
    pub(crate) fn read(proc: &Path) -> MountList {
        let text = std::fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
        MountList(text.lines().filter_map(parse).collect())
    }

    /// Returns `true` if a file with this absolute path would lie on a disk of this machine,
    /// provided that no link is on the way.
    pub(crate) fn is_on_disk(&self, path: &str) -> bool {
        if !is_plain(path) {
            return false;
        }
        let path = escaped(path);
        let above = self.0.iter().filter(|mount| Path::new(&path).starts_with(&mount.point));
        // The last of several mounts at one point is visible.
        above.max_by_key(|mount| mount.point.len()).is_some_and(|mount| mount.on_disk)
    }
}

/// Returns `true` if every part of the path leads downwards.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")))
}

/// Parses a line such as `27 1 254:0 / /mnt rw,relatime shared:1 - ext4 /dev/vda rw`.
fn parse(line: &str) -> Option<SeenMount> {
    let (mount, source) = line.split_once(" - ")?;
    let on_disk = ON_DISK.contains(&source.split(' ').next()?);
    Some(SeenMount { point: mount.split(' ').nth(4)?.to_owned(), on_disk })
}

/// Escapes a path as the kernel does in its lists.
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
        for path in [
            "/home/anna/.fonts/a",
            "/opt/my share/a",
            "/proc/1/exe",
            "/srv/a",
            "/etc/resolv.conf",
            "relative",
        ] {
            assert!(!mounts.is_on_disk(path), "{path}");
        }
        for path in ["/usr/../srv/a", "/usr/./a", "//usr/a", "/usr/", "/", ""] {
            assert!(!mounts.is_on_disk(path), "{path} may lead elsewhere");
        }
        assert!(!MountList::read(&proc.path().join("gone")).is_on_disk("/usr/lib/libc.so.6"));
    }
}
