// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the C declarations of the records and compiles the kernel programs against them.

use anyhow::{Context, Result};
use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const SOURCE: &str = "src/bpf/tipme.bpf.c";

fn main() -> Result<()> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?);
    std::fs::write(out.join("records.h"), tipme_record::c_header())?;
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-I", &out.to_string_lossy(), "-I", "src/bpf"])
        .build_and_generate(out.join("tipme.skel.rs"))
        .context(
            "cannot compile the kernel programs; needs clang 14 or newer: apt-get install clang",
        )?;
    println!("cargo:rerun-if-changed=src/bpf");
    Ok(())
}
