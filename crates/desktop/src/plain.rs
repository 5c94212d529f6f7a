// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text for display by others, with names in it that anybody can choose.

use tipme_record::text::{is_unseen, isolated};

/// Returns printable characters and line feeds only, cut to `letters_max` characters.
///
/// Markup characters are replaced: dialogs and some notification servers interpret markup without
/// announcing it. Control characters for terminals and text direction become question marks.
pub(crate) fn plain(text: &str, letters_max: usize) -> String {
    letters(text, letters_max).map(unmarked).collect()
}

fn unmarked(letter: char) -> char {
    match letter {
        '<' => '(',
        '>' => ')',
        '&' => '+',
        letter => letter,
    }
}

/// Returns the same text for a notification server, with right-to-left names isolated. Markup
/// characters are escaped if it reads markup, else replaced.
pub(crate) fn notified(text: &str, letters_max: usize, reads_markup: bool) -> String {
    let text = isolated(&letters(text, letters_max).collect::<String>());
    if !reads_markup {
        return text.chars().map(unmarked).collect();
    }
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn letters(text: &str, letters_max: usize) -> impl Iterator<Item = char> {
    let ending = if text.chars().nth(letters_max).is_some() { " ..." } else { "" };
    let seen = text.chars().take(letters_max).map(|letter| match letter {
        '\n' => letter,
        letter if letter.is_control() || is_unseen(letter) => '?',
        letter => letter,
    });
    seen.chain(ending.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_bring_neither_markup_nor_controls() {
        assert_eq!(plain("<b>x &lt; \u{1b}[2J\u{202e}y\u{ad}\nz", 99), "(b)x +lt; ?[2J?y?\nz");
    }

    #[test]
    fn markup_is_escaped_where_it_is_read() {
        for (text, max, shown) in [
            ("a && b > <c>\u{1b}\n", 99, ["a &amp;&amp; b &gt; &lt;c&gt;?\n", "a ++ b ) (c)?\n"]),
            ("<<<", 2, ["&lt;&lt; ...", "(( ..."]),
            ("in \u{2067} דג>.", 99, ["in ? \u{2068}דג&gt;\u{2069}.", "in ? \u{2068}דג)\u{2069}."]),
        ] {
            assert_eq!([true, false].map(|markup| notified(text, max, markup)), shown);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(plain("größe", 3), "grö ...");
        assert_eq!(plain("größe", 5), "größe");
    }
}
