// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two semaphores in a file that two processes map: one for the request, one for the answer.

use super::work::TIMEOUT;
use anyhow::{Context, Result, bail};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::path::Path;

/// Bytes of the file: one page.
const BYTES: usize = 4096;
/// The answer's place, on a cache line of its own.
const ANSWER_AT: usize = 64;

/// The pair, mapped.
pub(in crate::selftest) struct Pair {
    page: *mut libc::c_void,
}

impl Pair {
    /// Makes the file, with both semaphores at zero.
    pub(super) fn make(path: &Path) -> Result<Pair> {
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        file.set_len(BYTES as u64)?;
        let pair = Pair::map(&file)?;
        for semaphore in [pair.request(), pair.reply()] {
            // SAFETY: the semaphore lies within the mapped page and nobody uses it before it is made.
            if unsafe { libc::sem_init(semaphore, 1, 0) } != 0 {
                bail!("cannot make a semaphore: {}", std::io::Error::last_os_error());
            }
        }
        Ok(pair)
    }

    /// Maps a file that [`Pair::make`] has made.
    pub(in crate::selftest) fn open(path: &Path) -> Result<Pair> {
        let file = File::options().read(true).write(true).open(path);
        Pair::map(&file.with_context(|| format!("cannot open {}", path.display()))?)
    }

    fn map(file: &File) -> Result<Pair> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice takes nobody's memory.
        let page = unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, file, 0) };
        Ok(Pair { page: page.context("cannot map the semaphores")? })
    }

    fn request(&self) -> *mut libc::sem_t {
        self.page.cast()
    }

    fn reply(&self) -> *mut libc::sem_t {
        self.page.wrapping_byte_add(ANSWER_AT).cast()
    }

    /// Asks the other process, and waits for it.
    pub(in crate::selftest) fn ask(&self) -> Result<()> {
        release(self.request())?;
        acquire(self.reply())
    }

    pub(super) fn wait_for_request(&self) -> Result<()> {
        acquire(self.request())
    }

    pub(super) fn answer(&self) -> Result<()> {
        release(self.reply())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: the page was mapped by this value, and nothing points into it any more.
        let _ = unsafe { munmap(self.page, BYTES) };
    }
}

fn release(semaphore: *mut libc::sem_t) -> Result<()> {
    // SAFETY: the semaphore lies in a page that stays mapped during the call.
    if unsafe { libc::sem_post(semaphore) } != 0 {
        bail!("cannot release a semaphore: {}", std::io::Error::last_os_error());
    }
    Ok(())
}

/// Waits for a semaphore, for as long as one process waits for another's bytes.
fn acquire(semaphore: *mut libc::sem_t) -> Result<()> {
    let now = clock_gettime(ClockId::Realtime);
    let end = libc::timespec { tv_sec: now.tv_sec + TIMEOUT.as_secs() as i64, tv_nsec: now.tv_nsec };
    // SAFETY: the semaphore lies in a page that stays mapped during the call, and the time lives as long.
    while unsafe { libc::sem_timedwait(semaphore, &end) } != 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("the semaphore was not released");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_asks_and_the_other_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("semaphores");
        let server = Pair::make(&path).expect("a pair");
        let asking = std::thread::spawn(move || Pair::open(&path).and_then(|pair| pair.ask()));
        server.wait_for_request().expect("a request");
        server.answer().expect("an answer");
        asking.join().expect("no panic").expect("it was answered");
    }
}
