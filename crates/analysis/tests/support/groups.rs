// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups with limits.

use super::{Machinery, head};
use tipme_record::incident::{IoLimit, IoLimitedGroup, LimitedGroup};
use tipme_record::records::Throttled;
use tipme_record::{Nanos, Pid, RecordKind, RingClass};
use zerocopy::FromZeros;

impl Machinery {
    /// A control group with a quota of 5 ms per 100 ms, and the processes in it at the mark.
    pub fn limited(&mut self, number: u64, path: &str, pids: &[u32]) -> &mut Self {
        self.limited_threads(number, path, &[]);
        self.groups.limited.last_mut().into_iter().for_each(|group| group.pids = pids.to_vec());
        self
    }

    /// The same, with the threads in it.
    pub fn limited_threads(&mut self, number: u64, path: &str, tids: &[u32]) -> &mut Self {
        self.groups.limited.push(LimitedGroup {
            number,
            path: path.to_owned(),
            file: format!("/sys/fs/cgroup/cpu{path}/cpu.cfs_quota_us"),
            quota_us: 5_000,
            period_us: 100_000,
            tids: tids.to_vec(),
            pids: Vec::new(),
        });
        self
    }

    /// A control group that limits I/O to a device, and the threads in it at the mark.
    pub fn io_limited(&mut self, folder: &str, limits: &[IoLimit], tids: &[u32]) -> &mut Self {
        let file = format!("{folder}/io.max");
        let limits = limits.iter().map(|limit| IoLimit { file: file.clone(), ..limit.clone() });
        self.groups.io.push(IoLimitedGroup {
            folder: folder.to_owned(),
            limits: limits.collect(),
            tids: tids.to_vec(),
        });
        self
    }

    /// A thread is throttled, since its group has used up 5 ms per 100 ms.
    pub fn throttled(&mut self, us: u64, tid: u32, group: u64) -> &mut Self {
        let [quota, period] = [5, 100].map(Nanos::from_millis);
        let record = record!(Throttled {
            us,
            tid,
            group: group,
            quota: quota,
            period: period,
            pid: Pid(tid)
        });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }
}
