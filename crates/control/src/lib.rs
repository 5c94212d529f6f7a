// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's socket: a client connects, sends a [`Request`] as one line of JSON, and gets a
//! [`Response`] as one line of JSON.
//!
//! The server trusts nobody. The kernel says who calls (peer credentials), a line is bounded by
//! [`MAX_LINE_BYTES`], at most [`MAX_CONNECTIONS`] are open at a time, each has [`READ_PATIENCE`] to
//! send its line, and what it sends can be anything: the answer is then an error. The server never
//! blocks and has no thread; its owner polls the descriptors that it names.

mod client;
mod message;
mod server;

pub use client::{CallError, Client};
pub use message::{AutoCounts, Request, Response, Status, Trigger};
pub use server::{BindError, Call, Caller, MAX_CONNECTIONS, READ_PATIENCE, Server};

/// Bytes of a line, its end included, at most.
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// Name of the socket in the state directory.
pub const SOCKET_NAME: &str = "control.sock";
/// Where the recorder keeps its socket unless told otherwise.
pub const DEFAULT_STATE_DIR: &str = "/run/tipme";
