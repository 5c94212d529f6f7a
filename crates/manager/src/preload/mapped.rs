// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapped files of processes that may be remembered and read ahead.
//!
//! These are files that root has installed for everyone on a disk of this machine: programs,
//! libraries, fonts, data. Files that the user could have created or changed, or that not everyone
//! may read, may be documents; they are neither opened nor remembered.

use crate::installed;
use crate::preload::mounts::MountList;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tipme_policy::Identity;
use tipme_policy::preload::RememberedFile;
use tipme_sched::processes::{self, read_up_to};

/// Maximum number of bytes read from a list of mappings.
const MAPS_BYTES_MAX: u64 = 4 << 20;

/// A file in a list of mappings: its path may lead elsewhere in the mount namespace of the process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct MappedPath {
    path: String,
    inode: u64,
}

/// Returns the mapped files of these processes, those of the first process first.
pub(crate) fn files(
    proc: &Path,
    mounts: &MountList,
    processes: &[Identity],
) -> Vec<RememberedFile> {
    let (mut seen, all) =
        (BTreeSet::new(), processes.iter().flat_map(|process| mapped(proc, *process)));
    let distinct = all.filter(|one| seen.insert(one.clone()));
    let on_disk = distinct.filter(|one| mounts.is_on_disk(&one.path));
    let fit = on_disk.filter_map(|one| {
        let found = installed::for_everybody(Path::new(&one.path))
            .filter(|found| found.ino() == one.inode)?;
        Some(remembered(&found, one.path))
    });
    fit.collect()
}

/// Opens a file if it is still the remembered one.
pub(crate) fn open(mounts: &MountList, file: &RememberedFile) -> Option<File> {
    let path = Some(Path::new(&file.path)).filter(|_| mounts.is_on_disk(&file.path))?;
    installed::for_everybody(path).filter(|found| is_same(found, file))?;
    // Do not block on a file lease, nor on a special file that has taken its place.
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    open.metadata().is_ok_and(|found| is_same(&found, file)).then_some(open)
}

fn is_same(found: &Metadata, file: &RememberedFile) -> bool {
    found.is_file() && remembered(found, file.path.clone()) == *file
}

fn remembered(found: &Metadata, path: String) -> RememberedFile {
    RememberedFile { path, bytes: found.len(), changed_s: found.mtime() }
}

fn mapped(proc: &Path, process: Identity) -> Vec<MappedPath> {
    let bytes =
        read_up_to(&proc.join(format!("{}/maps", process.pid)), MAPS_BYTES_MAX).unwrap_or_default();
    let paths = paths(&String::from_utf8_lossy(&bytes));
    // Checked after the read, so that the list belongs to this process and not to one that reused
    // its PID.
    if processes::lives(proc, process) { paths } else { Vec::new() }
}

/// Returns the files in mapping order: the program lies lowest; the kernel places the others below
/// each other, so the first one lies highest.
fn paths(maps: &str) -> Vec<MappedPath> {
    let mut paths: Vec<MappedPath> = maps.lines().filter_map(parse).collect();
    paths.dedup();
    if let Some(others) = paths.get_mut(1..) {
        others.reverse();
    }
    paths
}

/// Parses a line such as `7f00-7f10 r-xp 00000000 fd:00 4711    /usr/lib/libc.so.6`; nothing before
/// the path contains a slash.
fn parse(line: &str) -> Option<MappedPath> {
    let at = line.find('/')?;
    let inode = line[..at].split_ascii_whitespace().nth(4)?.parse().ok()?;
    Some(MappedPath { path: line[at..].to_owned(), inode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preload::fake::{FakeKernel, SLEEP, mapping};
    use std::os::unix::fs::symlink;

    #[test]
    fn files_come_in_the_order_of_mapping() {
        let maps = [
            "/bin/a b",
            "/bin/a b",
            "[heap]",
            "/lib/third",
            "/lib/second",
            "/lib/second",
            "/lib/first",
        ];
        let maps: String = maps.map(mapping).concat();
        let found: Vec<String> = paths(&maps).into_iter().map(|one| one.path).collect();
        assert_eq!(found, ["/bin/a b", "/lib/first", "/lib/second", "/lib/third"]);
        assert_eq!(paths("damaged\n/\n\u{fffd} / / /\n"), []);
    }

    #[test]
    fn only_files_that_root_has_installed_are_remembered() {
        let kernel = FakeKernel::new();
        let (own, linked) = (kernel.proc().join("letter.pdf"), kernel.proc().join("linked"));
        std::fs::copy(SLEEP, &own).unwrap();
        symlink(SLEEP, &linked).unwrap();
        let others =
            ["/etc/shadow", "/dev/null", "/usr/bin", "/usr/bin/gone", "/usr/bin/sleep (deleted)"];
        let own = [own.to_str().unwrap(), linked.to_str().unwrap()];
        let maps: String =
            own.iter().chain(&others).chain(&[SLEEP]).map(|path| mapping(path)).collect();
        let (process, second) =
            (kernel.process(7, &maps), kernel.process(8, &mapping("/usr/bin/env")));
        let mounts = MountList::read(kernel.proc());
        let found =
            files(kernel.proc(), &mounts, &[process, Identity { start: 9, ..second }, process]);
        assert_eq!(
            found.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            [SLEEP],
            "and none of another's"
        );
        assert_eq!(found[0].bytes, std::fs::metadata(SLEEP).unwrap().len());
        assert!(
            files(kernel.proc(), &MountList::read(Path::new("/gone")), &[process]).is_empty(),
            "no disk is known"
        );
    }

    #[test]
    fn a_path_that_leads_to_another_file_here_is_not_remembered() {
        let kernel = FakeKernel::new();
        let elsewhere = mapping("/usr/bin/env").replace("/usr/bin/env", SLEEP);
        let process = kernel.process(7, &elsewhere);
        assert_eq!(files(kernel.proc(), &MountList::read(kernel.proc()), &[process]), []);
    }

    #[test]
    fn a_file_that_has_changed_or_is_another_one_is_not_opened() {
        let kernel = FakeKernel::new();
        let mounts = MountList::read(kernel.proc());
        let file = remembered(&std::fs::metadata(SLEEP).unwrap(), SLEEP.to_owned());
        assert!(open(&mounts, &file).is_some());
        assert!(open(&mounts, &RememberedFile { bytes: file.bytes + 1, ..file.clone() }).is_none());
        assert!(
            open(&mounts, &RememberedFile { changed_s: file.changed_s - 1, ..file.clone() })
                .is_none()
        );
        let fifo = kernel.proc().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR).unwrap();
        for path in ["/etc/shadow", "/dev/tty", "/proc/self/exe", "/", fifo.to_str().unwrap()] {
            let found = std::fs::symlink_metadata(path).unwrap();
            assert!(open(&mounts, &remembered(&found, path.to_owned())).is_none(), "{path}");
        }
    }
}
