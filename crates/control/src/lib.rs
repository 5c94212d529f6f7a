// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemons' sockets: a client connects, sends a [`RecorderRequest`] as one line of JSON, and
//! gets a [`RecorderResponse`] as one line of JSON.
//!
//! The server trusts no caller. The kernel identifies callers by peer credentials, a line is
//! limited to [`MAX_LINE_BYTES`], at most [`MAX_CONNECTIONS`] are open at a time, each has
//! [`READ_TIMEOUT`] to send its line, and arbitrary input gets an error as answer. The server never
//! blocks and has no thread; its owner polls the descriptors that it returns.
//!
//! A daemon with persistent connections uses [`SocketListener`] and [`Conversation`]: the same
//! lines and limits, but many requests per connection, and the daemon notices its end.
//!
//! [`RecorderRequest`] and [`RecorderResponse`] are the recorder's; [`manager`] has those of the
//! user interaction manager, with the same [`ServerOf`] and [`ClientOf`].

#![warn(unreachable_pub)]

pub mod accounts;
mod authority;
mod client;
mod connection;
mod conversation;
mod daemon;
mod folder;
mod following;
mod gate;
pub mod interrupt;
pub mod journal;
pub mod life;
mod listener;
pub mod manager;
mod message;
mod rates;
mod server;
pub mod state_file;

pub use authority::{Authority, Said};
pub use client::{CallError, Client, ClientOf, Dialogue};
pub use connection::{Caller, Connection, READ_TIMEOUT};
pub use conversation::{Conversation, Received};
pub use daemon::Daemon;
pub use folder::{FolderError, secure};
pub use following::{Following, FollowingOf};
pub use gate::{Entitled, GROUP, Gate, Judged};
pub use listener::{BindError, SocketListener};
pub use message::{
    AutoCounts, Focused, RecordedDetail, RecorderRequest, RecorderResponse, RecorderSocket,
    RecorderStatus, ToldTolerance, Trigger, parse_request, parse_response, to_line,
};
pub use rates::Rates;
pub use server::{Call, CallOf, Follower, FollowerOf, MAX_CONNECTIONS, Server, ServerOf};

/// Maximum bytes of a line, including its newline.
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// Name of the recorder's socket in the state directory.
pub const SOCKET_NAME: &str = "control.sock";
/// Default state directory, with the daemons' sockets.
pub const DEFAULT_STATE_DIR: &str = "/run/tipme";
