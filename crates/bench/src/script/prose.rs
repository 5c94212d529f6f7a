// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated text: sentences of common words, the same for the same seed.

use fastrand::Rng;
use std::sync::LazyLock;

/// Words of different lengths that every keyboard can type.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let words = "the of and a to in is it that was for on with as at this by from have or time \
                 system answer window people letter number between quickly machine morning paper \
                 river under through against another history measure evening question different \
                 important something interval keyboard character program";
    words.split(' ').collect()
});
/// Column after which a line is broken.
const LINE: usize = 72;

/// Returns some words, the first with a capital letter, and a full stop.
pub(super) fn sentence(random: &mut Rng) -> String {
    let count = 4 + random.usize(..9);
    let words: Vec<&str> = (0..count).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
    let mut text = words.join(" ");
    if count > 8 {
        text = text.replacen(' ', ", ", 1);
    }
    text[..1].make_ascii_uppercase();
    text + "."
}

/// Returns lines of exactly `bytes` bytes, ending with a line feed if there is room for one.
pub(super) fn text(bytes: usize, seed: u64) -> String {
    let mut text = typed(bytes.saturating_sub(1), seed);
    if bytes > 0 {
        text.push('\n');
    }
    text
}

/// Returns text as a user types it, exactly `characters` ASCII characters.
pub(super) fn typed(characters: usize, seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let (mut text, mut column) = (String::new(), 0);
    while text.len() < characters {
        for word in sentence(&mut random).split(' ') {
            text.push_str(word);
            column += word.len() + 1;
            text.push(if column > LINE { '\n' } else { ' ' });
            column = if column > LINE { 0 } else { column };
        }
    }
    text.truncate(characters);
    text
}

/// Returns a page with headings, paragraphs and tables, which takes as much layout work as a long
/// article.
pub(super) fn page(sections: u64, seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let mut page = "<!doctype html><meta charset=\"utf-8\"><title>page</title>\n\
        <style>body{max-width:50em;margin:auto;font-family:serif}td{border:1px solid}</style>\n"
        .to_owned();
    for number in 1..=sections {
        page += &format!("<h2 id=\"s{number}\">Section {number}</h2>\n");
        for _ in 0..4 {
            let sentences: Vec<String> = (0..6).map(|_| sentence(&mut random)).collect();
            page += &format!("<p>{}</p>\n", sentences.join(" "));
        }
        page += &table(&mut random);
    }
    page
}

fn table(random: &mut Rng) -> String {
    let mut table = "<table>\n".to_owned();
    for _ in 0..6 {
        let cells = (0..5).map(|_| format!("<td>{}</td>", WORDS[random.usize(..WORDS.len())]));
        table += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    table + "</table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_size_asked_for_and_follows_the_seed() {
        for bytes in [0, 1, 2, 100, 57_344] {
            assert_eq!(text(bytes, 7).len(), bytes);
        }
        assert_eq!(typed(300, 7), typed(300, 7));
        assert_ne!(typed(300, 7), typed(300, 8));
        assert!(typed(2_000, 7).lines().all(|line| line.len() <= LINE + 12));
    }

    #[test]
    fn text_can_be_typed_on_any_keyboard() {
        let text = typed(5_000, 3);
        assert!(
            text.chars().all(|letter| letter.is_ascii_alphabetic() || " ,.\n".contains(letter))
        );
    }

    #[test]
    fn a_page_has_its_sections() {
        assert_eq!(page(3, 1).matches("<h2").count(), 3);
    }
}
