// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test's own connection to a private display.

use std::path::Path;
use tipme_bench::PrivateSession;
use x11rb::rust_connection::{DefaultStream, RustConnection};

pub fn connect(session: &PrivateSession) -> RustConnection {
    let path = format!("/tmp/.X11-unix/X{}", session.target().display);
    let stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    let (stream, _) = DefaultStream::from_unix_stream(stream).unwrap();
    connect_over(stream, &session.folder().join("authority"))
}

/// Connects over a stream, with the last entry of an authority file.
pub fn connect_over(stream: DefaultStream, authority: &Path) -> RustConnection {
    let name = b"MIT-MAGIC-COOKIE-1".to_vec();
    let cookie = std::fs::read(authority).unwrap().last_chunk::<16>().unwrap().to_vec();
    RustConnection::connect_to_stream_with_auth_info(stream, 0, name, cookie).unwrap()
}
