// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worker programs as an executable of their own, for the tests of this crate.

fn main() -> anyhow::Result<()> {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    tipme_bench::worker_programs::run(&words)
}
