// SPDX-License-Identifier: MIT OR Apache-2.0
//! Has the kernel count what its programs cost, by a process that has the right to it and no other.
//!
//! To switch the count on takes `SYS_ADMIN`, with which nearly everything can be done, also with kernel programs. So a
//! recorder starts that process before it gives the capability up.

use crate::seal::Sealer;
use rustix::fs::{OFlags, fcntl_setfl};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tipme_confine::NOBODY;
use tipme_control::journal::{self, JournalEvent};
use tipme_kernel::{BEGIN, COUNTED_BYTES, END};
use tipme_record::Nanos;

/// Who counts, for as long as the recorder lives: it ends when nobody is left who could tell it to.
pub(crate) struct CounterProcess(Option<CounterLink>);

struct CounterLink {
    orders: ChildStdin,
    answers: ChildStdout,
    _child: Child,
}

impl CounterProcess {
    /// Where it cannot be started, nothing is counted, which is told.
    pub(crate) fn start(sealer: &Sealer) -> CounterProcess {
        let link = match sealer {
            Sealer::Program(program) => CounterLink::start(program),
            #[cfg(test)]
            Sealer::Here => return CounterProcess(None),
        };
        CounterProcess(link.map_err(|error| missing(&format!("nobody counts: {error}"))).ok())
    }

    pub(crate) fn begin(&mut self) {
        self.order(BEGIN);
    }

    pub(crate) fn end(&mut self) {
        self.order(END);
    }

    /// How long it was counted since the last time that this was asked. It is not waited for.
    pub(crate) fn counted(&mut self) -> Nanos {
        let Some(link) = &mut self.0 else { return Nanos(0) };
        let mut counted = [0; COUNTED_BYTES];
        match link.answers.read(&mut counted) {
            Ok(COUNTED_BYTES) if counted == [0; COUNTED_BYTES] => self.give_up("the kernel refuses to count"),
            Ok(COUNTED_BYTES) => return Nanos(u64::from_le_bytes(counted)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => self.give_up("who counted has ended"),
        }
        Nanos(0)
    }

    fn order(&mut self, order: u8) {
        if self.0.as_mut().is_some_and(|link| link.orders.write_all(&[order]).is_err()) {
            self.give_up("who counted has ended");
        }
    }

    fn give_up(&mut self, why: &str) {
        self.0 = None;
        missing(why);
    }
}

fn missing(why: &str) {
    journal::info(format!("not recorded: cost ({why})")).event(JournalEvent::NotRecorded).tell();
}

impl CounterLink {
    fn start(program: &Path) -> std::io::Result<CounterLink> {
        let mut command = Command::new(program);
        command.args(["count", "--user", &NOBODY.to_string(), "--seconds", &u32::MAX.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        fcntl_setfl(&answers, OFlags::NONBLOCK)?;
        Ok(CounterLink { orders, answers, _child: child })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::program;
    use std::time::{Duration, Instant};

    fn counter(script: &str) -> (tempfile::TempDir, CounterProcess) {
        let dir = tempfile::TempDir::new().unwrap();
        let counter = CounterProcess::start(&Sealer::Program(program(&dir, script)));
        (dir, counter)
    }

    /// Asks until there is an answer, or nobody who could give one.
    fn answer(counter: &mut CounterProcess) -> Nanos {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let counted = counter.counted();
            if counted != Nanos(0) || counter.0.is_none() {
                return counted;
            }
            assert!(Instant::now() < until, "there is no answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn who_counts_is_told_and_heard_and_not_waited_for() {
        let words = "count --user 65534 --seconds 4294967295";
        let say = r"head -c 2 > ${0}.heard; printf '\001\002\0\0\0\0\0\0'; exec sleep 600";
        let (dir, mut counter) = counter(&format!("[ \"$*\" = '{words}' ] || exit 2; {say}"));
        counter.begin();
        assert_eq!(counter.counted(), Nanos(0), "it is not waited for");
        counter.end();
        assert_eq!(answer(&mut counter), Nanos(0x201));
        assert_eq!(std::fs::read(dir.path().join("program.heard")).unwrap(), [BEGIN, END]);
        let mut child = counter.0.take().map(|link| link._child).unwrap();
        child.kill().and_then(|()| child.wait()).unwrap();
    }

    #[test]
    fn who_cannot_count_is_asked_no_more() {
        for script in ["exit 2", r"printf '\0\0\0\0\0\0\0\0'; exec sleep 1"] {
            let (_dir, mut counter) = counter(script);
            counter.begin();
            assert_eq!((answer(&mut counter), counter.0.is_none()), (Nanos(0), true), "{script}");
            counter.begin();
        }
        assert!(CounterProcess::start(&Sealer::Program("/no/such".into())).0.is_none());
    }
}
