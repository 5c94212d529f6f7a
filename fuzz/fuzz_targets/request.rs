// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control socket's lines: any bytes end with a message or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tipme_control::{Request, Response};

fuzz_target!(|line: &[u8]| {
    if let Ok(request) = Request::parse(line) {
        assert_eq!(Request::parse(&request.to_line()), Ok(request));
    }
    let _ = Response::parse(line);
});
