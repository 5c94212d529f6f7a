// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of unknown origin: names of processes and windows, command lines, user input.

/// Returns `true` if a character is invisible but changes others: it turns the direction of the
/// text, joins or separates letters, or is a tag. It can make different names look alike.
pub fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the first `bytes` bytes of a text, or slightly fewer so that no character is split.
pub fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_languages_are_seen() {
        assert!(!"größe 名前 עברית".chars().any(is_unseen));
        let unseen = "\u{ad}\u{202e}\u{2066}\u{200f}\u{200b}\u{e0041}\u{feff}\u{2028}\u{61c}\
                      \u{fe0f}\u{e0100}";
        assert!(unseen.chars().all(is_unseen));
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(
            [cut("größe", 2), cut("größe", 3), cut("größe", 4), cut("größe", 99)],
            ["gr", "gr", "grö", "größe"]
        );
        assert_eq!([cut("é", 0), cut("é", 1), cut("", 1)], [""; 3]);
    }
}
