// SPDX-License-Identifier: MIT OR Apache-2.0
//! Well-formed records with arbitrary content, which reach the code behind the decoder.
//!
//! They use few threads, so that these interact; the rest of the input becomes the sections other
//! than records, and the documents about locks, control groups, files and habits.

use crate::seeds::check_incident;
use fastrand::Rng;
use tipme_record::incident::{
    Display, Extension, FileName, FutexOwner, Groups, Incident, IoLimit, IoLimitedGroup,
    LimitedGroup, Locks, Machine, Meta, Section, StoredBaseline,
};
use tipme_record::packed::WORD_BYTES;
use tipme_record::{CHUNK_BYTES, RingClass, TABLES, Table};

/// Numbers from here on stand for a packed record.
const PACKED: u8 = 0xa0;
const BEGIN_NS: u64 = 1_000_000_000;
/// Share of the input for records: at most half.
const RECORDS_SHARE: usize = 2;

/// Diagnoses; every other input is used as bytes of any section.
pub fn check(bytes: &[u8]) -> bool {
    match bytes.split_first() {
        Some((first, rest)) if first % 2 == 1 => {
            tipme_analysis::exercise(rest);
            false
        }
        _ => check_incident(&incident(bytes)),
    }
}

/// Returns noise of several lengths: every byte of it is valid.
pub fn seeds() -> Vec<Vec<u8>> {
    let noise = (0..64).map(|seed| {
        let mut random = Rng::with_seed(seed);
        let length = 64 << random.usize(..8);
        (0..length).map(|_| random.u8(..)).collect()
    });
    noise.collect()
}

/// Records of one incident.
struct Records {
    chunks: [Vec<u8>; 3],
    loose: Vec<u8>,
    ts: u64,
}

fn incident(bytes: &[u8]) -> Incident {
    let (mut records, rest) = bytes.split_at(bytes.len() - bytes.len() / RECORDS_SHARE);
    let mut made =
        Records { chunks: RingClass::ALL.map(chunk_head), loose: Vec::new(), ts: BEGIN_NS };
    while let [table, tid, step, payload @ ..] = records {
        if let Some((word, further)) =
            payload.split_first_chunk::<WORD_BYTES>().filter(|_| *table >= PACKED)
        {
            made.add_packed(*word);
            records = further;
            continue;
        }
        let table = &TABLES[usize::from(*table) % TABLES.len()];
        let (payload, further) = payload.split_at(payload.len().min(table.size - 16));
        made.ts += u64::from(*step) * 50_000;
        made.add(table, tid % 12, payload);
        records = further;
    }
    made.finish(rest)
}

fn chunk_head(class: RingClass) -> Vec<u8> {
    let mut head = Vec::new();
    head.extend(1u64.to_le_bytes());
    head.extend(BEGIN_NS.to_le_bytes());
    head.extend(0u32.to_le_bytes());
    head.extend((class as u32).to_le_bytes());
    head.extend(0u64.to_le_bytes());
    head
}

impl Records {
    fn add(&mut self, table: &Table, tid: u8, payload: &[u8]) {
        let (target, generation) = match table.name {
            "switch" | "waking" | "migrate" => (&mut self.chunks[0], 1),
            "exit" => (&mut self.chunks[2], 1),
            "task" => (&mut self.loose, 0),
            "wait" if tid > 6 => (&mut self.loose, 0),
            _ => (&mut self.chunks[1], 1),
        };
        if target.len() + table.size > CHUNK_BYTES {
            return;
        }
        let end = target.len() + table.size;
        target.extend(self.ts.to_le_bytes());
        target.extend(u32::from(tid).to_le_bytes());
        target.extend((table.size as u16).to_le_bytes());
        target.extend([table.kind, generation]);
        target.extend(payload);
        target.resize(end, 0);
    }

    /// Adds a packed record of any kind and content, of the chunk's generation.
    fn add_packed(&mut self, mut word: [u8; WORD_BYTES]) {
        word[WORD_BYTES - 1] = (word[WORD_BYTES - 1] & 0x60) | 0x81;
        if self.chunks[0].len() + WORD_BYTES <= CHUNK_BYTES {
            self.chunks[0].extend(word);
        }
    }

    fn finish(self, rest: &[u8]) -> Incident {
        let mut incident = Incident::default();
        let mark_ns = self.ts + 1_000_000;
        let machine = Machine { cpus: 2, ..Machine::default() };
        let meta = Meta {
            mark_ns,
            held_from_ns: BEGIN_NS,
            armed_ns: BEGIN_NS,
            machine,
            ..Meta::default()
        };
        incident.push_json(Section::Meta, &meta).expect("it is JSON");
        let extensions = vec![Extension { name: "XTEST".into(), major: 132 }];
        let displays = [Display { display: 99, server_pid: 1, extensions }];
        incident.push_json(Section::Displays, &displays).expect("it is JSON");
        for (section, mut chunk) in
            [Section::Sched, Section::Rare, Section::Exits].into_iter().zip(self.chunks)
        {
            chunk.resize(CHUNK_BYTES, 0);
            incident.push(section, chunk);
        }
        incident.push(Section::Tasks, self.loose);
        let rest = push_documents(&mut incident, rest);
        let mut parts = rest.chunks(rest.len().div_ceil(3).max(1));
        for section in [Section::Cmdlines, Section::Stacks, Section::Symbols] {
            incident.push(section, parts.next().unwrap_or_default().to_vec());
        }
        incident.push(Section::Samples, samples(rest));
        incident
    }
}

/// Returns steal times of the CPUs, a tenth of a second apart.
fn samples(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (tick, byte) in (0u64..).zip(bytes) {
        let stolen = u64::from(*byte) * tick;
        let text =
            format!("cpu  9 0 9 900 0 0 1 {stolen} 0 0\ncpu0 9 0 9 900 0 0 1 {stolen} 0 0\n");
        out.extend((BEGIN_NS + tick * 100_000_000).to_le_bytes());
        out.extend(3u32.to_le_bytes());
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text.as_bytes());
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

/// Uses the first bytes for the documents; returns the others.
fn push_documents<'a>(incident: &mut Incident, rest: &'a [u8]) -> &'a [u8] {
    let (numbers, rest) = rest.split_at(rest.len().min(16));
    let number = |at: usize| u64::from(numbers.get(at).copied().unwrap_or(0));
    let tid = |at: usize| (number(at) % 12) as u32;
    let line = format!("1: FLOCK  ADVISORY  WRITE {} fe:00:{} 0 EOF", tid(0), number(1));
    let futexes = vec![FutexOwner { tid: tid(2), address: number(3), owner: tid(4) }];
    let (quota_us, period_us) = (number(8) * 1_000, number(9) * 1_000);
    let (tids, pids) = (vec![tid(7)], vec![tid(5)]);
    // Throttling records with a one-byte number refer to this group.
    let number_of_group = number(6) * 0x0101_0101_0101_0101;
    let (path, file) = ("/a".into(), "/a/cpu.max".into());
    let group =
        LimitedGroup { number: number_of_group, path, file, quota_us, period_us, tids, pids };
    let limit = IoLimit {
        file: "/a/io.max".into(),
        device: number(10) as u32,
        write: number(11) & 1 == 1,
        operations: number(12) & 1 == 1,
        per_second: number(13) << number(14).min(56),
    };
    let io =
        IoLimitedGroup { folder: "/a".into(), limits: vec![limit], tids: vec![tid(7), tid(2)] };
    let files = [FileName { device: number(10) as u32, inode: number(11), path: "/b".into() }];
    let habit = StoredBaseline {
        class: "key".into(),
        n: number(12),
        p50_ns: number(13) << 20,
        p98_ns: number(14) << 20,
        max_ns: number(15) << 20,
        ..StoredBaseline::default()
    };
    incident
        .push_json(Section::Locks, &Locks { proc_locks: line, futexes, ..Locks::default() })
        .expect("it is JSON");
    incident
        .push_json(
            Section::Groups,
            &Groups { limited: vec![group], ended: vec![tid(9)], io: vec![io] },
        )
        .expect("it is JSON");
    incident.push_json(Section::Files, &files).expect("it is JSON");
    incident.push_json(Section::Baselines, &[habit]).expect("it is JSON");
    rest
}
