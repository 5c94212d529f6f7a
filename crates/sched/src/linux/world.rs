// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements [`World`] for the real machine.

use super::{Linux, nice_allowed, set_thread};
use crate::advice;
use crate::cgroup;
use crate::journal::hash;
use crate::processes;
use crate::units_real;
use crate::why::SkipReason;
use crate::world::{
    Advice, Autogroup, KnobFault, KnobPlace, Stock, ThreadKnob, ThreadSettings, Value, World,
};
use std::path::Path;
use tipme_policy::Identity;

impl World for Linux {
    fn begin_call(&mut self) {
        self.end_call();
        self.slices.look();
    }

    fn end_call(&mut self) {
        self.held.get_mut().clear();
        self.bus.end_restore();
    }

    fn begin_restore(&mut self) {
        self.bus.begin_restore();
    }

    fn get(&self, place: &KnobPlace) -> Result<Value, KnobFault> {
        match place {
            KnobPlace::Thread { process, tid, start, knob } => {
                self.held(*process)?.check_thread(*tid, *start)?;
                self.get_thread(*tid, *knob).map(Value::Number)
            }
            KnobPlace::Autogroup { number, session } => {
                self.autogroup_process(*number, *session).map(|(_, nice)| Value::Number(nice))
            }
            KnobPlace::Trace { value, .. } => Ok(Value::Number(*value)),
            KnobPlace::File { path } => cgroup::get(path).map(Value::Number),
            KnobPlace::Controller { group, name } => {
                cgroup::has_controller(group, name).map(Value::Number)
            }
            KnobPlace::Member { process, root } => {
                self.held(*process)?.check()?;
                cgroup::group_of(&self.proc, process.pid, root)
                    .map(Value::Text)
                    .ok_or(KnobFault::Vanished)
            }
            KnobPlace::Group { path, .. } => Ok(Value::Number(i64::from(Path::new(path).is_dir()))),
            KnobPlace::Scope { folder, .. } => units_real::exists(self, folder).map(Value::Number),
            KnobPlace::Unit { folder, property } => {
                units_real::get(self, folder, *property).map(Value::Number)
            }
        }
    }

    fn set(&mut self, place: &KnobPlace, value: &Value) -> Result<(), KnobFault> {
        match (place, value) {
            (KnobPlace::Thread { process, tid, start, knob }, Value::Number(number)) => {
                self.held(*process)?.check_thread(*tid, *start)?;
                set_thread(*tid, *knob, *number)
            }
            (KnobPlace::Autogroup { number, session }, Value::Number(nice)) => {
                self.set_autogroup(*number, *session, *nice)
            }
            (KnobPlace::File { path }, Value::Number(number)) => cgroup::set(path, *number),
            (KnobPlace::Controller { group, name }, Value::Number(on)) => {
                cgroup::set_controller(group, name, *on != 0)
            }
            (KnobPlace::Member { process, root }, Value::Text(group)) => {
                self.held(*process)?.check()?;
                cgroup::enter(process.pid, root, group)
            }
            (KnobPlace::Group { path, .. }, Value::Number(1)) => cgroup::make(path),
            (KnobPlace::Group { path, .. }, Value::Number(_)) => cgroup::remove(path),
            (KnobPlace::Unit { folder, property }, Value::Number(number)) => {
                units_real::set(self, folder, *property, *number)
            }
            (KnobPlace::Scope { folder, root, first }, Value::Number(1)) => {
                units_real::begin(self, folder, root, *first)
            }
            (KnobPlace::Scope { folder, .. }, Value::Number(_)) => units_real::end(self, folder),
            // Such a journal entry was not written by this program.
            _ => Err(KnobFault::Refused(libc::EINVAL)),
        }
    }

    fn admit(&self, place: &KnobPlace) -> Result<(), SkipReason> {
        match place {
            KnobPlace::Thread { process, .. } | KnobPlace::Member { process, .. } => {
                self.admit_process(*process)
            }
            KnobPlace::Scope { first, .. } => self.admit_process(*first),
            KnobPlace::Unit { folder, .. } => {
                units_real::admit(self, folder, self.owner, self.under)
            }
            KnobPlace::Autogroup { number, session } => self.admit_session(*number, *session),
            KnobPlace::Trace { .. }
            | KnobPlace::File { .. }
            | KnobPlace::Controller { .. }
            | KnobPlace::Group { .. } => Ok(()),
        }
    }

    fn reversible(&self, place: &KnobPlace, baseline: &Value) -> bool {
        match (place, baseline) {
            (KnobPlace::Thread { tid, knob, .. }, Value::Number(baseline)) if !self.may_nice => {
                match knob {
                    ThreadKnob::Nice => nice_allowed(&self.proc, *tid, *baseline),
                    ThreadKnob::Slice => true,
                    ThreadKnob::Scheduling => nice_allowed(&self.proc, *tid, 0),
                    ThreadKnob::Io => true,
                }
            }
            _ => true,
        }
    }

    fn has_slices(&self) -> bool {
        self.slices.are_there()
    }

    fn threads(&self, process: Identity) -> Result<Vec<ThreadSettings>, KnobFault> {
        let held = self.held(process)?;
        let stat = held.stat()?;
        let threads = held.threads(stat.threads).into_iter();
        // A thread that ends between two of these calls is left out.
        let threads: Vec<ThreadSettings> =
            threads.filter_map(|(tid, start)| self.thread(tid, start, stat.session)).collect();
        if threads.is_empty() { Err(KnobFault::Vanished) } else { Ok(threads) }
    }

    fn session(&self, process: Identity) -> Option<u32> {
        let held = self.held.borrow().get(&process).map(|held| held.latest().session);
        held.or_else(|| processes::living(&self.proc, process).map(|stat| stat.session))
    }

    fn autogroup(&self, process: Identity) -> Option<Autogroup> {
        let (number, _) = self.autogroup_of(process.pid)?;
        Some(Autogroup { number, session: self.session(process)? })
    }

    fn is_unprivileged(&self, process: Identity) -> bool {
        let users = self.held(process).ok().and_then(|held| held.users());
        users.is_some_and(|(real, effective)| real != 0 && effective != 0)
            && !nice_allowed(&self.proc, process.pid, -1)
    }

    fn lineage(&self, process: Identity) -> Vec<(Identity, u32)> {
        processes::lineage(&self.proc, process).map(|stat| (stat.identity, stat.session)).collect()
    }

    fn below(&self, process: Identity, leads: &dyn Fn(Identity) -> bool) -> Vec<Identity> {
        let Ok(held) = self.held(process) else { return Vec::new() };
        let below = processes::below_with(&self.proc, &held.latest(), leads, |pid| {
            self.known(pid).or_else(|| processes::stat(&self.proc, pid))
        });
        below.into_iter().map(|stat| stat.identity).collect()
    }

    fn last_pid(&self) -> Option<u64> {
        self.load.last_pid()
    }

    fn all(&self) -> Vec<Identity> {
        self.identities(processes::all(&self.proc))
    }

    fn members(&self, group: &str) -> Vec<Identity> {
        self.identities(cgroup::members(group))
    }

    fn tree(&self, group: &str) -> Vec<Identity> {
        self.identities(cgroup::tree(group))
    }

    fn reclaim(&mut self, group: &str, bytes: u64) -> Result<(), KnobFault> {
        cgroup::reclaim(group, bytes)
    }

    fn resident(&self, process: Identity) -> u64 {
        processes::resident(&self.proc, process.pid).unwrap_or(0)
    }

    fn memory(&self) -> Stock {
        let info = rustix::system::sysinfo();
        let [total, swap] =
            [info.totalram, info.freeswap].map(|units| units.saturating_mul(info.mem_unit.into()));
        Stock { total, swap }
    }

    fn file_bytes(&self, group: &str) -> u64 {
        cgroup::file_bytes(group)
    }

    fn full_percent(&self, group: &str) -> f32 {
        cgroup::full_percent(group)
    }

    fn advise(&mut self, process: Identity, advice: Advice, most: u64) -> Result<u64, KnobFault> {
        advice::give(&self.proc, process, advice, most, &mut self.cursors)
    }

    fn ticks(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let per_second = rustix::param::clock_ticks_per_second();
        now.tv_sec.unsigned_abs() * per_second
            + now.tv_nsec.unsigned_abs() * per_second / 1_000_000_000
    }

    fn boot(&self) -> u64 {
        let text = processes::text(&self.proc.join("sys/kernel/random/boot_id"));
        hash(text.unwrap_or_default().trim().as_bytes())
    }
}
