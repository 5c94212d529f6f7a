// SPDX-License-Identifier: MIT OR Apache-2.0
//! The naming process, which can read only the files that the incident's owner can read.
//!
//! A path may be chosen by the process that maps the file. So its type is checked before it is
//! opened, and only a regular file is opened. It counts as the mapped file only if the kernel
//! reports the same device and inode for a mapping of it as for that of the process; those from
//! `stat` may differ, as on btrfs and overlayfs.

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

/// Number of naming threads: as many files must hang to block the others.
const THREADS: usize = 4;
/// Maximum number of open files: three per thread (the path, the file itself and the own mappings),
/// and the own memory.
pub const NAMER_FILES: u32 = 3 * THREADS as u32 + 1;

/// Opens the memory of this process, which contains the vDSO. Call before dropping privileges.
///
/// # Errors
/// If there is no /proc.
pub fn own_memory() -> io::Result<File> {
    File::open("/proc/self/mem")
}

/// Reads the questions, and writes a line with the names of each module.
///
/// # Errors
/// If the questions cannot be read.
pub fn name(questions: impl Read, answers: impl Write + Send, memory: Option<&File>) -> Result<()> {
    let modules: Vec<Module> =
        serde_json::from_reader(questions).context("cannot read the addresses to name")?;
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(answers));
    thread::scope(|scope| {
        for _ in 1..THREADS.min(modules.len()) {
            // If the user may not have more threads, there are fewer.
            thread::Builder::new()
                .spawn_scoped(scope, || answer_all(&modules, &next, &answers, memory))
                .ok();
        }
        answer_all(&modules, &next, &answers, memory);
    });
    Ok(())
}

/// Names modules that no other thread has taken; ends if the answers cannot be written.
fn answer_all(
    modules: &[Module],
    next: &AtomicUsize,
    answers: &Mutex<impl Write>,
    memory: Option<&File>,
) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(module) = modules.get(number) else { return };
        let answer: Answer = (number, module.names(memory));
        let Ok(mut line) = serde_json::to_vec(&answer) else { return };
        line.push(b'\n');
        if answers.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line).is_err() {
            return;
        }
    }
}

impl Module {
    fn names(&self, memory: Option<&File>) -> Vec<Option<String>> {
        let names = match self.file {
            None => memory.and_then(|file| {
                let base = kernels_code()?;
                Some(Image { file, base }.names(&self.offsets))
            }),
            Some(key) => self
                .places
                .iter()
                .find_map(|place| place.open(key))
                .map(|file| Image { file: &file, base: 0 }.names(&self.offsets)),
        };
        let Some(names) = names else { return vec![None; self.offsets.len()] };
        names.into_iter().map(|name| Some(readable(&name?))).collect()
    }
}

/// Returns the address of the vDSO in this process; its code is the same in all.
fn kernels_code() -> Option<u64> {
    let maps = maps(std::process::id());
    maps.lines()
        .filter_map(Mapping::parse)
        .find(|mapping| mapping.path == VDSO)
        .map(|own| own.start)
}

impl ModulePath {
    /// Opens the file if it has this key: by its path as the process sees it, if accessible, or as
    /// this process does, or as the executable of the process, which has no path once it is
    /// replaced.
    fn open(&self, key: Key) -> Option<File> {
        let ModulePath { pid, path } = self;
        let paths = [format!("/proc/{pid}/root{path}"), path.clone(), format!("/proc/{pid}/exe")];
        paths.iter().filter_map(|path| regular(path)).find(|file| is_mapped_as(file, key))
    }
}

/// Opens a regular file. Opening another kind may change its state, so the type is checked first.
/// O_NONBLOCK skips the wait for a file lease.
fn regular(path: &str) -> Option<File> {
    let found = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let kind =
        statx(&found, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    if FileType::from_raw_mode(kind.stx_mode.into()) != FileType::RegularFile {
        return None;
    }
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, again, flags, Mode::empty()).ok().map(File::from)
}

/// Returns `true` if the kernel reports this key for a mapping of the file.
fn is_mapped_as(file: &File, key: Key) -> bool {
    let Ok(mapped) = Mapped::new(file) else { return false };
    let maps = maps(std::process::id());
    let own =
        maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.start == mapped.0 as u64);
    own.is_some_and(|own| own.file == key)
}

/// Mapping of the first page of a file, never accessed, since its owner can truncate it at any
/// time.
struct Mapped(*mut c_void);

impl Mapped {
    fn new(file: &File) -> rustix::io::Result<Mapped> {
        // SAFETY: the kernel chooses an unused address.
        unsafe { mmap(std::ptr::null_mut(), 1, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }
            .map(Mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference to it exists.
        unsafe { munmap(self.0, 1) }.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Modules;
    use std::collections::BTreeSet;
    use std::os::unix::fs::{MetadataExt, symlink};

    /// Returns the symbol section for these addresses of this process.
    fn named(addresses: impl IntoIterator<Item = u64>) -> String {
        let mut modules = Modules::default();
        modules.add(0, std::process::id(), &addresses.into_iter().collect::<BTreeSet<u64>>());
        let mut answers = Vec::new();
        name(modules.questions().as_slice(), &mut answers, own_memory().ok().as_ref())
            .expect("they are questions");
        String::from_utf8_lossy(&modules.read_answers(&answers)).into_owned()
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

    /// Returns a file that this process maps, and its key.
    fn own_file() -> (String, Key) {
        let maps = maps(std::process::id());
        let own =
            maps.lines().filter_map(Mapping::parse).find(|mapping| mapping.path.starts_with('/'));
        own.map(|own| (own.path.to_owned(), own.file)).expect("a test has a file")
    }

    #[test]
    fn only_the_very_file_is_opened_and_only_a_regular_one() {
        let (path, (device, inode)) = own_file();
        // A process that does not exist.
        let own = ModulePath { pid: u32::MAX, path: path.clone() };
        let opened = own.open((device, inode)).expect("it is the file");
        assert_eq!(opened.metadata().expect("it is open").ino(), inode);
        for key in [(device, inode + 1), (device + 1, inode)] {
            assert!(own.open(key).is_none(), "another file");
        }
        let dir = tempfile::TempDir::new().expect("a folder can be made");
        let (copy, fifo, link) =
            (dir.path().join("copy"), dir.path().join("fifo"), dir.path().join("link"));
        std::fs::copy(&path, &copy).expect("it can be copied");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, mode, 0)
            .expect("a pipe can be made");
        symlink("/dev/zero", &link).expect("a link can be made");
        for other in [&copy, &fifo, &link, dir.path()] {
            let path = other.to_string_lossy().into_owned();
            let other = ModulePath { pid: u32::MAX, path };
            assert!(other.open((device, inode)).is_none(), "{}", other.path);
        }
    }

    #[test]
    fn a_deleted_executable_is_found_by_its_process() {
        let exe = std::env::current_exe().expect("a test has a file");
        let maps = maps(std::process::id());
        let own = maps
            .lines()
            .filter_map(Mapping::parse)
            .find(|mapping| mapping.path == exe.to_string_lossy());
        let gone = ModulePath { pid: std::process::id(), path: "/no/such (deleted)".to_owned() };
        assert!(gone.open(own.expect("it is mapped").file).is_some());
    }
}
