// SPDX-License-Identifier: MIT OR Apache-2.0
//! A killed recorder leaves no program in the kernel. Needs root.
//!
//! The test program is its own victim: run as `kill child`, it arms everything and waits to be
//! killed.

use libbpf_rs::query::ProgInfoIter;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use tipme_kernel::{Kernel, KernelOptions, Storage};
use tipme_record::Nanos;

fn main() {
    if std::env::args().any(|argument| argument == "child") {
        arm_and_wait();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "armed\n", "the child could not arm; this test needs root");
    let ids = programs_of(child.id());
    assert!(ids.len() > 20, "only {} programs", ids.len());
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees programs after a grace period.
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        ProgInfoIter::default().all(|program| !ids.contains(&program.id))
    });
    assert!(gone, "kernel programs outlived their recorder");
    println!("kill: {} programs are gone", ids.len());
}

fn arm_and_wait() -> ! {
    let mut storage = Storage::default();
    let (memory, window) = (32 << 20, Nanos(0));
    let options = KernelOptions {
        memory,
        without: Vec::new(),
        display: None,
        window,
        hertz: 99,
        details: Vec::new(),
    };
    let _kernel = Kernel::arm(&mut storage, &options).unwrap();
    println!("armed");
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Returns the ids of the kernel programs that a process holds.
fn programs_of(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts
        .filter_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
        })
        .collect()
}
