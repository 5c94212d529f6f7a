// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readable and bounded names of functions, and their rows in an incident.

use std::fmt::Write;
use tipme_record::text::cut;

/// First kernel address.
pub(super) const KERNEL: u64 = 0xffff_8000_0000_0000;
/// Maximum bytes of a name.
pub(super) const NAME_BYTES: usize = 240;
/// Maximum nesting of the parts of a C++ name; one library function in a thousand exceeds it.
const NESTING: u32 = 48;
/// Maximum number of possible `new` operators in a C++ name: each can double the time to demangle
/// it.
const NEWS: usize = 16;

/// Demangles a name and limits the result while it is produced: a short mangled name can stand for
/// a very long one.
pub(super) fn readable(name: &str) -> String {
    let mut text = Bounded(String::new());
    let news = name.matches("nw").count() + name.matches("na").count();
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(text, "{rust:#}").ok();
    } else if news <= NEWS {
        let options = cpp_demangle::ParseOptions::default().recursion_limit(NESTING);
        if let Ok(symbol) = cpp_demangle::Symbol::new_with_options(name, &options) {
            symbol.structured_demangle(&mut text, &cpp_demangle::DemangleOptions::default()).ok();
        }
    }
    if text.0.is_empty() { name.to_owned() } else { text.0 }
}

/// Writer that keeps the first `NAME_BYTES` bytes, then fails to end the writing.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let fits = cut(text, NAME_BYTES - self.0.len());
        self.0.push_str(fits);
        if fits.len() < text.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

pub(super) fn push(out: &mut Vec<u8>, pid: u32, ip: u64, name: &str, module: &str) {
    let (name, module) = (cut(name, NAME_BYTES), cut(module, NAME_BYTES));
    out.extend_from_slice(&pid.to_le_bytes());
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(&(module.len() as u16).to_le_bytes());
    out.extend_from_slice(&ip.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(module.as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_bounded() {
        assert_eq!(readable("main"), "main");
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(
            readable("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        let doubled: String = (0..40).map(|at| format!("IS{at:X}_S{at:X}_E")).collect();
        for name in [
            format!("_Z1f1aIS_S_E{doubled}"),
            format!("_Z1fA{}_i", "nw".repeat(40)),
            format!("_Z{}", "cvDTnw".repeat(21)),
        ] {
            assert!(readable(&name).len() <= NAME_BYTES.max(name.len()));
        }
    }
}
