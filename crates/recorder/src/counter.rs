// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control of the process that has the kernel count the run time of its programs, attaches standby
//! programs, and samples CPUs that went offline and came back. Only that process has the privilege.
//!
//! Enabling the count takes `CAP_SYS_ADMIN`, which allows nearly everything, kernel programs
//! included. So the recorder starts that process before it drops the capability, and passes it the
//! programs that it may attach.

use crate::seal::Sealer;
use rustix::fs::{OFlags, fcntl_setfl};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tipme_confine::NOBODY;
use tipme_control::journal::{self, JournalEvent};
use tipme_kernel::{COUNTED_BYTES, CounterOrder, Detail, SampleClock, StandbyPrograms};
use tipme_record::Nanos;

/// The counter process. It lives as long as the recorder: it exits when its order pipe is closed.
pub(crate) struct CounterProcess {
    link: Option<CounterLink>,
    standby: Vec<Standby>,
    /// CPUs ordered to be sampled, and those found unsampled since the last query.
    sampled: BTreeSet<u16>,
    unsampled: Vec<u16>,
}

struct CounterLink {
    orders: ChildStdin,
    answers: ChildStdout,
    _child: Child,
}

/// Programs of a detail, with their desired state.
struct Standby {
    detail: Detail,
    on: bool,
    /// The kernel refused to attach them.
    refused: bool,
}

impl CounterProcess {
    /// Starts the process. If that fails, nothing is counted, which the log reports.
    pub(crate) fn start(
        sealer: &Sealer,
        standby: &[StandbyPrograms],
        clock: Option<SampleClock>,
    ) -> CounterProcess {
        let link = match sealer {
            Sealer::Program(program) => {
                let link = CounterLink::start(program, standby, clock);
                link.map_err(|error| {
                    missing(&format!("cannot start the counting process: {error}"))
                })
                .ok()
            }
            #[cfg(test)]
            Sealer::Here => None,
        };
        let standby =
            standby.iter().map(|one| Standby { detail: one.detail, on: false, refused: false });
        CounterProcess {
            link,
            standby: standby.collect(),
            sampled: BTreeSet::new(),
            unsampled: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self) {
        self.order(CounterOrder::Begin);
    }

    pub(crate) fn end(&mut self) {
        self.order(CounterOrder::End);
    }

    /// Attaches the programs of these details, and detaches all others.
    pub(crate) fn attach(&mut self, details: &[Detail]) {
        for place in 0..self.standby.len() {
            let Some(one) = self.standby.get_mut(place) else { return };
            let wanted = details.contains(&one.detail);
            if std::mem::replace(&mut one.on, wanted) != wanted {
                let order = if wanted { CounterOrder::Attach } else { CounterOrder::Detach };
                self.order(order(place as u8));
            }
        }
    }

    /// Orders samples of CPUs that changed state. Returns those that are not sampled: the kernel
    /// refused, or the process has ended.
    pub(crate) fn sample(&mut self, cpus: Vec<u16>) -> Vec<u16> {
        for cpu in cpus {
            self.sampled.insert(cpu);
            self.order(CounterOrder::Sample(cpu));
        }
        if self.link.is_none() {
            self.unsampled.extend(std::mem::take(&mut self.sampled));
        }
        std::mem::take(&mut self.unsampled)
    }

    /// Returns the reason why a detail that needs programs is unavailable.
    pub(crate) fn lacks(&self, detail: Detail) -> Option<&'static str> {
        let one = self.standby.iter().find(|one| one.detail == detail)?;
        match (self.link.is_some(), one.refused) {
            (false, _) => Some(
                "the process that attaches the programs has ended; restart the recorder with --detail",
            ),
            (true, true) => Some("the kernel does not let its programs be attached"),
            (true, false) => None,
        }
    }

    /// Returns the time counted since the last call, without waiting for an answer.
    pub(crate) fn counted(&mut self) -> Nanos {
        let Some(link) = &mut self.link else { return Nanos(0) };
        let mut answer = [0; COUNTED_BYTES];
        match link.answers.read(&mut answer) {
            Ok(COUNTED_BYTES) => return self.read_count(u64::from_le_bytes(answer)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => self.give_up("the counting process has ended"),
        }
        Nanos(0)
    }

    /// Returns the time that an answer reports, or handles its refusal.
    fn read_count(&mut self, answer: u64) -> Nanos {
        match CounterOrder::refused(answer) {
            Some(order) => self.refuse(order),
            None if answer == 0 => self.give_up("the kernel refuses to count"),
            None => return Nanos(answer),
        }
        Nanos(0)
    }

    fn refuse(&mut self, order: CounterOrder) {
        match order {
            CounterOrder::Attach(place) => {
                let Some(one) = self.standby.get_mut(usize::from(place)) else { return };
                one.refused = true;
                let words = format!(
                    "not recorded: {} (the kernel refuses the programs)",
                    one.detail.name()
                );
                journal::info(words).event(JournalEvent::NotRecorded).tell();
            }
            CounterOrder::Sample(cpu) => self.unsampled.push(cpu),
            CounterOrder::Begin | CounterOrder::End | CounterOrder::Detach(_) => {}
        }
    }

    fn order(&mut self, order: CounterOrder) {
        if self.link.as_mut().is_some_and(|link| link.orders.write_all(&order.bytes()).is_err()) {
            self.give_up("the counting process has ended");
        }
    }

    fn give_up(&mut self, why: &str) {
        self.link = None;
        missing(why);
    }
}

fn missing(why: &str) {
    journal::info(format!("not recorded: cost ({why})")).event(JournalEvent::NotRecorded).tell();
}

impl CounterLink {
    fn start(
        program: &Path,
        standby: &[StandbyPrograms],
        clock: Option<SampleClock>,
    ) -> std::io::Result<CounterLink> {
        let mut command = Command::new(program);
        command.args(["count", "--user", &NOBODY.to_string(), "--seconds", &u32::MAX.to_string()]);
        for one in standby {
            command
                .arg("--standby")
                .arg(one.ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
        }
        if let Some(clock) = clock {
            command.args([
                "--sample",
                &clock.program.to_string(),
                "--hertz",
                &clock.hertz.to_string(),
            ]);
        }
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
        let clock = Some(SampleClock { program: 6, hertz: 99 });
        let counter =
            CounterProcess::start(&Sealer::Program(program(&dir, script)), &standby(), clock);
        (dir, counter)
    }

    fn standby() -> Vec<StandbyPrograms> {
        vec![
            StandbyPrograms { detail: Detail::Writers, ids: vec![7] },
            StandbyPrograms { detail: Detail::Memory, ids: vec![8, 9] },
        ]
    }

    fn heard(dir: &tempfile::TempDir) -> Vec<u8> {
        std::fs::read(dir.path().join("program.heard")).unwrap()
    }

    /// Polls until there is an answer or the process has ended.
    fn answer(counter: &mut CounterProcess) -> Nanos {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let counted = counter.counted();
            if counted != Nanos(0) || counter.link.is_none() {
                return counted;
            }
            assert!(Instant::now() < until, "there is no answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_counting_process_is_used_without_waiting_for_it() {
        let words = "count --user 65534 --seconds 4294967295 --standby 7 --standby 8,9 --sample 6 --hertz 99";
        let say = r"head -c 6 > ${0}.heard; printf '\001\002\0\0\0\0\0\0'; exec sleep 600";
        let (dir, mut counter) = counter(&format!("[ \"$*\" = '{words}' ] || exit 2; {say}"));
        counter.begin();
        assert_eq!(counter.counted(), Nanos(0), "it is not waited for");
        counter.end();
        assert_eq!(answer(&mut counter), Nanos(0x201));
        assert_eq!(
            heard(&dir),
            [CounterOrder::Begin, CounterOrder::End].map(CounterOrder::bytes).concat()
        );
        let mut child = counter.link.take().map(|link| link._child).unwrap();
        child.kill().and_then(|()| child.wait()).unwrap();
    }

    #[test]
    fn a_process_that_cannot_count_is_asked_no_more() {
        for script in ["exit 2", r"printf '\0\0\0\0\0\0\0\0'; exec sleep 1"] {
            let (_dir, mut counter) = counter(script);
            counter.begin();
            assert_eq!(
                (answer(&mut counter), counter.link.is_none()),
                (Nanos(0), true),
                "{script}"
            );
            counter.begin();
        }
        let mut nobody = CounterProcess::start(&Sealer::Program("/no/such".into()), &[], None);
        assert!(nobody.link.is_none());
        assert_eq!(nobody.sample(vec![3]), [3]);
    }

    #[test]
    fn programs_are_attached_while_their_detail_is_asked_for() {
        let refuse = r"head -c 12 > ${0}.heard; printf '\376\377\377\377\377\377\377\377\374\376\377\377\377\377\377\377\001\0\0\0\0\0\0\0'; exec sleep 600";
        let (dir, mut counter) = counter(refuse);
        counter.attach(&[Detail::Writers, Detail::Locks]);
        counter.attach(&[Detail::Writers, Detail::Memory]);
        counter.attach(&[Detail::Memory]);
        assert_eq!(counter.sample(vec![3]), [0; 0]);
        assert_eq!(counter.lacks(Detail::Memory), None);
        assert_eq!(answer(&mut counter), Nanos(1));
        let orders = [
            CounterOrder::Attach(0),
            CounterOrder::Attach(1),
            CounterOrder::Detach(0),
            CounterOrder::Sample(3),
        ];
        assert_eq!(heard(&dir), orders.map(CounterOrder::bytes).concat());
        assert_eq!(
            (counter.sample(Vec::new()), counter.sample(Vec::new())),
            (vec![3], Vec::new()),
            "a new CPU is ordered once"
        );
        counter.sample(vec![5]);
        let lacking = [Detail::Writers, Detail::Memory, Detail::Locks]
            .map(|detail| counter.lacks(detail).is_some());
        assert_eq!(lacking, [false, true, false]);
        counter.give_up("it ends");
        assert!(
            counter.lacks(Detail::Writers).is_some_and(|why| why.contains("restart the recorder"))
        );
        assert_eq!(
            (counter.sample(Vec::new()), counter.sample(Vec::new())),
            (vec![3, 5], Vec::new()),
            "the sampling process has ended"
        );
    }
}
