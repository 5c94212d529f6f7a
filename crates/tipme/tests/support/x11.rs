// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test's own connection to a private display.

use tipme_bench::PrivateSession;
use x11rb::rust_connection::{DefaultStream, RustConnection};

pub fn connect(session: &PrivateSession) -> RustConnection {
    let path = format!("/tmp/.X11-unix/X{}", session.target().display);
    let stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    let file = std::fs::read(session.folder().join("authority")).unwrap();
    let cookie = file[file.len() - 16..].to_vec();
    let (stream, _) = DefaultStream::from_unix_stream(stream).unwrap();
    RustConnection::connect_to_stream_with_auth_info(
        stream,
        0,
        b"MIT-MAGIC-COOKIE-1".to_vec(),
        cookie,
    )
    .unwrap()
}
