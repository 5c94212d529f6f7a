// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who names functions: a process that may read what the user who marked may read, and nothing else.
//!
//! A path comes from a process that may have chosen it. So it is looked at before it is opened, and only a regular file
//! is; and it is taken for the mapped file only where the kernel says the same of a mapping of it as it says of the
//! process's. What `stat` says of it can differ from that, as on btrfs and overlayfs.

use super::elf::Image;
use super::modules::{Answer, Key, Module, ModulePath, VDSO};
use super::names::readable;
use crate::processes::{Mapping, maps};
use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, openat, statx};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Threads that name at once, so that a file that does not answer holds up the others only where there are as many.
const THREADS: usize = 4;
/// Files that all of them have open at once, each what a path leads to, the file itself and the own mappings; and the
/// own memory.
pub const NAMER_FILES: u32 = 3 * THREADS as u32 + 1;

/// The memory of this process, where the kernel's own code lies: to be opened before rights are given up.
///
/// # Errors
/// Where there is no /proc.
pub fn own_memory() -> io::Result<File> {
    File::open("/proc/self/mem")
}

/// Reads what is to be named, and writes a line with the names of each module.
///
/// # Errors
/// Where it cannot be read.
pub fn name(questions: impl Read, answers: impl Write + Send, memory: Option<&File>) -> Result<()> {
    let modules: Vec<Module> = serde_json::from_reader(questions).context("cannot read what is to be named")?;
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(answers));
    let work = || {
        while let Some((number, module)) = take(&modules, &next) {
            let answer: Answer = (number, module.names(memory));
            let Ok(mut line) = serde_json::to_vec(&answer) else { return };
            line.push(b'\n');
            if answers.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..THREADS.min(modules.len()) {
            // Where the user may have no more of them, there are fewer.
            thread::Builder::new().spawn_scoped(scope, work).ok();
        }
        work();
    });
    Ok(())
}

fn take<'a>(modules: &'a [Module], next: &AtomicUsize) -> Option<(usize, &'a Module)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    modules.get(number).map(|module| (number, module))
}

impl Module {
    fn names(&self, memory: Option<&File>) -> Vec<Option<String>> {
        let names = |file: &File, base| Image { file, base }.names(&self.offsets);
        let names = match self.file {
            None => memory.and_then(|memory| Some(names(memory, kernels_code()?))),
            Some(key) => self.places.iter().find_map(|place| place.open(key)).map(|file| names(&file, 0)),
        };
        let readable = |name: Option<String>| name.map(|name| readable(&name));
        names.map_or_else(|| vec![None; self.offsets.len()], |names| names.into_iter().map(readable).collect())
    }
}

/// Where the code lies that the kernel brings to this process; it is the same in all.
fn kernels_code() -> Option<u64> {
    let maps = maps(std::process::id());
    maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.path == VDSO).map(|own| own.start)
}

impl ModulePath {
    /// The file, if it is the one: as the process sees it where that may be known, as this one does, or as what the
    /// process runs, which has no path any more where it was replaced.
    fn open(&self, key: Key) -> Option<File> {
        let ModulePath { pid, path } = self;
        let paths = [format!("/proc/{pid}/root{path}"), path.clone(), format!("/proc/{pid}/exe")];
        paths.iter().filter_map(|path| regular(path)).find(|file| is_mapped_as(file, key))
    }
}

/// A regular file. To open another one can change its state, so it is looked at first. Its owner may hold a lease on it,
/// which is not waited for.
fn regular(path: &str) -> Option<File> {
    let found = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let kind = statx(&found, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    if FileType::from_raw_mode(kind.stx_mode.into()) != FileType::RegularFile {
        return None;
    }
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, again, flags, Mode::empty()).ok().map(File::from)
}

/// Whether the kernel says this of a mapping of the file.
fn is_mapped_as(file: &File, key: Key) -> bool {
    let Ok(mapped) = Mapped::of(file) else { return false };
    let maps = maps(std::process::id());
    let own = maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.start == mapped.0 as u64);
    own.is_some_and(|own| own.file == key)
}

/// The first page of a file in memory, where nobody looks: its owner can take it away at any time.
struct Mapped(*mut c_void);

impl Mapped {
    fn of(file: &File) -> rustix::io::Result<Mapped> {
        // SAFETY: the kernel chooses a place where nothing lies.
        unsafe { mmap(std::ptr::null_mut(), 1, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }.map(Mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nobody has looked at it.
        unsafe { munmap(self.0, 1) }.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Modules;
    use std::collections::BTreeSet;
    use std::os::unix::fs::{MetadataExt, symlink};

    /// The symbol section for these addresses of this process.
    fn named(addresses: impl IntoIterator<Item = u64>) -> String {
        let mut modules = Modules::default();
        modules.add(0, std::process::id(), &addresses.into_iter().collect::<BTreeSet<u64>>());
        let mut answers = Vec::new();
        name(modules.questions().as_slice(), &mut answers, own_memory().ok().as_ref()).expect("they are questions");
        String::from_utf8_lossy(&modules.hear(&answers)).into_owned()
    }

    #[test]
    fn own_functions_are_named() {
        let text = named([own_functions_are_named as *const () as u64]);
        assert!(text.contains("own_functions_are_named"), "{text}");
        let maps = maps(std::process::id());
        let vdso = maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.path == VDSO);
        let vdso = vdso.expect("the kernel maps its code");
        let all = named((vdso.start..vdso.end).step_by(16));
        assert!(all.contains("clock_gettime") && all.contains("[vdso]"));
    }

    /// A file that this process maps, and what the kernel says of it.
    fn own_file() -> (String, Key) {
        let maps = maps(std::process::id());
        let own = maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.path.starts_with('/'));
        own.map(|own| (own.path.to_owned(), own.file)).expect("a test has a file")
    }

    #[test]
    fn only_the_very_file_is_opened_and_only_a_regular_one() {
        let (path, (device, inode)) = own_file();
        // Of a process that there is not.
        let at = |path: &str| ModulePath { pid: u32::MAX, path: path.to_owned() };
        let opened = at(&path).open((device, inode)).expect("it is the file");
        assert_eq!(opened.metadata().expect("it is open").ino(), inode);
        for key in [(device, inode + 1), (device + 1, inode)] {
            assert!(at(&path).open(key).is_none(), "another file");
        }
        let dir = tempfile::TempDir::new().expect("a folder can be made");
        let (copy, fifo, link) = (dir.path().join("copy"), dir.path().join("fifo"), dir.path().join("link"));
        std::fs::copy(&path, &copy).expect("it can be copied");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, mode, 0).expect("a pipe can be made");
        symlink("/dev/zero", &link).expect("a link can be made");
        for other in [&copy, &fifo, &link, dir.path()] {
            assert!(at(&other.to_string_lossy()).open((device, inode)).is_none(), "{}", other.display());
        }
    }

    #[test]
    fn what_a_process_runs_is_found_where_its_path_is_gone() {
        let exe = std::env::current_exe().expect("a test has a file");
        let maps = maps(std::process::id());
        let own = maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.path == exe.to_string_lossy());
        let gone = ModulePath { pid: std::process::id(), path: "/no/such (deleted)".to_owned() };
        assert!(gone.open(own.expect("it is mapped").file).is_some());
    }
}
