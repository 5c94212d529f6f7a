// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many simulated CPUs: the kernel programs' own ring code, in user space, writes to a pool as many
//! CPUs would, while the pool is copied. The last copy is sealed, read back, and turned into a
//! timeline.

use super::copied;
use crate::memory::{Pool, Shares, least_chunks};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use tempfile::TempDir;
use tipme_analysis::Recording;
use tipme_record::incident::{Incident, Meta, Section};
use tipme_record::packed::WORD_BYTES;
use tipme_record::records::{Rename, Switch};
use tipme_record::{CHUNK_BYTES, ChunkHead, Cpu, Nanos, RingClass, entries, unpacked};
use zerocopy::FromBytes;

/// Constants of `tests/rings/rings.c`.
const TIDS: u64 = 61;
const FIRST_TID: u64 = 1_000;
/// Maximum number of chunks missing from a copy because their writers were exchanging them.
const EXCHANGED_MAX: u32 = 4;
/// Time that a mark reaches back. Another class may take chunks that are older than that.
const KEPT: Nanos = Nanos::from_secs(4);
/// Minimum number of switches written before records of other kinds become frequent, and at the
/// end.
const QUIET: u64 = 4_000_000;
const LOUD: u64 = 6_000_000;

/// Lock for tests that measure the memory of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// The writing program, and its pool.
struct SimulatedFeed {
    program: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    pool: Pool,
    shares: Shares,
}

/// State of the program: overwritten time and number of chunks per class, number of records without
/// a chunk, and number of switches written.
struct FeedState {
    overwritten: [Nanos; 3],
    owned: [u32; 3],
    dropped: u64,
    is_running: bool,
    switches: u64,
}

fn compiled(folder: &Path) -> PathBuf {
    let [source, program] =
        [Path::new("tests/rings/rings.c"), &folder.join("rings")].map(Path::to_owned);
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-pthread", "-Wall", "-Werror", "-Wno-unused", "-Wno-unknown-attributes"]);
    clang.args(["-I", "tests/rings", "-iquote", "src/bpf", "-iquote", env!("OUT_DIR")]);
    assert!(clang.arg(source).arg("-o").arg(&program).status().unwrap().success());
    program
}

impl SimulatedFeed {
    fn start(program: &Path, cpus: usize, memory: u64) -> SimulatedFeed {
        let shares = Shares::of(memory, cpus).unwrap();
        let file = memfd_create("pool", MemfdFlags::empty()).unwrap();
        ftruncate(&file, u64::from(shares.total()) * CHUNK_BYTES as u64).unwrap();
        let mut command = Command::new(program);
        command.arg(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let shared = shares.0.map(u64::from);
        let numbers = [&[cpus as u64][..], &shared, &[least_chunks(cpus), KEPT.0]].concat();
        command
            .args(numbers.iter().map(u64::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let (orders, answers) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        let pool = Pool::map(file.as_fd(), shares.total()).unwrap();
        let mut feed =
            SimulatedFeed { program, orders, answers: BufReader::new(answers), pool, shares };
        // It has opened the file when it answers.
        feed.order("go");
        feed
    }

    fn order(&mut self, order: &str) -> FeedState {
        let mut line = String::new();
        writeln!(self.orders, "{order}").unwrap();
        self.answers.read_line(&mut line).unwrap();
        let numbers: Vec<u64> =
            line.split_whitespace().map(|number| number.parse().unwrap()).collect();
        FeedState {
            overwritten: [0, 3, 6].map(|at| Nanos(numbers[at])),
            owned: [2, 5, 8].map(|at| numbers[at] as u32),
            dropped: numbers[1] + numbers[4] + numbers[7],
            is_running: numbers[9] > 0,
            switches: numbers[10],
        }
    }

    fn copy(&self) -> [Vec<u8>; 3] {
        RingClass::ALL.map(|class| copied(&self.pool, class))
    }
}

impl Drop for SimulatedFeed {
    fn drop(&mut self) {
        self.program.kill().ok();
        self.program.wait().ok();
    }
}

fn tid_of(cpu: u64, turn: u64) -> u64 {
    FIRST_TID + cpu * TIDS + turn % TIDS
}

/// Returns the chunks of a copy, in the order in which they were opened.
fn chunks(copied: &[u8]) -> Vec<(ChunkHead, &[u8])> {
    let mut chunks: Vec<_> = copied
        .chunks(CHUNK_BYTES)
        .map(|chunk| (ChunkHead::read_from_prefix(chunk).unwrap().0, chunk))
        .collect();
    chunks.sort_by_key(|(head, _)| head.opened);
    chunks
}

/// Returns the times of each CPU's switches after `held`, and checks that none is torn or missing.
fn switches(copied: &[u8], held: Nanos) -> BTreeMap<u64, Vec<Nanos>> {
    let mut found: BTreeMap<u64, Vec<Nanos>> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (head, chunk) in chunks(copied) {
        let cpu = u64::from(head.cpu);
        let whole = unpacked(chunk);
        for switch in whole
            .chunks(CHUNK_BYTES)
            .flat_map(entries)
            .map(|entry| Switch::read(entry.bytes).unwrap())
        {
            let (tid, next) = (u64::from(switch.head.tid.0), u64::from(switch.next.0));
            let turn = tid.wrapping_sub(tid_of(cpu, 0));
            assert!(turn < TIDS && next == tid_of(cpu, turn + 1), "torn on CPU {cpu}: {switch:?}");
            if switch.head.ts <= held {
                continue;
            }
            let before = last.insert(cpu, next).unwrap_or(tid);
            assert_eq!(before, tid, "a switch of CPU {cpu} is missing before {switch:?}");
            found.entry(cpu).or_default().push(switch.head.ts);
        }
    }
    found
}

/// Checks that chunks now used for switches hold no leftover names of rare records: their second
/// words have all high bits set, which no switch has.
fn expect_cleared(copied: &[u8]) {
    let words = copied
        .chunks_exact(WORD_BYTES)
        .map(|word| u64::from_le_bytes(*word.first_chunk().unwrap()));
    assert_eq!(words.filter(|word| word >> 56 == 0xff).count(), 0);
}

/// Checks the names, which hold their own time and CPU.
fn expect_whole_names(copied: &[u8]) {
    for (head, chunk) in chunks(copied) {
        for name in entries(chunk).map(|entry| Rename::read(entry.bytes).unwrap()) {
            let (ts, cpu) = (name.head.ts.0, name.head.tid.0);
            let whole = [ts.to_le_bytes(), (!ts).to_le_bytes()].concat();
            assert_eq!((&name.comm[..], cpu), (&whole[..], head.cpu), "torn: {name:?}");
        }
    }
}

/// Seals the copies, reads them back, and checks the timeline: each CPU ran the threads it was
/// switched to.
fn expect_timeline(folder: &Path, [sched, rare, exits]: [Vec<u8>; 3], held: Nanos) {
    let found = switches(&sched, held);
    let mark = found.values().filter_map(|times| times.last()).max().unwrap().after(Nanos(1));
    let bytes = [&sched, &rare, &exits].map(Vec::len).iter().sum();
    // Includes records that the copy no longer holds completely.
    let records = chunks(&sched)
        .iter()
        .map(|(_, chunk)| unpacked(chunk).chunks(CHUNK_BYTES).flat_map(entries).count())
        .sum();
    let mut incident = Incident::default();
    let meta = Meta {
        id: tipme_store::id_at(mark.0),
        mark_ns: mark.0,
        held_from_ns: held.0,
        ..Meta::default()
    };
    incident.push_json(Section::Meta, &meta).unwrap();
    incident.push(Section::Sched, sched);
    incident.push(Section::Rare, rare);
    incident.push(Section::Exits, exits);
    let path = tipme_store::write(folder, &incident, rustix::process::geteuid().as_raw()).unwrap();
    drop(incident);
    let before = reset_peak();
    let recording = Recording::read(&tipme_store::read(&path).unwrap()).unwrap();
    let (stated, read) = (stated_bytes(bytes, records, found.len()), peak() - before);
    assert!(read <= stated, "{} MiB of {} to read {records} records", read >> 20, stated >> 20);
    for (cpu, times) in found {
        let ran = recording.timeline.ran(Cpu(cpu as u32), times[0], mark);
        assert_eq!(ran.len(), times.len(), "CPU {cpu}");
        assert!(ran.iter().zip(times).all(|((_, begin, _), time)| *begin == time), "CPU {cpu}");
    }
}

/// Returns the maximum memory for reading: the sections, 96 bytes per switch (lists double when
/// they are full, and other tests in this process use memory too), and per CPU one chunk with
/// unpacked records.
fn stated_bytes(sections: usize, switches: usize, cpus: usize) -> u64 {
    (sections + 96 * switches + cpus * 8 * CHUNK_BYTES) as u64
}

/// Returns the peak memory of this process since the last reset, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Resets the peak, and returns the current value.
fn reset_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    peak()
}

/// Takes copies until a given number of switches has been written, and checks each copy.
fn copy_until(feed: &mut SimulatedFeed, switches_written: u64) -> FeedState {
    loop {
        let copied = feed.copy();
        // Read after the copy, like the recorder does.
        let state = feed.order("go");
        switches(&copied[0], state.overwritten[0]);
        expect_cleared(&copied[0]);
        copied[1..].iter().for_each(|copied| expect_whole_names(copied));
        if state.switches >= switches_written {
            return state;
        }
    }
}

fn end(feed: &mut SimulatedFeed) -> FeedState {
    let mut state = feed.order("end");
    while state.is_running {
        state = feed.order("go");
    }
    state
}

/// Returns the number of CPUs that have a chunk.
fn present(copied: &[u8]) -> usize {
    chunks(copied).iter().map(|(head, _)| head.cpu).collect::<BTreeSet<u32>>().len()
}

/// Writes as `cpus` CPUs in `memory` bytes. Returns the number of chunks per class: the initial
/// shares, while rare records are rare, and when they are frequent.
fn expect_whole(program: &Path, folder: &Path, cpus: usize, memory: u64) -> [[u32; 3]; 3] {
    let mut feed = SimulatedFeed::start(program, cpus, memory);
    let quiet = copy_until(&mut feed, QUIET);
    feed.order("loud");
    copy_until(&mut feed, LOUD);
    let loud = end(&mut feed);
    let copied = feed.copy();
    // One CPU has been idle since the beginning.
    assert_eq!(copied.each_ref().map(|copied| present(copied)), [cpus; 3]);
    assert_eq!((quiet.dropped, loud.dropped), (0, 0));
    let bytes: usize = copied.iter().map(Vec::len).sum();
    assert!(bytes <= feed.shares.total() as usize * CHUNK_BYTES);
    let held = loud.overwritten[0];
    // The last overwritten records were the oldest: all other switches are younger, or a CPU still
    // writes there.
    let younger = chunks(&copied[0])
        .iter()
        .filter(|(head, _)| head.closed == Nanos(0) || head.closed >= held)
        .count();
    assert!(
        younger as u32 + EXCHANGED_MAX >= loud.owned[0],
        "{younger} chunks of {}",
        loud.owned[0]
    );
    expect_timeline(folder, copied, held);
    [feed.shares.0, quiet.owned, loud.owned]
}

#[test]
fn many_cpus_lose_nothing_and_tear_nothing() {
    let _alone = ALONE.lock();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path());
    for (cpus, mib) in [(64, 32), (256, 64)] {
        expect_whole(&program, folder.path(), cpus, mib << 20);
    }
}

#[test]
fn memory_follows_the_load_between_kinds_of_records() {
    let _alone = ALONE.lock();
    let folder = TempDir::new().unwrap();
    let [shares, quiet, loud] = expect_whole(&compiled(folder.path()), folder.path(), 4, 16 << 20);
    assert!(
        quiet[0] > shares[0],
        "switches have what nobody needs for rare records: {quiet:?} of {shares:?}"
    );
    assert!(loud[1] >= shares[1], "rare records have their share again: {loud:?} of {shares:?}");
}
