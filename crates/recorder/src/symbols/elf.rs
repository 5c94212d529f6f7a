// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of an untrusted ELF image.
//!
//! The image is read in pieces and never mapped: truncating a mapped file would kill the reader
//! with SIGBUS. Reads are bounded, and the contents are not trusted: they yield a name, none, or a
//! wrong one.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Maximum bytes of a symbol table: 2.8 million functions.
const TABLE_BYTES: u64 = 64 << 20;
/// Maximum size in bytes of a table of segments or sections.
const HEADERS_BYTES: u64 = 64 << 10;
/// Bytes of symbols read at once, a multiple of the symbol sizes of both classes.
const BLOCK_BYTES: u64 = 48 << 10;
/// Maximum bytes of a name in the image.
const NAME_BYTES: usize = 4096;

const LOADED: u64 = 1;
const SYMBOLS: u64 = 2;
const DYNAMIC_SYMBOLS: u64 = 11;

/// Offset and width of a number.
type Field = (usize, usize);

// Fields and sizes of headers and symbols, by the class of the image: 0 for 32 bits, 1 for 64.
const SEGMENTS: [Field; 2] = [(28, 4), (32, 8)];
const SEGMENT_COUNT: [Field; 2] = [(44, 2), (56, 2)];
const SECTIONS: [Field; 2] = [(32, 4), (40, 8)];
const SECTION_COUNT: [Field; 2] = [(48, 2), (60, 2)];
const SEGMENT_BYTES: [usize; 2] = [32, 56];
const SEGMENT_OFFSET: [Field; 2] = [(4, 4), (8, 8)];
const SEGMENT_ADDRESS: [Field; 2] = [(8, 4), (16, 8)];
const SEGMENT_LENGTH: [Field; 2] = [(16, 4), (32, 8)];
const SECTION_BYTES: [usize; 2] = [40, 64];
const SECTION_OFFSET: [Field; 2] = [(16, 4), (24, 8)];
const SECTION_LENGTH: [Field; 2] = [(20, 4), (32, 8)];
const SECTION_LINK: [Field; 2] = [(24, 4), (40, 4)];
const SYMBOL_BYTES: [usize; 2] = [16, 24];
const SYMBOL_KIND: [Field; 2] = [(12, 1), (4, 1)];
const SYMBOL_SECTION: [Field; 2] = [(14, 2), (6, 2)];
const SYMBOL_START: [Field; 2] = [(4, 4), (8, 8)];
const SYMBOL_LENGTH: [Field; 2] = [(8, 4), (16, 8)];

/// First word of each structure: type of a segment, name of a symbol. The second one is the type of
/// a section.
const FIRST: Field = (0, 4);
const SECOND: Field = (4, 4);

/// Reads a little-endian number; returns 0 if there are not enough bytes.
fn number(bytes: &[u8], (at, width): Field) -> u64 {
    let mut word = [0; 8];
    if let Some(found) = bytes.get(at..at + width) {
        word[..width].copy_from_slice(found);
    }
    u64::from_le_bytes(word)
}

/// An image in a file, or in the memory of a process at `base`.
pub(super) struct Image<'a> {
    pub(super) file: &'a File,
    pub(super) base: u64,
}

#[derive(Clone, Copy)]
struct ImageRange {
    offset: u64,
    length: u64,
}

/// A function, with the offset of its name.
#[derive(Clone, Copy)]
struct FunctionSymbol {
    start: u64,
    length: u64,
    name: u64,
}

impl Image<'_> {
    /// Returns the raw names of the functions at these offsets into the image.
    pub(super) fn names(&self, offsets: &[u64]) -> Vec<Option<String>> {
        let head = self.read(ImageRange { offset: 0, length: 64 });
        let class = match head.get(..6) {
            Some(b"\x7fELF\x01\x01") => 0,
            Some(b"\x7fELF\x02\x01") => 1,
            _ => return vec![None; offsets.len()],
        };
        let addresses = self.addresses(class, &head, offsets);
        let mut wanted: Vec<u64> = addresses.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let sections =
            self.headers(&head, SECTIONS[class], SECTION_COUNT[class], SECTION_BYTES[class]);
        let mut names = vec![None; wanted.len()];
        for kind in [SYMBOLS, DYNAMIC_SYMBOLS] {
            let mut tables = sections.chunks_exact(SECTION_BYTES[class]);
            let Some(table) = tables.find(|section| number(section, SECOND) == kind) else {
                continue;
            };
            let link = number(table, SECTION_LINK[class]) as usize;
            let Some(texts) = sections.chunks_exact(SECTION_BYTES[class]).nth(link) else {
                continue;
            };
            let found = self.functions(class, section(class, table), &wanted);
            for ((name, function), ip) in names.iter_mut().zip(found).zip(&wanted) {
                let function = function.filter(|function| function.holds(*ip, kind));
                *name = name.take().or_else(|| self.name(section(class, texts), function?.name));
            }
        }
        let found = addresses
            .into_iter()
            .map(|address| names[wanted.binary_search(&address?).ok()?].clone());
        found.collect()
    }

    /// Maps offsets to the addresses of symbols by the loaded segments.
    fn addresses(&self, class: usize, head: &[u8], offsets: &[u64]) -> Vec<Option<u64>> {
        let segments =
            self.headers(head, SEGMENTS[class], SEGMENT_COUNT[class], SEGMENT_BYTES[class]);
        let addresses = offsets.iter().map(|offset| {
            let mut segments = segments.chunks_exact(SEGMENT_BYTES[class]);
            segments.find_map(|segment| {
                let within = offset.checked_sub(number(segment, SEGMENT_OFFSET[class]))?;
                let loaded = number(segment, FIRST) == LOADED
                    && within < number(segment, SEGMENT_LENGTH[class]);
                loaded.then(|| number(segment, SEGMENT_ADDRESS[class]).wrapping_add(within))
            })
        });
        addresses.collect()
    }

    fn headers(&self, head: &[u8], offset: Field, count: Field, bytes: usize) -> Vec<u8> {
        let length = number(head, count) * bytes as u64;
        self.read(ImageRange { offset: number(head, offset), length: length.min(HEADERS_BYTES) })
    }

    /// Returns for each of the sorted addresses the function that begins nearest at or below it.
    ///
    /// The unsorted table is read once. A function only matters for the first address at or after
    /// its start: there the one with the greatest start wins, and it holds for all addresses up to
    /// the start of another function.
    fn functions(
        &self,
        class: usize,
        table: ImageRange,
        wanted: &[u64],
    ) -> Vec<Option<FunctionSymbol>> {
        let mut nearest: Vec<Option<FunctionSymbol>> = vec![None; wanted.len()];
        let end = table.length.min(TABLE_BYTES);
        for at in (0..end).step_by(BLOCK_BYTES as usize) {
            let offset = table.offset.saturating_add(at);
            let block = self.read(ImageRange { offset, length: (end - at).min(BLOCK_BYTES) });
            for function in
                block.chunks_exact(SYMBOL_BYTES[class]).filter_map(|symbol| function(class, symbol))
            {
                let first = wanted.partition_point(|ip| *ip < function.start);
                let Some(slot) = nearest.get_mut(first) else { continue };
                if slot
                    .is_none_or(|old| (old.start, old.length) < (function.start, function.length))
                {
                    *slot = Some(function);
                }
            }
            if block.is_empty() {
                break;
            }
        }
        let mut last = None;
        for slot in &mut nearest {
            last = slot.or(last);
            *slot = last;
        }
        nearest
    }

    /// Returns the text at an offset of a string table.
    fn name(&self, texts: ImageRange, at: u64) -> Option<String> {
        let length = texts.length.checked_sub(at)?.min(NAME_BYTES as u64);
        let bytes = self.read(ImageRange { offset: texts.offset.checked_add(at)?, length });
        let name = bytes.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Reads the existing bytes of a range of the image.
    fn read(&self, range: ImageRange) -> Vec<u8> {
        let mut bytes = vec![0; range.length as usize];
        let Some(at) = self.base.checked_add(range.offset) else { return Vec::new() };
        let read = self.file.read_at(&mut bytes, at).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

fn section(class: usize, section: &[u8]) -> ImageRange {
    ImageRange {
        offset: number(section, SECTION_OFFSET[class]),
        length: number(section, SECTION_LENGTH[class]),
    }
}

/// Returns the symbol if it may be code and is defined in this image.
fn function(class: usize, symbol: &[u8]) -> Option<FunctionSymbol> {
    let kind = number(symbol, SYMBOL_KIND[class]) & 0xf;
    let code = matches!(kind, 0 | 2 | 10) && number(symbol, SYMBOL_SECTION[class]) != 0;
    let [start, length] = [SYMBOL_START, SYMBOL_LENGTH].map(|field| number(symbol, field[class]));
    code.then(|| FunctionSymbol { start, length, name: number(symbol, FIRST) })
}

impl FunctionSymbol {
    /// Returns `true` if the function contains an address at or after its start. In the full symbol
    /// table, a function without a length extends to the next one.
    fn holds(&self, ip: u64, table: u64) -> bool {
        let within = ip - self.start;
        within < self.length || self.length == 0 && (within == 0 || table == SYMBOLS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn put(bytes: &mut Vec<u8>, base: usize, (at, width): Field, value: u64) {
        bytes.resize(bytes.len().max(base + at + width), 0);
        bytes[base + at..base + at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    /// Builds an image of a segment at 0x40_1000 with these symbols: name, kind, start, length.
    fn image(class: usize, symbols: &[(&str, u64, u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(if class == 1 {
            b"\x7fELF\x02\x01"
        } else {
            b"\x7fELF\x01\x01"
        });
        for (field, value) in [(SEGMENTS[class], 64), (SEGMENT_COUNT[class], 1)] {
            put(&mut bytes, 0, field, value);
        }
        for (field, value) in [(SECTIONS[class], 128), (SECTION_COUNT[class], 2)] {
            put(&mut bytes, 0, field, value);
        }
        put(&mut bytes, 64, FIRST, LOADED);
        put(&mut bytes, 64, SEGMENT_OFFSET[class], 0x1000);
        put(&mut bytes, 64, SEGMENT_ADDRESS[class], 0x40_1000);
        put(&mut bytes, 64, SEGMENT_LENGTH[class], 0x1000);
        let texts: Vec<u8> =
            symbols.iter().flat_map(|symbol| [symbol.0.as_bytes(), b"\0"].concat()).collect();
        let table = (symbols.len() * SYMBOL_BYTES[class]) as u64;
        for (at, kind, offset, length) in
            [(128, SYMBOLS, 512, table), (192, 3, 512 + table, texts.len() as u64)]
        {
            let at = if at == 192 { 128 + SECTION_BYTES[class] } else { at };
            put(&mut bytes, at, SECOND, kind);
            put(&mut bytes, at, SECTION_OFFSET[class], offset);
            put(&mut bytes, at, SECTION_LENGTH[class], length);
            put(&mut bytes, at, SECTION_LINK[class], 1);
        }
        let mut name = 0;
        for (index, (text, kind, start, length)) in symbols.iter().enumerate() {
            let at = 512 + index * SYMBOL_BYTES[class];
            let values = [(FIRST, name), (SYMBOL_KIND[class], *kind), (SYMBOL_SECTION[class], 1)];
            let places = [(SYMBOL_START[class], *start), (SYMBOL_LENGTH[class], *length)];
            values
                .into_iter()
                .chain(places)
                .for_each(|(field, value)| put(&mut bytes, at, field, value));
            name += text.len() as u64 + 1;
        }
        bytes.resize(512 + table as usize, 0);
        [bytes, texts].concat()
    }

    fn names(bytes: &[u8], offsets: &[u64]) -> Vec<Option<String>> {
        let mut file = tempfile::tempfile().expect("a file can be made");
        file.write_all(bytes).expect("it can be written");
        Image { file: &file, base: 0 }.names(offsets)
    }

    const SAMPLE: [(&str, u64, u64, u64); 5] = [
        ("second", 2, 0x40_1200, 0x10),
        ("first", 2, 0x40_1100, 0x80),
        ("data", 1, 0x40_1110, 0x80),
        ("label", 0, 0x40_1300, 0),
        ("alias", 2, 0x40_1100, 0x20),
    ];

    #[test]
    fn functions_are_found_by_their_place() {
        for class in [0, 1] {
            let found = names(
                &image(class, &SAMPLE),
                &[0x1205, 0x1100, 0x117f, 0x1180, 0x1400, 0x10ff, 0x2000, 0x5],
            );
            let found: Vec<&str> =
                found.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
            assert_eq!(found, ["second", "first", "first", "-", "label", "-", "-", "-"]);
        }
    }

    #[test]
    fn an_image_that_is_cut_or_changed_anywhere_does_no_harm() {
        let whole = image(1, &SAMPLE);
        for end in 0..whole.len() {
            names(&whole[..end], &[0x1205, 0x1100]);
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] = 0xff;
            names(&changed, &[0x1205, 0x1100, u64::MAX]);
        }
    }

    #[test]
    fn a_table_that_claims_much_is_read_up_to_its_bound() {
        let mut bytes = image(1, &SAMPLE);
        bytes[128 + 32..128 + 40].fill(0x7f);
        let file = tempfile::tempfile().expect("a file can be made");
        file.write_all_at(&bytes, 0).expect("it can be written");
        file.set_len(1 << 40).expect("it can be sparse");
        let names = Image { file: &file, base: 0 }.names(&[0x1205]);
        assert_eq!(names, [Some("second".to_owned())]);
    }
}
