// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ground truth: a client that records its own time stamps, driven by keys with time
//! stamps of their injection.
//!
//! The recorder's results for the same keys are compared with these times.

use crate::priority::set_policy;
use crate::process::ProcessGroup;
use crate::session::PrivateSession;
use crate::worker::{WorkerLauncher, number, word};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;
use tipme_desktop::DisplayTarget;
use tipme_desktop::echo::EchoWindow;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::window::Watcher;
use tipme_record::Nanos;

/// Maximum wait of the client for a key.
const KEY_TIMEOUT: Duration = Duration::from_secs(20);

/// Known times of one key press.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truth {
    /// Just before the press was sent to the server.
    pub injected: Nanos,
    /// The client read the event from its socket.
    pub received: Nanos,
    /// The client had sent its drawing.
    pub drawn: Nanos,
    /// The client had the server's answer to a request behind its drawing.
    pub finished: Nanos,
}

/// `truth-client DISPLAY AUTHORITY KEYS FILE`: answers `KEYS` key presses and writes one line of
/// three times for each. Reports `ready` on the standard output once its window is mapped.
pub(crate) fn client(words: &[&str]) -> Result<()> {
    let (authority, file) = (word(words, 1)?, Path::new(word(words, 3)?));
    // Real-time priority, if allowed, so that the client's stamps are not late.
    let _ = set_policy(libc::SCHED_FIFO, 1);
    // The recorder ignores its own windows, which it recognizes by the program's name.
    rustix::thread::set_name(c"truth-client").context("cannot take a name")?;
    let target = DisplayTarget {
        authority: Some(authority.into()),
        timeout: Duration::from_secs(10),
        ..DisplayTarget::new(number(words, 0)?)
    };
    let mut window = EchoWindow::open(&target)?;
    println!("ready");
    let mut out = BufWriter::new(
        File::create(file).with_context(|| format!("cannot write {}", file.display()))?,
    );
    for _ in 0..number(words, 2)? {
        let Some(stamps) = window.next(KEY_TIMEOUT)? else { break };
        writeln!(out, "{} {} {}", stamps.received, stamps.drawn, stamps.finished)?;
    }
    out.flush().with_context(|| format!("cannot write {}", file.display()))
}

/// The client on a session's display.
pub struct TruthClient {
    process: ProcessGroup,
    file: std::path::PathBuf,
    keys: u32,
}

impl TruthClient {
    /// Starts the client and waits until its window has the focus.
    pub fn start(
        session: &PrivateSession,
        launcher: &WorkerLauncher,
        keys: u32,
    ) -> Result<TruthClient> {
        let watcher = Watcher::open(&session.target())?;
        let file = session.folder().join("truth");
        let authority = session.folder().join("authority");
        let words =
            ["truth-client".into(), session.target().display.to_string().into(), authority.into()];
        let mut words: Vec<std::ffi::OsString> = words.into();
        words.extend([keys.to_string().into(), file.clone().into()]);
        let mut command = launcher.command(None, &words)?;
        session.prepare(&mut command);
        let process = ProcessGroup::start("the truth client", command, None)?;
        watcher.wait_for_focus(process.pid(), KEY_TIMEOUT)?;
        Ok(TruthClient { process, file, keys })
    }

    /// Process of the client.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Types the keys at a pace and returns the time stamps of both sides.
    pub fn drive(mut self, session: &PrivateSession, pace: Pace) -> Result<Vec<Truth>> {
        let mut typist = Typist::open(&session.target(), pace)?;
        let injected: Result<Vec<Nanos>, _> = (0..self.keys).map(|_| typist.key('x')).collect();
        let injected = injected?;
        if self.process.wait(KEY_TIMEOUT)?.is_none() {
            bail!("the truth client did not end after its last key");
        }
        let text = std::fs::read_to_string(&self.file).context("the truth client left no times")?;
        join(&injected, &text)
    }
}

/// Combines the driver's stamps with the client's lines; the client answers in the order of the
/// keys.
fn join(injected: &[Nanos], text: &str) -> Result<Vec<Truth>> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != injected.len() {
        bail!("{} keys were sent and {} were answered", injected.len(), lines.len());
    }
    injected.iter().zip(lines).map(|(injected, line)| truth(*injected, line)).collect()
}

fn truth(injected: Nanos, line: &str) -> Result<Truth> {
    let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [received, drawn, finished] = numbers[..] else { bail!("\"{line}\" is not three times") };
    Ok(Truth {
        injected,
        received: Nanos(received),
        drawn: Nanos(drawn),
        finished: Nanos(finished),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_joined_in_order() {
        let joined = join(&[Nanos(1), Nanos(10)], "2 3 4\n11 12 13\n").expect("two lines");
        assert_eq!(
            joined[1],
            Truth {
                injected: Nanos(10),
                received: Nanos(11),
                drawn: Nanos(12),
                finished: Nanos(13)
            }
        );
    }

    #[test]
    fn a_lost_key_is_an_error() {
        let error = join(&[Nanos(1), Nanos(10)], "2 3 4\n").expect_err("one line is missing");
        assert_eq!(error.to_string(), "2 keys were sent and 1 were answered");
    }
}
