// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that tipme keeps, program images, bytes of a display, scripts and results.

use std::hint::black_box;
use tipme_bench::script::Script;
use tipme_measure::{Document, NoDetails, Share, Summary, apdex, interaction_p98};

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Lines for every kind of place; their checksums are corrected before a second read.
pub fn journals() -> Vec<Vec<u8>> {
    let place = r#"{"member":{"process":{"pid":7,"start":5},"root":"/r"}}"#;
    let change = format!(
        r#"{{"check":1,"boot":9,"entry":{{"change":{{"place":{place},"cell":{{"baseline":"/r/a","applied":7,"before":null,"since":3,"session":7,"home":null}}}}}}}}"#
    );
    let clear = format!(r#"{{"check":2,"boot":9,"entry":{{"clear":{{"place":{place}}}}}}}"#);
    vec![format!("{clear}\n{change}\n{change}\n").into_bytes(), format!("{change}\n").into_bytes()]
}

pub fn processes() -> Vec<Vec<u8>> {
    ["/proc/self/stat", "/proc/self/status"]
        .map(|path| std::fs::read(path).unwrap_or_default())
        .to_vec()
}

pub fn files() -> Vec<Vec<u8>> {
    let file = r#"{"path":"/usr/bin/xterm","bytes":900000,"changed_s":1700000000}"#;
    let other = r#"{"path":"/usr/lib/libc.so.6","bytes":18446744073709551615,"changed_s":-9}"#;
    vec![
        format!(r#"{{"programs":{{"xterm":{{"files":[{file},{other}],"turn":3}},"emacs":{{"files":[{file}],"turn":4}}}},"turn":4}}"#).into_bytes(),
        br#"{"programs":{},"turn":0}"#.to_vec(),
    ]
}

pub fn baselines() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"version":1,"summaries":[{"class":"key","application":"xterm","used_s":1,"counts":[[5,9],[60,1]]}]}"#,
        r#"{"version":1,"summaries":[{"class":"click","application":"gedit","used_s":2,"counts":[]},{"class":"key","application":"gedit","used_s":2,"counts":[[0,18446744073709551615]]}]}"#,
    ])
}

pub fn days() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"version":1,"hours":[{"start_s":1728000000,"applications":[{"application":"xterm","wait_ns":5,"noticed_ns":0,"interactive_ns":9,"classes":[{"silent":1,"sum_ns":7,"max_ns":7,"excess_ns":[0,0,0],"counts":[[5,9],[60,1]]},{}]}]}],"longest":[],"lost":0}"#,
        r#"{"version":1,"hours":[],"longest":[{"at_ns":18446744073709551615,"latency_ns":18446744073709551615,"application":"gedit","class":"click","presses":4294967295}],"lost":18446744073709551615}"#,
    ])
}

pub fn tolerances() -> Vec<Vec<u8>> {
    let row = r#"{"uid":1000,"class":"key","application":"xterm","tolerance":{"level":-2,"unanswered":3,"bad":2,"right":1,"wrong":1,"ignored":0}}"#;
    let suggestion = r#"{"id":"20260131T120000.123Z","uid":1000,"class":"key","application":"xterm","answered":false}"#;
    vec![
        format!(r#"{{"version":1,"rows":[{row}],"suggested":[{suggestion},{suggestion}]}}"#)
            .into_bytes(),
    ]
}

pub fn answers() -> Vec<Vec<u8>> {
    texts(&["[0,[\"first\",\"second\"]]\n", "[0,[null,\"\\u0041\"]]\n[1,[]]\n"])
}

/// Returns the beginning of this program, and a minimal image with one symbol table.
pub fn images() -> Vec<Vec<u8>> {
    let own = std::fs::read("/proc/self/exe").unwrap_or_default();
    vec![own[..own.len().min(64 << 10)].to_vec(), small_image()]
}

/// Returns a 64-bit image with one segment, and a table of two functions with names.
fn small_image() -> Vec<u8> {
    let (segments, sections, symbols, names) = (64u64, 128u64, 320u64, 400u64);
    let mut parts: Vec<(u64, Vec<u8>)> = vec![
        (0, b"\x7fELF\x02\x01\x01".to_vec()),
        (32, segments.to_le_bytes().to_vec()),
        (40, sections.to_le_bytes().to_vec()),
        (54, vec![56, 0, 1, 0, 64, 0, 3, 0]),
        (segments, vec![1]),
        (segments + 32, 0x4000u64.to_le_bytes().to_vec()),
        (sections + 64 + 4, vec![2]),
        (sections + 64 + 24, symbols.to_le_bytes().to_vec()),
        (sections + 64 + 32, vec![72]),
        (sections + 64 + 40, vec![2]),
        (sections + 128 + 24, names.to_le_bytes().to_vec()),
        (sections + 128 + 32, vec![64]),
        (names + 8, b"first\0\0\0_ZN4deep6secondE\0".to_vec()),
    ];
    for (number, start) in [(1u8, 0x1000u64), (2, 0x2000)] {
        let at = symbols + 24 * u64::from(number);
        parts.push((at, vec![number * 8]));
        parts.push((at + 4, vec![2, 0, 1, 0]));
        parts.push((at + 8, start.to_le_bytes().to_vec()));
        parts.push((at + 16, 0x100u64.to_le_bytes().to_vec()));
    }
    let mut image = vec![0; 512];
    for (at, bytes) in parts {
        image[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
    }
    image
}

/// Returns a reply to a query of a property with these numbers.
fn property(numbers: &[u32]) -> Vec<u8> {
    let count = numbers.len() as u32;
    let mut bytes = vec![1, 32, 0, 0];
    bytes.extend([count, 6, 0, count, 0, 0, 0].iter().flat_map(|number| number.to_ne_bytes()));
    bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    bytes
}

/// Returns property replies of a display, a packet and an authority file.
pub fn properties() -> Vec<Vec<u8>> {
    vec![
        property(&[4711]),
        property(&[1, 1, 0, u32::MAX, 4711]),
        property(&[7; 64]),
        tipme_desktop::authority_file("0", &[7; 16]),
        [&[1, 0, 0, 0, 0, 0, 8, 0][..], &[0; 32], &[11 | 0x80; 32]].concat(),
        "größe <b>&\u{202e}\n".as_bytes().to_vec(),
    ]
}

/// Parses a script.
pub fn script(bytes: &[u8]) -> bool {
    Script::parse("fuzz", &String::from_utf8_lossy(bytes)).is_ok()
}

/// Returns the shipped scripts.
pub fn scripts() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/bench/scripts");
    let entries = std::fs::read_dir(folder).expect("the scripts are there").flatten();
    entries.map(|entry| std::fs::read(entry.path()).expect("it can be read")).collect()
}

/// Parses a result, and computes the figures of its latencies.
pub fn result(bytes: &[u8]) -> bool {
    let Ok(document) = serde_json::from_slice::<Document<NoDetails>>(bytes) else { return false };
    for events in document.runs.iter().flat_map(|run| &run.classes) {
        let summary = Summary::new(events.latencies_ns.clone());
        black_box((
            summary.shown(Share::P98),
            summary.max(),
            interaction_p98(&summary),
            apdex(&summary, 7, 9),
        ));
    }
    serde_json::to_vec(&document).is_ok()
}

pub fn results() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"schema":1,"kind":"idle","version":"0.1.0","machine":{"kernel":"6.18","cpu":"x","cpus":2,"memory_bytes":1,"hz":250,
        "clock_source":"tsc","virtualised":true,"governor":null,"load_average":[0.5,0.5,0.5],"steal_percent":0.1,"begun_unix_s":1,
        "duration_s":1.5},"runs":[{"name":"a","duration_ns":9,"interactive_ns":null,"lost":0,"classes":[{"class":"key",
        "threshold_ns":7,"frustrated_ns":null,"starts_ns":[1,2,3],"latencies_ns":[4,5,6],"censored":0}]}]}"#,
    ])
}
