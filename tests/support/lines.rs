// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutated lines for a daemon's socket: each gets a response, and the daemon neither ends nor
//! grows.

use crate::memory_bytes;
use fastrand::Rng;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tipme_fuzz::{TARGETS, mutate};

/// Default number of lines, which the environment overrides; `make fuzz` sends a hundred thousand.
const LINES: u64 = 1_500;
const COUNT: &str = "TIPME_LINES";
/// Maximum memory growth of a daemon after the first tenth.
const GROWTH_MAX: u64 = 4 << 20;

/// Sends mutations of this daemon's requests, each over a connection of its own.
pub fn send_mutated(daemon: &str, socket: &Path, pid: u32) {
    let target = TARGETS.iter().find(|target| target.name == daemon).unwrap();
    let mut seeds = (target.seeds)();
    // Other tests write incidents.
    seeds.retain(|seed| !seed.starts_with(b"{\"mark"));
    let count = std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).unwrap_or(LINES);
    let (mut answered, mut early) = (0, 0);
    for number in 0..count {
        let mut random = Rng::with_seed(number);
        let mut line = seeds[random.usize(..seeds.len())].clone();
        mutate(&mut line, &mut random);
        line.push(b'\n');
        answered += u64::from(say(socket, &line));
        if number == count / 10 {
            early = memory_bytes(pid, "RssAnon");
        }
    }
    let late = memory_bytes(pid, "RssAnon");
    println!(
        "{daemon}: {count} lines, {answered} answers, {early} bytes after a tenth, {late} at the end"
    );
    assert!(answered > count / 2, "{daemon}: {answered} answers to {count} lines");
    assert!(late < early + GROWTH_MAX, "{daemon} grew from {early} to {late} bytes");
    assert!(say(socket, b"\"status\"\n"), "{daemon} is gone");
}

/// Returns `true` if the response is JSON.
fn say(socket: &Path, line: &[u8]) -> bool {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A daemon may have closed the connection after the first of two lines.
    if stream.write_all(line).is_ok() {
        stream.shutdown(Shutdown::Write).ok();
    }
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("no answer to {line:?}")
        }
        _ => answer
            .split(|byte| *byte == b'\n')
            .next()
            .is_some_and(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok()),
    }
}
