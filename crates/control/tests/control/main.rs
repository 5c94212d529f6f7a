// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the messages and of the socket, with callers of every kind.

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
