// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fixed structures of the file, their checksums, and the bounds of the reader.

use tipme_record::incident::Section;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// First bytes of every incident file; the carriage return and line feed reveal a text-mode
/// transfer.
pub(crate) const MAGIC: [u8; 8] = *b"TIPME\0\r\n";
/// Format version that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 2;
/// Size of the header, in bytes.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Size of a section's head, in bytes.
pub const SECTION_HEAD_BYTES: usize = size_of::<SectionHead>();
/// Maximum unpacked bytes of one section.
pub(crate) const MAX_SECTION_BYTES: u64 = 1 << 30;
/// Maximum unpacked bytes of all sections of a file.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;
/// Maximum ratio of unpacked to stored bytes of a file, beyond [`SMALL_BYTES`].
pub(crate) const RATIO_MAX: u64 = 64;
/// Unpacked bytes of a file exempt from the ratio check: a section of zeros compresses
/// ten-thousandfold.
pub(crate) const SMALL_BYTES: u64 = 64 << 20;
/// Maximum number of sections in a file.
pub(crate) const MAX_SECTIONS: usize = 4096;
/// Maximum bytes of the text that the user adds to an incident.
pub(crate) const MAX_WORDS_BYTES: usize = 64 * 1024;

/// Header flag: the file is still being written.
pub(crate) const INCOMPLETE: u32 = 1;
/// Section flag: the stored bytes are zstd frames.
pub(crate) const COMPRESSED: u32 = 1;

/// Start of the file. The checksum covers all but `flags` and itself.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub flags: u32,
    /// Length of the file in bytes when it was sealed; 0 before.
    pub sealed_len: u64,
    pub reserved: [u8; 36],
    pub crc: u32,
}

impl Header {
    /// Returns the header of an unsealed file.
    pub(crate) fn incomplete() -> Header {
        Header { magic: MAGIC, version: VERSION, flags: INCOMPLETE, ..Header::new_zeroed() }
            .summed()
    }

    /// Returns the header of a sealed file.
    pub(crate) fn sealed(sealed_len: u64) -> Header {
        Header { flags: 0, sealed_len, ..Header::incomplete() }.summed()
    }

    /// Returns `true` if the checksum matches.
    pub(crate) fn is_intact(&self) -> bool {
        self.crc == self.sum()
    }

    fn summed(self) -> Header {
        Header { crc: self.sum(), ..self }
    }

    fn sum(&self) -> u32 {
        let fixed = Header { flags: 0, crc: 0, ..*self };
        crc32fast::hash(fixed.as_bytes())
    }
}

/// Start of a section.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SectionHead {
    pub kind: u32,
    pub flags: u32,
    /// Unpacked bytes.
    pub raw_len: u64,
    /// Bytes in the file after this head.
    pub stored_len: u64,
    /// Checksum of the stored bytes.
    pub crc: u32,
    /// Checksum of the fields before this one.
    pub head_crc: u32,
}

impl SectionHead {
    /// Fills in the checksum of the head.
    pub(crate) fn summed(self) -> SectionHead {
        SectionHead { head_crc: self.sum(), ..self }
    }

    /// Describes the first fault of the head, if any: checksum, flags, or a bound.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.head_crc != self.sum() {
            Some("the checksum of its head does not fit")
        } else if self.flags & !COMPRESSED != 0 {
            Some("it has flags that this version does not know")
        } else if self.raw_len > MAX_SECTION_BYTES {
            Some("it claims more than 1 GiB")
        } else if !self.has_credible_length() {
            Some("its stored length cannot belong to its unpacked length")
        } else {
            None
        }
    }

    /// Name in messages.
    pub(crate) fn name(&self) -> String {
        match Section::from_number(self.kind) {
            Some(section) => format!("section {}", section_name(section)),
            None => format!("section number {}", self.kind),
        }
    }

    /// Returns `true` if the stored length fits: a compressor adds at most 1/128 and a small
    /// header.
    fn has_credible_length(&self) -> bool {
        if self.flags & COMPRESSED == 0 {
            self.stored_len == self.raw_len
        } else {
            self.stored_len <= self.raw_len + self.raw_len / 128 + 1024
        }
    }

    fn sum(&self) -> u32 {
        let fixed = self.as_bytes();
        crc32fast::hash(&fixed[..fixed.len() - size_of::<u32>()])
    }
}

/// Returns the maximum unpacked bytes that are credible for `stored` bytes.
pub(crate) fn credible_bytes(stored: u64) -> u64 {
    SMALL_BYTES.saturating_add(stored.saturating_mul(RATIO_MAX))
}

/// Returns the lower-case name of a section for messages.
pub(crate) fn section_name(section: Section) -> String {
    format!("{section:?}").to_lowercase()
}
