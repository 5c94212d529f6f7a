// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of the workspace, checked in `cargo metadata` and in the source text.
//!
//! `ARCHITECTURE.md` gives the reason for each of them. A failing test names every place that
//! violates its rule.

#[cfg(test)]
#[path = "tidy/circles.rs"]
mod circles;
#[cfg(test)]
#[path = "tidy/crates.rs"]
mod crates;
#[cfg(test)]
#[path = "tidy/exports.rs"]
mod exports;
#[cfg(test)]
#[path = "tidy/figures.rs"]
mod figures;
#[cfg(test)]
#[path = "tidy/files.rs"]
mod files;
#[cfg(test)]
#[path = "tidy/imports.rs"]
mod imports;
#[cfg(test)]
#[path = "tidy/manual.rs"]
mod manual;
#[cfg(test)]
#[path = "tidy/names.rs"]
mod names;
#[cfg(test)]
#[path = "tidy/prose.rs"]
mod prose;
#[cfg(test)]
#[path = "tidy/rooms.rs"]
mod rooms;
#[cfg(test)]
#[path = "tidy/security.rs"]
mod security;
#[cfg(test)]
#[path = "tidy/source.rs"]
mod source;
#[cfg(test)]
#[path = "tidy/tree.rs"]
mod tree;
#[cfg(test)]
#[path = "tidy/walks.rs"]
mod walks;
