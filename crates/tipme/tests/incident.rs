// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of a real recorder's incident, required and forbidden. Needs root.

use rustix::fs::Advice;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tipme_control::{Client, RecorderRequest, RecorderResponse, Trigger};
use tipme_record::incident::{FileName, Groups, Incident, Section};
use tipme_record::records::{Reclaim, Sample, Throttled, Wait};
use tipme_record::{CHUNK_BYTES, Nanos, RecordKind, entries};
use tipme_recorder::{RecorderOptions, Sealer, StateDirs, Tap, run};

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("tipme-incident-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A computing process in a control group with a quota of 10 ms per 100 ms, and another one that is
/// in the group for only a second.
struct Limited {
    group: PathBuf,
    child: Child,
    visitor: Child,
}

impl Limited {
    fn start() -> Limited {
        let (mount, file, text) = match Path::new("/sys/fs/cgroup/cpu/cgroup.procs").exists() {
            true => ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "10000"),
            false => ("/sys/fs/cgroup", "cpu.max", "10000 100000"),
        };
        let group = Path::new(mount).join(format!("tipme-incident-{}", std::process::id()));
        std::fs::create_dir_all(group.join("inner")).unwrap();
        let [child, visitor] = [(); 2].map(|()| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap()
        });
        let limited = Limited { group, child, visitor };
        std::fs::write(limited.group.join(file), text).unwrap();
        std::fs::write(limited.group.join("inner/cgroup.procs"), limited.child.id().to_string())
            .unwrap();
        limited
    }

    fn visit(&self) {
        for group in [&*self.group.join("inner"), self.group.parent().unwrap()] {
            std::fs::write(group.join("cgroup.procs"), self.visitor.id().to_string()).unwrap();
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        for child in [&mut self.child, &mut self.visitor] {
            child.kill().ok();
            child.wait().ok();
        }
        drop(Removed(vec![self.group.join("inner"), self.group.clone()]));
    }
}

/// Reads a file twice in a control group with too little memory to cache it.
fn read_in_little_memory(path: &Path) {
    let (mount, file) = match Path::new("/sys/fs/cgroup/memory/cgroup.procs").exists() {
        true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        false => ("/sys/fs/cgroup", "memory.max"),
    };
    let group = Path::new(mount).join(format!("tipme-memory-{}", std::process::id()));
    std::fs::create_dir_all(&group).unwrap();
    let _removed = Removed(vec![group.clone()]);
    std::fs::write(group.join(file), "4194304").unwrap();
    let script = format!(
        "echo $$ > {}/cgroup.procs; cat {path} {path} > /dev/null",
        group.display(),
        path = path.display()
    );
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
}

/// Control groups that are removed on drop, once their processes are gone.
struct Removed(Vec<PathBuf>);

impl Drop for Removed {
    fn drop(&mut self) {
        for group in &self.0 {
            let begun = Instant::now();
            while std::fs::remove_dir(group).is_err()
                && group.exists()
                && begun.elapsed() < Duration::from_secs(5)
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Reads pages of an uncached file through a mapping, which stays.
fn page_in(path: &Path) {
    let mut file = File::create_new(path).unwrap();
    let pages = 4_096;
    file.write_all(&vec![7; pages * 4_096]).unwrap();
    file.sync_all().unwrap();
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    // SAFETY: a fresh mapping of a file without further writers; it is never unmapped.
    let base = unsafe {
        let (none, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE);
        let base = rustix::mm::mmap(none, pages * 4_096, ProtFlags::READ, flags, &file, 0).unwrap();
        rustix::mm::madvise(base, pages * 4_096, rustix::mm::Advice::Random).unwrap();
        base.cast::<u8>()
    };
    for page in (0..pages).step_by(7) {
        // SAFETY: the page lies in the mapping.
        assert_eq!(unsafe { base.add(page * 4_096).read_volatile() }, 7);
    }
}

fn recorded(folder: &Path, limited: &Limited) -> Incident {
    let dirs = StateDirs::below(folder);
    let allowed = vec![rustix::process::getuid().as_raw()];
    let options = RecorderOptions {
        dirs,
        window: Nanos::from_secs(20),
        memory: 32 << 20,
        tap: Tap::Off,
        without: Vec::new(),
        details: Vec::new(),
        allowed,
        day: false,
        auto: None,
        hot_keys: None,
        kept: tipme_store::FolderBounds::default(),
        sealer: Sealer::Program(env!("CARGO_BIN_EXE_tipme").into()),
    };
    let recorder = std::thread::spawn(move || run(&options));
    let client = Client::new(folder);
    let begun = Instant::now();
    while client.call(&RecorderRequest::Status).is_err()
        && begun.elapsed() < Duration::from_secs(20)
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    page_in(&folder.join("pages"));
    read_in_little_memory(&folder.join("pages"));
    limited.visit();
    std::thread::sleep(Duration::from_secs(1));
    let mark = RecorderRequest::Mark { text: String::new(), trigger: Trigger::Command };
    let RecorderResponse::Marked { incident, .. } = client.call(&mark).unwrap() else {
        panic!("the mark was not answered")
    };
    let incident = tipme_store::read(&incident).unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
        .unwrap();
    recorder.join().unwrap().unwrap();
    incident
}

#[test]
fn an_incident_has_what_it_should_and_no_more() {
    let folder = Folder::new();
    let limited = Limited::start();
    let incident = recorded(&folder.0, &limited);
    kernel_has_no_place(&incident);
    group_is_known(&incident, &limited);
    file_is_named(&incident, &folder.0.join("pages"));
    reclaim_is_recorded(&incident);
}

/// Returns the records of one kind.
fn rare<T>(
    incident: &Incident,
    kind: RecordKind,
    read: fn(&[u8]) -> Option<T>,
) -> impl Iterator<Item = T> {
    let rare = incident.bytes(Section::Rare).chunks(CHUNK_BYTES).flat_map(entries);
    rare.filter(move |entry| entry.kind == kind).filter_map(move |entry| read(entry.bytes))
}

fn reclaim_is_recorded(incident: &Incident) {
    let reclaims = rare(incident, RecordKind::Reclaim, Reclaim::read);
    let pages: u64 =
        reclaims.filter(|reclaim| reclaim.what == 4).map(|reclaim| reclaim.amount).sum();
    assert!(pages > 1_000, "only {pages} pages were reclaimed inside the group");
}

/// Returns `true` if a number is an address in the text of the kernel or its modules.
fn is_kernel_text(word: u64) -> bool {
    (0xffff_ffff_8000_0000..0xffff_ffff_ff00_0000).contains(&word)
}

fn kernel_has_no_place(incident: &Incident) {
    for (section, bytes) in &incident.sections {
        let (words, _) = bytes.as_chunks::<8>();
        let found = words.iter().position(|word| is_kernel_text(u64::from_le_bytes(*word)));
        assert_eq!(
            found.map(|word| 8 * word),
            None,
            "section {section:?} has an address of the kernel"
        );
    }
    let samples: Vec<Sample> = rare(incident, RecordKind::Sample, Sample::read).collect();
    assert!(
        samples.iter().any(|sample| sample.kernel_stack.0 != 0),
        "no kernel stack among {} samples",
        samples.len()
    );
    let symbols = String::from_utf8_lossy(incident.bytes(Section::Symbols));
    for name in ["schedule", "filemap_fault", "do_syscall_64"] {
        assert!(symbols.contains(name), "no function {name} is named");
    }
}

fn group_is_known(incident: &Incident, limited: &Limited) {
    let groups: Groups = incident.json(Section::Groups).unwrap();
    let name = format!("/{}", limited.group.file_name().unwrap().to_string_lossy());
    let group = groups.limited.iter().find(|group| group.path == name).unwrap();
    assert_eq!((group.quota_us, group.period_us), (10_000, 100_000));
    let (member, visitor) = (limited.child.id(), limited.visitor.id());
    assert!(group.tids.contains(&member) && !group.tids.contains(&visitor), "{group:?}");
    let mut throttled: Vec<Throttled> =
        rare(incident, RecordKind::Throttled, Throttled::read).collect();
    throttled.retain(|record| record.group == group.number);
    let [member, visitor] = [member, visitor].map(|pid| {
        let own = throttled.iter().filter(|record| record.pid.0 == pid);
        own.map(|record| (record.head.ts, [record.quota, record.period])).collect::<Vec<_>>()
    });
    let quota = [Nanos::from_millis(10), Nanos::from_millis(100)];
    assert!(member.iter().chain(&visitor).all(|(_, one)| *one == quota), "{throttled:?}");
    let counts = [member.len(), visitor.len()];
    assert!(counts[0] >= 15 && counts[1] >= 4, "throttled {counts:?} times");
    let [member_span, visitor_span] = [&member, &visitor].map(|records| {
        let times = records.iter().map(|(at, _)| *at);
        times.clone().max().unwrap().since(times.min().unwrap())
    });
    assert!(
        visitor_span < Nanos::from_secs(2) && visitor_span < member_span,
        "it was there for a second"
    );
}

fn file_is_named(incident: &Incident, path: &Path) {
    let files: Vec<FileName> = incident.json(Section::Files).unwrap();
    let file = files.iter().find(|file| Path::new(&file.path) == path);
    let file =
        file.unwrap_or_else(|| panic!("{} is not among {} files", path.display(), files.len()));
    let waits = rare(incident, RecordKind::Wait, Wait::read);
    let waits: Vec<Wait> =
        waits.filter(|wait| (wait.device.0, wait.inode) == (file.device, file.inode)).collect();
    let short = waits.iter().filter(|wait| wait.head.ts.since(wait.start).0 < 1_000_000).count();
    println!("{} waits for {}, {short} of them below a millisecond", waits.len(), file.path);
    assert!(!waits.is_empty());
}
