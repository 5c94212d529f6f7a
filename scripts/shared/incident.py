# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parser for the sections of an incident file, based on docs/reference/format.md alone."""

import ctypes
import struct

# Sections, and the bytes of the file header.
META, SCHED, RARE, LOSSES = 1, 2, 3, 13
FILE_HEAD_BYTES, SECTION_HEAD = 64, struct.Struct("<IIQQII")


class Unreadable(Exception):
    """Reason why the file is invalid."""


def sections(data):
    """Returns the unpacked sections with their kinds."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    at = FILE_HEAD_BYTES
    while at < len(data):
        kind, packed, length, stored, _, _ = SECTION_HEAD.unpack_from(data, at)
        at += SECTION_HEAD.size
        body, at = data[at : at + stored], at + stored
        if packed:
            room = ctypes.create_string_buffer(length)
            if library.ZSTD_decompress(room, length, body, stored) != length:
                raise Unreadable("a section of the incident cannot be unpacked")
            body = room.raw
        yield kind, body
