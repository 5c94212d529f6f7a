// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fixed parts of the file, their checksums, and the bounds of the reader.

use tipme_record::incident::Section;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The first bytes of every incident file; the carriage return and line feed show a transfer as text.
pub(crate) const MAGIC: [u8; 8] = *b"TIPME\0\r\n";
/// Format version that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 2;
/// Bytes of the header.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Bytes of a section's head.
pub const SECTION_HEAD_BYTES: usize = size_of::<SectionHead>();
/// Unpacked bytes of one section, at most.
pub(crate) const MAX_SECTION_BYTES: u64 = 1 << 30;
/// Unpacked bytes of all sections of a file, at most.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;
/// Unpacked bytes of all sections of a file, at most, for each byte that they are stored in, beyond [`SMALL_BYTES`].
pub(crate) const RATIO_MAX: u64 = 64;
/// Unpacked bytes of a file that need not be believed: a section of nothing but zeros packs ten thousandfold.
pub(crate) const SMALL_BYTES: u64 = 64 << 20;
/// Sections of a file, at most.
pub(crate) const MAX_SECTIONS: usize = 4096;
/// Bytes of the text that the user adds to an incident, at most.
pub(crate) const MAX_WORDS_BYTES: usize = 64 * 1024;

/// Set while the file is being written.
pub(crate) const INCOMPLETE: u32 = 1;
/// The stored bytes are zstd frames.
pub(crate) const COMPRESSED: u32 = 1;

/// The start of the file. The checksum covers all but `flags` and itself.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub flags: u32,
    /// Bytes of the file when it was sealed; 0 before.
    pub sealed_len: u64,
    pub reserved: [u8; 36],
    pub crc: u32,
}

impl Header {
    /// The header of a file that is being written.
    pub(crate) fn incomplete() -> Header {
        Header { magic: MAGIC, version: VERSION, flags: INCOMPLETE, ..Header::new_zeroed() }.summed()
    }

    /// The header of a whole file.
    pub(crate) fn sealed(sealed_len: u64) -> Header {
        Header { flags: 0, sealed_len, ..Header::incomplete() }.summed()
    }

    /// Whether the checksum fits.
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

/// The start of a section.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SectionHead {
    pub kind: u32,
    pub flags: u32,
    /// Bytes when unpacked.
    pub raw_len: u64,
    /// Bytes in the file, after this head.
    pub stored_len: u64,
    /// Checksum of the stored bytes.
    pub crc: u32,
    /// Checksum of this head before this field.
    pub head_crc: u32,
}

impl SectionHead {
    /// Fills in the head's own checksum.
    pub(crate) fn summed(self) -> SectionHead {
        SectionHead { head_crc: self.sum(), ..self }
    }

    /// What is wrong with the head, if anything is: checksum, flags, or a bound.
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

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        match Section::from_number(self.kind) {
            Some(section) => format!("section {}", section_name(section)),
            None => format!("section number {}", self.kind),
        }
    }

    /// A compressor never adds more than a 128th and some head.
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

/// How much a file may unpack to that has so many bytes.
pub(crate) fn credible_bytes(stored: u64) -> u64 {
    SMALL_BYTES.saturating_add(stored.saturating_mul(RATIO_MAX))
}

/// A section's name in messages, in lower case.
pub(crate) fn section_name(section: Section) -> String {
    format!("{section:?}").to_lowercase()
}
