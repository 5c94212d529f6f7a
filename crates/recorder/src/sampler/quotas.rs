// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups with a CPU quota: how often they were throttled, and which processes were in them.
//!
//! A walk over the hierarchy finds them, a few directories at each tick, so that no tick is slow. The kernel
//! counts its groups: when the number changes a few walks follow each other at once, so that a new group
//! is found within two seconds; else the groups that are known are walked every [`WALK_PERIOD`], and the whole
//! hierarchy every [`WHOLE_PERIOD`]. Their counters are read at every tick. At a mark one more walk
//! is made in one go: it finds what is younger than the last one, and who is where at that moment. Each walk also
//! compares how often a group was throttled with the walk before: a quota that came and went between two is found by that.

use super::hierarchy::{CpuQuota, Hierarchy, SOURCE, ThrottleReading};
use super::sample::ProcSample;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tipme_record::Nanos;
use tipme_record::incident::{GroupMember, Groups, LimitedGroup};

/// The groups are counted this often; where their number has changed, a walk begins, or when the one before is done.
const COUNT_PERIOD: Nanos = Nanos::from_secs(1);

/// The known groups are walked at least this often: processes come and go.
const WALK_PERIOD: Nanos = Nanos::from_secs(5);

/// The whole hierarchy is walked at least this often: an old group may be given a quota.
const WHOLE_PERIOD: Nanos = Nanos::from_secs(30);

/// A group that was not looked at for so long is gone.
const COUNTED: Nanos = Nanos::from_secs(65);

/// Bytes read of the table of the numbers of groups: a line each for at most 16 controllers.
const NUMBERS_BYTES: usize = 1_024;

/// Whole walks in a row after the number of groups has changed: the quota comes some time after the group.
const EAGER_WALKS: u32 = 3;

/// What a walk may take of one tick, and what an eager one may.
const STEP_MAX: Duration = Duration::from_micros(100);
const EAGER_STEP_MAX: Duration = Duration::from_micros(600);

/// Directories that one walk looks at; groups beyond are not found.
const DIRECTORIES: usize = 4_096;

/// Groups with a quota that are kept; further ones are not recorded.
const GROUPS: usize = 64;

/// Processes remembered per group; further ones are not known as its members.
const MEMBERS: usize = 1_024;

/// Bytes read of a counter file.
const STAT_BYTES: usize = 512;

/// The groups that were found to have a quota, and their members.
#[derive(Clone, Default)]
struct Register {
    groups: Vec<LimitedGroup>,
    next_number: u32,
    /// Of every group that the last walk looked at.
    counts: HashMap<PathBuf, ThrottleReading>,
    /// Samples of groups that were throttled between two walks and have no quota any more.
    past: Vec<(u32, ProcSample)>,
}

/// A walk that may be interrupted after every directory.
#[derive(Default)]
struct QuotaWalk {
    /// Directories to look at, below the mount, with the numbers of the limited groups around them.
    open: VecDeque<(PathBuf, Vec<u32>)>,
    looked: usize,
}

/// The counters of one group; without a file once it is gone.
#[derive(Default)]
struct QuotaCounter {
    file: Option<File>,
    samples: VecDeque<ProcSample>,
}

/// Keeps the counters of one window.
pub(crate) struct Quotas {
    hierarchy: Option<Hierarchy>,
    register: Register,
    walk: QuotaWalk,
    next_count: Nanos,
    next_walk: Nanos,
    next_whole: Nanos,
    /// The table of the numbers of groups, once it is there.
    numbers: Option<File>,
    /// The number of groups when it was last looked at.
    count: u32,
    /// Eager walks still to come, the present one included.
    eager: u32,
    counters: BTreeMap<u32, QuotaCounter>,
    /// Samples kept per group.
    limit: usize,
}

impl Register {
    fn known(&mut self, path: &str) -> Option<&mut LimitedGroup> {
        self.groups.iter_mut().find(|group| group.path == path)
    }

    /// The number of a group with this limit; `None` where there are too many.
    fn note(
        &mut self,
        hierarchy: &Hierarchy,
        group: &Path,
        limit: CpuQuota,
        grown: Option<[ThrottleReading; 2]>,
    ) -> Option<u32> {
        let path = format!("/{}", group.display());
        // The counters of a group with a quota are read at every tick, once it is known.
        let grown = grown.filter(|_| limit == CpuQuota::PAST || self.known(&path).is_none()).into_iter().flatten();
        let number = self.number(hierarchy, group, limit)?;
        self.past.extend(grown.map(|count| (number, count.sample(number))));
        Some(number)
    }

    fn number(&mut self, hierarchy: &Hierarchy, group: &Path, limit: CpuQuota) -> Option<u32> {
        let path = format!("/{}", group.display());
        if let Some(known) = self.known(&path) {
            if limit != CpuQuota::PAST {
                (known.quota_us, known.period_us) = (limit.quota_us, limit.period_us);
            }
            return Some(known.number);
        }
        if self.groups.len() >= GROUPS {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        let file = hierarchy.mount.join(group).join(hierarchy.limit_file()).display().to_string();
        let CpuQuota { quota_us, period_us } = limit;
        self.groups.push(LimitedGroup { number, path, file, quota_us, period_us, members: Vec::new() });
        Some(number)
    }

    fn add_members(&mut self, numbers: &[u32], pids: &[u32], now: Nanos) {
        for group in self.groups.iter_mut().filter(|group| numbers.contains(&group.number)) {
            for pid in pids {
                match group.members.binary_search_by_key(pid, |member| member.pid) {
                    Ok(index) => group.members[index].last_ns = now.0,
                    Err(index) if group.members.len() < MEMBERS => {
                        group.members.insert(index, GroupMember { pid: *pid, first_ns: now.0, last_ns: now.0 });
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// Keeps how often a group has been throttled; gives both counts where it was throttled since the last walk.
    fn recount(&mut self, group: &Path, count: ThrottleReading) -> Option<[ThrottleReading; 2]> {
        let before = self.counts.insert(group.to_owned(), count.clone())?;
        (before.text != count.text).then_some([before, count])
    }

    /// Forgets processes that were last seen before a time.
    fn forget_members(&mut self, before: Nanos) {
        self.groups.iter_mut().for_each(|group| group.members.retain(|member| member.last_ns >= before.0));
    }
}

impl QuotaWalk {
    fn begin() -> QuotaWalk {
        QuotaWalk { open: VecDeque::from([(PathBuf::new(), Vec::new())]), looked: 0 }
    }

    /// A walk over the groups that are known to have a quota, and those below them.
    fn among(register: &Register) -> QuotaWalk {
        let paths = || register.groups.iter().map(|group| Path::new(&group.path));
        let topmost = paths().filter(|path| !paths().any(|other| other != *path && path.starts_with(other)));
        let below = topmost.map(|path| (path.strip_prefix("/").unwrap_or(path).to_owned(), Vec::new()));
        QuotaWalk { open: below.collect(), looked: 0 }
    }

    fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Looks at one directory.
    fn step(&mut self, hierarchy: &Hierarchy, register: &mut Register, now: Nanos) {
        let Some((group, mut within)) = self.open.pop_front() else { return };
        self.looked += 1;
        let grown = hierarchy.count(&group, now).and_then(|count| register.recount(&group, count));
        let limit = hierarchy.limit(&group).or(grown.as_ref().map(|_| CpuQuota::PAST));
        within.extend(limit.and_then(|limit| register.note(hierarchy, &group, limit, grown)));
        if !within.is_empty() {
            register.add_members(&within, &hierarchy.processes(&group), now);
        }
        let room = DIRECTORIES.saturating_sub(self.looked + self.open.len());
        let children = hierarchy.children(&group).into_iter().take(room);
        self.open.extend(children.map(|child| (child, within.clone())));
    }
}

impl QuotaCounter {
    /// Reads the counters; what did not change only moves the newest sample on. A group that is gone
    /// keeps its samples.
    fn sample(&mut self, number: u32, now: Nanos, limit: usize) {
        let Some(file) = &self.file else { return };
        let mut buffer = [0u8; STAT_BYTES];
        let Ok(count) = file.read_at(&mut buffer, 0) else {
            self.file = None;
            return;
        };
        let text = [format!("group {number}\n").as_bytes(), &buffer[..count]].concat();
        let mut newest = self.samples.iter_mut().rev();
        if let (Some(last), Some(before)) = (newest.next(), newest.next())
            && last.text == text
            && before.text == text
        {
            last.at = now;
            return;
        }
        if self.samples.len() >= limit {
            self.samples.pop_front();
        }
        self.samples.push_back(ProcSample { at: now, source: SOURCE, text });
    }
}

impl Quotas {
    /// Looks for the hierarchy; without one nothing is ever found.
    pub(crate) fn open(limit: usize) -> Quotas {
        Quotas::below(Hierarchy::find(), limit)
    }

    fn below(hierarchy: Option<Hierarchy>, limit: usize) -> Quotas {
        let (register, walk) = (Register::default(), QuotaWalk::default());
        let (next_count, next_walk, next_whole, counters) = (Nanos(0), Nanos(0), Nanos(0), BTreeMap::new());
        let (numbers, count, eager) = (None, 0, 0);
        Quotas { hierarchy, register, walk, next_count, next_walk, next_whole, numbers, count, eager, counters, limit }
    }

    /// Whether there are counters to be read, or a new group is being looked for.
    pub(crate) fn is_busy(&self) -> bool {
        !self.walk.is_done() || self.counters.values().any(|counter| counter.file.is_some())
    }

    /// Goes on with the walk, and reads all counters. What ended before `from` is forgotten.
    pub(crate) fn tick(&mut self, now: Nanos, from: Nanos) {
        let Some(hierarchy) = self.hierarchy.take() else { return };
        if self.walk.is_done() && now >= self.next_count {
            self.next_count = now.after(COUNT_PERIOD);
            self.begin_walk(&hierarchy, now, from);
        }
        self.go_on(&hierarchy, now);
        self.hierarchy = Some(hierarchy);
        self.read_counters(now);
    }

    fn go_on(&mut self, hierarchy: &Hierarchy, now: Nanos) {
        if self.walk.is_done() {
            return;
        }
        let begun = Instant::now();
        let step = if self.eager > 0 { EAGER_STEP_MAX } else { STEP_MAX };
        while !self.walk.is_done() && begun.elapsed() < step {
            self.walk.step(hierarchy, &mut self.register, now);
        }
        for (number, sample) in self.register.past.drain(..) {
            self.counters.entry(number).or_default().samples.push_back(sample);
        }
    }

    fn read_counters(&mut self, now: Nanos) {
        for group in &self.register.groups {
            let counter = self.counters.entry(group.number).or_default();
            if counter.file.is_none() && group.members.iter().any(|member| member.last_ns == now.0) {
                counter.file = File::open(Path::new(&group.file).with_file_name("cpu.stat")).ok();
            }
            counter.sample(group.number, now, self.limit);
        }
    }

    /// Begins the walk that is due, if one is.
    fn begin_walk(&mut self, hierarchy: &Hierarchy, now: Nanos, from: Nanos) {
        let count = self.number_of_groups(hierarchy);
        self.eager = if count == self.count { self.eager.saturating_sub(1) } else { EAGER_WALKS };
        self.count = count;
        if self.eager == 0 && now < self.next_walk {
            return;
        }
        self.forget(from);
        self.next_walk = now.after(WALK_PERIOD);
        if self.eager == 0 && now < self.next_whole {
            self.walk = QuotaWalk::among(&self.register);
        } else {
            self.next_whole = now.after(WHOLE_PERIOD);
            self.register.counts.retain(|_, count| count.at >= now.before(COUNTED));
            self.walk = QuotaWalk::begin();
        }
    }

    /// How many groups there are; 0 where the kernel does not tell.
    fn number_of_groups(&mut self, hierarchy: &Hierarchy) -> u32 {
        if self.numbers.is_none() {
            self.numbers = File::open(&hierarchy.numbers).ok();
        }
        let mut buffer = [0u8; NUMBERS_BYTES];
        let count = self.numbers.as_ref().and_then(|file| file.read_at(&mut buffer, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..count]).unwrap_or_default();
        let line = text.lines().find(|line| line.split_whitespace().next() == Some("cpu"));
        line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap_or(0)
    }

    /// A group without members throttles nobody; where it gets some, a walk finds it again.
    fn forget(&mut self, from: Nanos) {
        self.register.forget_members(from);
        self.register.groups.retain(|group| !group.members.is_empty());
        let groups = &self.register.groups;
        self.counters.retain(|number, _| groups.iter().any(|group| group.number == *number));
    }

    /// The samples of all groups from `from` on.
    #[cfg(test)]
    fn samples(&self, from: Nanos) -> impl Iterator<Item = &ProcSample> {
        self.counters.values().flat_map(|counter| &counter.samples).filter(move |sample| sample.at >= from)
    }

    /// All groups that were found, and those that a fresh walk finds now; with their samples from `from` on, and the
    /// last one before, which tells of what came after it.
    pub(crate) fn at_mark(&self, from: Nanos, now: Nanos) -> (Groups, Vec<ProcSample>) {
        let mut register = self.register.clone();
        if let Some(hierarchy) = &self.hierarchy {
            let mut walk = QuotaWalk::begin();
            while !walk.is_done() {
                walk.step(hierarchy, &mut register, now);
            }
        }
        let recent = |counter: &QuotaCounter| {
            let before = counter.samples.iter().filter(|sample| sample.at < from).max_by_key(|sample| sample.at);
            before.into_iter().chain(counter.samples.iter().filter(|sample| sample.at >= from)).cloned().collect()
        };
        let mut samples: Vec<ProcSample> =
            self.counters.values().flat_map(|counter| -> Vec<ProcSample> { recent(counter) }).collect();
        samples.extend(register.past.into_iter().map(|(_, sample)| sample));
        (Groups { limited: register.groups }, samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::hierarchy::CgroupVersion;
    use std::fs::{create_dir_all, write};

    /// A hierarchy of plain files below a folder of its own, which is removed in the end.
    struct Plain(Hierarchy);

    impl Plain {
        fn new(name: &str, version: CgroupVersion) -> Plain {
            let mount = std::env::temp_dir().join(format!("tipme-quotas-{name}-{}", std::process::id()));
            create_dir_all(&mount).expect("a folder can be made");
            let numbers = mount.join("numbers");
            Plain(Hierarchy { mount, version, numbers })
        }

        fn group(&self, path: &str, limit: Option<&str>, pids: &str) {
            let dir = self.0.mount.join(path);
            create_dir_all(&dir).expect("a group can be made");
            write(dir.join("cgroup.procs"), pids).expect("it can be written");
            write(dir.join("cpu.stat"), "nr_periods 9\nnr_throttled 4\nthrottled_time 100\n")
                .expect("it can be written");
            write(dir.join("cpu.cfs_period_us"), "100000\n").expect("it can be written");
            let text = limit.unwrap_or(if self.0.version == CgroupVersion::One { "-1\n" } else { "max 100000\n" });
            write(dir.join(self.0.limit_file()), text).expect("it can be written");
        }

        fn count(&self, number: u32) {
            write(&self.0.numbers, format!("#name\tid\tgroups\nmemory\t2\t9\t1\ncpu\t1\t{number}\t1\n"))
                .expect("it can be written");
        }

        fn quotas(&self) -> Quotas {
            Quotas::below(Some(self.0.clone()), 400)
        }
    }

    impl Drop for Plain {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0.mount).ok();
        }
    }

    fn ticks(quotas: &mut Quotas, from: u64, count: u64) {
        for tick in from..from + count {
            quotas.tick(Nanos::from_millis(100 * tick), Nanos(0));
        }
    }

    fn pids(group: &LimitedGroup) -> Vec<u32> {
        group.members.iter().map(|member| member.pid).collect()
    }

    #[test]
    fn limits_hold_for_the_groups_below() {
        for (version, limit) in [(CgroupVersion::One, "5000\n"), (CgroupVersion::Two, "5000 100000\n")] {
            let plain = Plain::new(&format!("below-{version:?}"), version);
            plain.group("free", None, "10\n");
            plain.group("a", Some(limit), "11\n");
            plain.group("a/b", None, "12\n13\n");
            let mut quotas = plain.quotas();
            ticks(&mut quotas, 1, 10);
            let groups = quotas.at_mark(Nanos(0), Nanos::from_millis(1_001)).0.limited;
            assert_eq!(groups.len(), 1);
            let group = &groups[0];
            assert_eq!((group.path.as_str(), group.quota_us, group.period_us), ("/a", 5_000, 100_000));
            assert_eq!(pids(group), [11, 12, 13]);
            assert!(group.file.ends_with(plain.0.limit_file()));
        }
    }

    #[test]
    fn a_group_is_found_within_two_seconds_and_at_once_at_a_mark() {
        let plain = Plain::new("young", CgroupVersion::One);
        plain.group("old", None, "");
        let mut quotas = plain.quotas();
        ticks(&mut quotas, 1, 10);
        plain.group("young", Some("20000\n"), "42\n");
        plain.count(7);
        assert_eq!(pids(&quotas.at_mark(Nanos(0), Nanos(1)).0.limited[0]), [42]);
        ticks(&mut quotas, 11, 20);
        assert!(
            quotas.samples(Nanos::from_millis(3_000)).any(|sample| sample.text.starts_with(b"group 0\nnr_periods 9"))
        );
    }

    #[test]
    fn a_quota_of_an_old_group_and_a_new_member_are_found() {
        let plain = Plain::new("old", CgroupVersion::Two);
        plain.count(7);
        plain.group("a", None, "42\n");
        let mut quotas = plain.quotas();
        ticks(&mut quotas, 1, 50);
        plain.group("a", Some("5000 100000\n"), "42\n");
        ticks(&mut quotas, 51, 310);
        assert_eq!(quotas.register.groups.len(), 1);
        plain.group("a/b", None, "43\n");
        ticks(&mut quotas, 361, 60);
        assert_eq!(pids(&quotas.register.groups[0]), [42, 43]);
    }

    #[test]
    fn a_quota_that_came_and_went_between_two_walks_is_found() {
        for (version, line) in
            [(CgroupVersion::One, "throttled_time 900000000"), (CgroupVersion::Two, "throttled_usec 900000")]
        {
            let plain = Plain::new(&format!("past-{version:?}"), version);
            plain.group("a", None, "42\n");
            plain.group("free", None, "43\n");
            let mut quotas = plain.quotas();
            ticks(&mut quotas, 1, 50);
            assert!(quotas.at_mark(Nanos(0), Nanos::from_secs(6)).0.limited.is_empty());
            write(plain.0.mount.join("a/cpu.stat"), format!("nr_periods 9\nnr_throttled 9\n{line}\n"))
                .expect("it is there");
            let (groups, samples) = quotas.at_mark(Nanos::from_secs(3), Nanos::from_secs(7));
            assert_eq!((groups.limited.len(), groups.limited[0].quota_us, pids(&groups.limited[0])), (1, 0, vec![42]));
            let texts: Vec<_> = samples.iter().map(|sample| String::from_utf8_lossy(&sample.text)).collect();
            assert!(texts.len() == 2 && texts[0].contains("nr_throttled 4") && texts[1].contains(line), "{texts:?}");
            ticks(&mut quotas, 310, 10);
            assert_eq!(quotas.register.groups.len(), 1, "a walk finds it as well as a mark");
        }
    }

    #[test]
    fn who_died_and_what_is_gone_stays_for_a_window() {
        let plain = Plain::new("gone", CgroupVersion::One);
        plain.group("a", Some("5000\n"), "11\n12\n");
        let mut quotas = plain.quotas();
        ticks(&mut quotas, 1, 10);
        std::fs::remove_dir_all(plain.0.mount.join("a")).expect("it is there");
        ticks(&mut quotas, 11, 10);
        assert_eq!(pids(&quotas.at_mark(Nanos(0), Nanos(0)).0.limited[0]), [11, 12]);
        quotas.tick(Nanos::from_secs(60), Nanos::from_secs(20));
        assert!(quotas.at_mark(Nanos(0), Nanos::from_secs(60)).0.limited.is_empty());
        assert_eq!(quotas.samples(Nanos(0)).count(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let plain = Plain::new("many", CgroupVersion::One);
        let many: String = (1..3_000).map(|pid| format!("{pid}\n")).collect();
        for number in 0..GROUPS + 10 {
            plain.group(&format!("g{number}"), Some("5000\n"), if number == 0 { &many } else { "7\n" });
        }
        let quotas = plain.quotas();
        let groups = quotas.at_mark(Nanos(0), Nanos(1)).0.limited;
        assert_eq!(groups.len(), GROUPS);
        assert!(groups.iter().all(|group| group.members.len() <= MEMBERS));
    }

    #[test]
    fn counters_that_stand_still_take_no_room() {
        let plain = Plain::new("still", CgroupVersion::One);
        plain.group("a", Some("5000\n"), "11\n");
        let mut quotas = plain.quotas();
        ticks(&mut quotas, 1, 300);
        let times: Vec<u64> = quotas.samples(Nanos(0)).map(|sample| sample.at.0 / 100_000_000).collect();
        assert!(times.len() == 2 && times[1] == 300, "{times:?}");
    }
}
