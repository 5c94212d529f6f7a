// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated text for programs that read, page and compress files.

use fastrand::Rng;

const WORDS: [&str; 8] =
    ["delta", "river", "stone", "amber", "quiet", "lantern", "orbit", "meadow"];

/// Returns `bytes` bytes of plain text in lines, always the same.
pub(crate) fn text(bytes: usize) -> Vec<u8> {
    let (mut out, mut random) = (Vec::with_capacity(bytes + 100), Rng::with_seed(1));
    while out.len() < bytes {
        out.extend_from_slice(format!("{:08}", out.len()).as_bytes());
        for _ in 0..9 {
            out.push(b' ');
            out.extend_from_slice(WORDS[random.usize(..WORDS.len())].as_bytes());
        }
        out.push(b'\n');
    }
    out.truncate(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_size_asked_for_and_is_always_the_same() {
        assert_eq!(text(100_000).len(), 100_000);
        assert!(text(200).starts_with(b"00000000 "));
        assert_eq!(text(1_000), text(1_000));
    }
}
