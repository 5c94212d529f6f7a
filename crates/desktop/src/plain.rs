// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text that others show, with names in it that anybody chooses.

use tipme_record::text::is_unseen;

/// The text in letters and line ends only, and no longer than so many letters.
///
/// What notification daemons and dialogs may read as markup is replaced by what is never: which of them reads markup
/// depends on the daemon and its settings, and what it says of itself is not always so. What steers terminals, or
/// turns the order of letters round, becomes a question mark.
pub(crate) fn plain(text: &str, letters_max: usize) -> String {
    let letters = text.chars().map(|letter| match letter {
        '<' => '(',
        '>' => ')',
        '&' => '+',
        '\n' => '\n',
        letter if letter.is_control() || is_unseen(letter) => '?',
        letter => letter,
    });
    let mut plain: String = letters.take(letters_max).collect();
    if text.chars().nth(letters_max).is_some() {
        plain.push_str(" ...");
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_bring_neither_markup_nor_controls() {
        assert_eq!(plain("<b>x &lt; \u{1b}[2J\u{202e}y\u{ad}\nz", 99), "(b)x +lt; ?[2J?y?\nz");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(plain("größe", 3), "grö ...");
        assert_eq!(plain("größe", 5), "größe");
    }
}
