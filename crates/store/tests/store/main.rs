// SPDX-License-Identifier: MIT OR Apache-2.0

#[cfg(test)]
mod files;
#[cfg(test)]
mod format;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod pruning;
#[cfg(test)]
mod support;
