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

/// Encloses names in right-to-left scripts in isolates, so that they do not reorder the sentence
/// around them. Punctuation at their ends belongs to the sentence.
pub fn isolated(text: &str) -> String {
    const ENDS: [char; 10] = [' ', '\n', '.', ',', ':', '(', ')', '"', '\'', '!'];
    let (mut out, mut run) = (String::new(), String::new());
    for word in text.split_inclusive([' ', '\n']).chain([""]) {
        let is_rtl = word.contains(is_right_to_left);
        let goes_on =
            is_rtl && !run.trim_end_matches(' ').ends_with(ENDS) && !word.starts_with(ENDS);
        if !goes_on && !run.is_empty() {
            let name = run.trim_matches(ENDS);
            out += &run.replacen(name, &format!("\u{2068}{name}\u{2069}"), 1);
            run.clear();
        }
        if is_rtl { &mut run } else { &mut out }.push_str(word);
    }
    out
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
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
    fn right_to_left_names_are_isolated() {
        for (text, shown) in [
            ("größe 名前 stalled", "größe 名前 stalled"),
            ("Typing in שלום stalled.", "Typing in <שלום> stalled."),
            ("of \"שלום עולם\" (מאה),\nthen", "of \"<שלום עולם>\" (<מאה>),\nthen"),
            ("a /home/דוד/x: b", "a </home/דוד/x>: b"),
            ("محرر\n7", "<محرر>\n7"),
            ("", ""),
        ] {
            assert_eq!(isolated(text), shown.replace('<', "\u{2068}").replace('>', "\u{2069}"));
        }
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
