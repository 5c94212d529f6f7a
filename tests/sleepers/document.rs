// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the document about sleeping functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const PATH: &str = "docs/results/sleeping-functions.md";

/// Maximum number of callers shown for a function without a row.
const CALLERS: usize = 5;

/// Functions that sleep under the system calls.
#[derive(Default)]
pub struct Sleepers {
    /// Number of functions in the kernel's image, and of those reached.
    pub functions: usize,
    pub reached: usize,
    /// By the kind of wait in their row.
    pub named: BTreeMap<String, BTreeSet<String>>,
    /// Without a row, but reached only through functions that have one.
    pub by_callers: BTreeSet<String>,
    /// Without a row, with their callers.
    pub rest: Vec<(String, Vec<String>)>,
}

impl Sleepers {
    /// Counts the functions.
    pub fn len(&self) -> usize {
        self.own() + self.by_callers.len() + self.rest.len()
    }

    fn own(&self) -> usize {
        self.named.values().map(BTreeSet::len).sum()
    }
}

/// Writes the document.
pub fn write(found: &Sleepers) -> std::io::Result<()> {
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH), text(found))
}

fn text(found: &Sleepers) -> String {
    let mut text = format!(
        "{INTRODUCTION}\n{}, commit {}, Linux {}: {} functions, of which {} can be reached under these \
         calls and {} sleep. {} have a row of their own, {} are reached only through functions that \
         have one, and {} have none.\n\n\
         | kind of wait | functions |\n|---|---|\n",
        output("date", &["-u", "+%F"]),
        output("git", &["rev-parse", "--short", "HEAD"]),
        output("uname", &["-r"]),
        found.functions,
        found.reached,
        found.len(),
        found.own(),
        found.by_callers.len(),
        found.rest.len(),
    );
    for (kind, names) in &found.named {
        row(&mut text, kind, names.iter().map(String::as_str));
    }
    row(&mut text, "that of a caller", found.by_callers.iter().map(String::as_str));
    text += "\n## Without a row\n\n| function | called by |\n|---|---|\n";
    for (name, callers) in &found.rest {
        row(&mut text, &format!("`{name}`"), callers.iter().take(CALLERS).map(String::as_str));
    }
    text + LIMITS
}

/// Adds a table row with names in its second cell.
fn row<'a>(text: &mut String, first: &str, names: impl Iterator<Item = &'a str>) {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let cell = if names.is_empty() { "a system call or table" } else { &names.join(", ") };
    writeln!(text, "| {first} | {cell} |").expect("text takes what is written");
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

const INTRODUCTION: &str = "\
# Functions in which the kernel sleeps

A wait gets its kind from the kernel functions in its stack
(`crates/analysis/src/timeline/wait_functions.rs`). This list holds that table against a kernel:
every function that sleeps under the system calls of a desktop, with the kind of wait that its row
gives. A wait in a function without a row is reported by the names of the function and of the system
call.

Written by `TIPME_BLESS=1 cargo test -p tipme-tests --test sleepers` as root. The test fails when
less than 95% have a row.
";

const LIMITS: &str = "
## How the list is made

The test reads the text of the running kernel through a kernel program, and takes each call and jump
with a distance of 32 bits to the first byte of another function as an edge. The roots are the entry
points of the system calls and of page faults, and all functions with the type of a slot in a table
of operations of files, inodes, address spaces, mappings, sockets, terminals, block devices and the
like, by the kernel's BTF. A function sleeps when it calls one in the scheduler's section, such as
`schedule`, `schedule_timeout`, `wait_for_completion` and `out_of_line_wait_on_bit`, or one of
`wait_woken`, `msleep` and `do_wait_intr`.

Not listed, since they need no row:

- callers of mutexes, semaphores and the like: the kernel reports those waits as contended locks;
- callers of `io_schedule`: the state of the thread says that it waits for I/O;
- functions that let another thread run, and wait for nothing.

What the method can and cannot see:

- It sees functions that never slept on this machine, and those of file systems that are not
  mounted.
- It does not see calls through pointers other than those tables: callbacks, notifiers, work items,
  crypto and device drivers behind their own tables. What sleeps only behind those is missing.
- It takes every function of a slot's type for one that can be called through the slot, and every
  function in the image for one that can be reached, so some entries never happen under these system
  calls.
- It sees no modules. Drivers and file systems that distributions build as modules (DRM, NFS, SMB,
  device mapper, sound) have rows by the functions of Debian's 6.12 modules that call the scheduler;
  this test does not check them.
- A compiler that inlines differently moves a sleep into another function: rows are prefixes, and
  for file systems cover all of a name's family.
- It says that a function has a row, and not that the row is right. The unit tests beside the table
  hold stacks against kinds, most of them as this kernel recorded them.
";
