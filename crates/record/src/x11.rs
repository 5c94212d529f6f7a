// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawing requests of X11 extensions, shared by the kernel programs and the readers of their
//! records.

/// Extensions, with the minor opcodes of their requests that change the screen.
pub const DRAWING_REQUESTS: &[(&str, &[u8])] = &[
    ("RENDER", &[8, 10, 11, 12, 13, 23, 24, 25, 26, 32]),
    ("MIT-SHM", &[3]),
    ("Present", &[1, 5]),
    ("DOUBLE-BUFFER", &[3]),
    ("GLX", &[1, 2, 11, 16]),
    ("DRI2", &[7, 8]),
    ("XVideo", &[16, 18, 19]),
];
