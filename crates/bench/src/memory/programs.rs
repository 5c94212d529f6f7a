// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of the memory benchmark: one that reads a page of its own now and then, and others
//! that write all of their pages all the time.

use crate::intervals::ProcessStamps;
use crate::pages::MappedPages;
use crate::worker::{number, say_ready, word};
use anyhow::{Context, Result, ensure};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getppid, set_parent_process_death_signal, setrlimit,
};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// Buffer sizes of the measuring process and of each child.
pub(super) const OWN_BYTES: usize = 4 << 20;
pub(super) const CHILD_BYTES: usize = 12 << 20;
/// Maximum number of children.
const CHILDREN_MAX: usize = 32;
/// Sleep of the measuring process between two reads.
pub(super) const SLEEP: Duration = Duration::from_millis(100);

/// `memory-timer PROCS_FILES FILE STAMPS COUNT MS`: sleeps, reads a word of the next page of its
/// buffer, and records a time stamp.
pub(crate) fn timer(words: &[&str]) -> Result<()> {
    let path = word(words, 1)?;
    let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
    let buffer = MappedPages::of_read_only(&file)?;
    enter_all(word(words, 0)?)?;
    (0..buffer.pages()).for_each(|page| {
        std::hint::black_box(buffer.touch(page));
    });
    let stamps = ProcessStamps::begin(words, 2)?;
    stamps.repeat(|round| {
        std::thread::sleep(SLEEP);
        std::hint::black_box(buffer.touch(round));
    });
    Ok(())
}

/// `memory-children PROCS_FILES COUNT FILES SECONDS`: forks COUNT children that each write a word
/// of page after page of a buffer, over and over. Reports `ready` once each has written all of its
/// own.
pub(crate) fn children(words: &[&str]) -> Result<()> {
    let (count, files, life) = (number(words, 1)?, word(words, 2)?, number(words, 3)?);
    ensure!(count <= CHILDREN_MAX, "at most {CHILDREN_MAX} children");
    enter_all(word(words, 0)?)?;
    let (mut begun, mut begin) = std::io::pipe().context("cannot make a pipe")?;
    for number in 1..=count {
        fork(life, &format!("writer-{number}"), || write_all_the_time(files, number, &mut begin))?;
    }
    drop(begin);
    begun
        .read_exact(&mut vec![0; count])
        .context("a child ended before it had written its buffer")?;
    say_ready("")?;
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    Ok(())
}

fn write_all_the_time(files: &str, number: usize, begin: &mut impl Write) -> Result<()> {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let mut buffer = file_of(&format!("{files}.{number}"))?;
    let pages = buffer.pages();
    (0..pages).for_each(|page| buffer.fill(page));
    begin.write_all(&[1]).context("the parent has ended")?;
    loop {
        (0..pages).for_each(|page| buffer.fill(page));
    }
}

/// Makes a file for a child's buffer.
fn file_of(path: &str) -> Result<MappedPages> {
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path);
    let file = file.with_context(|| format!("cannot make {path}"))?;
    file.set_len(CHILD_BYTES as u64).with_context(|| format!("no room for {path}"))?;
    MappedPages::of_writable(&file)
}

fn enter_all(procs_files: &str) -> Result<()> {
    procs_files
        .split(':')
        .filter(|procs_file| !procs_file.is_empty())
        .try_for_each(|one| enter(Path::new(one)))
}

/// Moves this process into a control group, which accounts for its memory from now on.
pub(crate) fn enter(procs_file: &Path) -> Result<()> {
    std::fs::write(procs_file, std::process::id().to_string())
        .with_context(|| format!("cannot enter {}", procs_file.display()))
}

/// Forks a child that runs `life`. It ends with its parent and after `seconds` of CPU time.
pub(crate) fn fork(seconds: u64, name: &str, life: impl FnOnce() -> Result<()>) -> Result<Pid> {
    let parent = rustix::process::getpid();
    // SAFETY: this process has one thread, so the child may go on as its parent would.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return Pid::from_raw(child.max(0))
            .with_context(|| format!("cannot fork: {}", std::io::Error::last_os_error()));
    }
    let lived = bound(parent, seconds, name).and_then(|()| life());
    if let Err(error) = &lived {
        // In one write: its siblings may report the same at the same time.
        let line = format!("{name}: {error:#}\n");
        eprint!("{line}");
    }
    std::process::exit(i32::from(lived.is_err()))
}

fn bound(parent: Pid, seconds: u64, name: &str) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    ensure!(getppid() == Some(parent), "the parent has ended");
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds) })?;
    let name = CString::new(name).context("a name contains a zero byte")?;
    rustix::thread::set_name(&name).context("cannot set the name of the process")
}
