// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the target named in `TIPME_TARGET`; `make fuzz-guided` runs all of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use tipme_fuzz::{TARGETS, Target};

static TARGET: OnceLock<&Target> = OnceLock::new();

fn target() -> &'static Target {
    let name = std::env::var("TIPME_TARGET").expect("TIPME_TARGET names a target");
    TARGETS.iter().find(|target| target.name == name).expect("TIPME_TARGET names a target")
}

fuzz_target!(|bytes: &[u8]| drop((TARGET.get_or_init(target).check)(bytes)));
