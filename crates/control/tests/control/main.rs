// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the messages and the socket, with all kinds of callers.

#[cfg(test)]
mod conversation;
#[cfg(test)]
mod following;
#[cfg(test)]
mod manager;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod socket;
