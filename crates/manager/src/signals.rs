// SPDX-License-Identifier: MIT OR Apache-2.0
//! SIGINT and SIGTERM as something that `poll` can watch.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Becomes readable when a signal has come.
pub(crate) struct Signals(UnixStream);

impl Signals {
    pub(crate) fn catch() -> Result<Signals> {
        let (read, write) = UnixStream::pair().context("cannot make a pipe for signals")?;
        read.set_nonblocking(true).context("cannot make a pipe for signals")?;
        for signal in [SIGINT, SIGTERM] {
            let write = write.try_clone().context("cannot make a pipe for signals")?;
            signal_hook::low_level::pipe::register(signal, write)
                .with_context(|| format!("cannot catch signal {signal}"))?;
        }
        Ok(Signals(read))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Whether one has come since the last call.
    pub(crate) fn have_come(&self) -> bool {
        (&self.0).read(&mut [0; 64]).is_ok_and(|count| count > 0)
    }
}
