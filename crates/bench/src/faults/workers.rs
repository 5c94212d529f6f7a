// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worker programs of the faults, for what no installed program does.

use super::writers;
use crate::worker::{WorkerProgram, limit_life, millis, number, say_ready, word};
use anyhow::{Context, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::sleep;
use std::time::Duration;
use tipme_desktop::DisplayTarget;
use tipme_desktop::grab::grab_server;

/// By name.
pub(crate) const PROGRAMS: &[(&str, WorkerProgram)] =
    &[("grab", grab), ("server", server), ("writers", writers::run)];

/// Longest wait for the X server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `server`: takes connections to a port that it reports, and closes them.
fn server(_: &[&str]) -> Result<()> {
    limit_life();
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).context("cannot listen")?;
    say_ready(&listener.local_addr()?.port().to_string())?;
    listener.incoming().try_for_each(|stream| stream.map(drop)).context("cannot take a connection")
}

/// `grab DISPLAY AUTHORITY MS`: the X server serves nobody else for a time.
fn grab(words: &[&str]) -> Result<()> {
    limit_life();
    let (authority, time) = (Some(word(words, 1)?.into()), millis(words, 2)?);
    let display = DisplayTarget::new(number(words, 0)?);
    let target = DisplayTarget { authority, timeout: TIMEOUT, ..display };
    grab_server(&target, || say_ready("").map(|()| sleep(time)))?
}
