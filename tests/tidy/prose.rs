// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code and documents read as other projects of the field do: the habits that a reader stumbled on
//! are rare. Counts of a few words and forms show that, and cannot show more.

use crate::tree::{Source, documents, expect_none, rust};

const TELL: [&str; 3] = ["tell", "tells", "told"];
const WHO: [&str; 4] = ["who", "whoever", "whom", "whose"];
/// Words at the begin of a comment that has a clause in place of a noun or verb.
const RELATIVES: [&str; 16] = [
    "What", "Who", "Whose", "Whom", "Whether", "Of", "How", "Where", "When", "So many", "So much",
    "As", "That", "Which", "Whoever", "Whatever",
];
const MAX_COLUMNS: usize = 100;
/// Number of files named for a figure over its bound.
const FILES_SHOWN: usize = 8;

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn count(text: &str, words: &[&str]) -> usize {
    let found = text.split(|letter| !is_of_word(letter));
    found.filter(|word| words.iter().any(|known| known.eq_ignore_ascii_case(word))).count()
}

/// Returns the comment of a line, or its first string literal.
fn prose(line: &str) -> &str {
    let string = line.find('"').and_then(|from| {
        let length = line[from + 1..].find('"')?;
        Some((from, from + 1 + length))
    });
    match (line.find("//"), string) {
        (Some(comment), Some((from, _))) if comment < from => &line[comment..],
        (_, Some((from, to))) => &line[from..to],
        (Some(comment), None) => &line[comment..],
        (None, None) => "",
    }
}

fn count_in_prose(source: &Source, words: &[&str]) -> usize {
    source.text.lines().map(|line| count(prose(line), words)).sum()
}

fn doc(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//")?.strip_prefix(['/', '!'])
}

/// Returns the first line of each documentation comment.
fn docs(source: &Source) -> impl Iterator<Item = &str> {
    let before = std::iter::once("").chain(source.text.lines());
    let begins = before.zip(source.text.lines()).filter(|(before, _)| doc(before).is_none());
    begins.filter_map(|(_, line)| doc(line))
}

fn is_relative(doc: &str) -> bool {
    let mut rests = RELATIVES.iter().filter_map(|word| doc.trim_start().strip_prefix(word));
    rests.any(|rest| !rest.starts_with(is_of_word))
}

/// Returns `true` for `let name = |…|`.
fn has_named_closure(line: &str) -> bool {
    line.match_indices("let ").any(|(at, word)| {
        let rest = &line[at + word.len()..];
        let rest = rest.strip_prefix("mut ").unwrap_or(rest);
        let value = rest.trim_start_matches(is_of_word).strip_prefix(" = ");
        let value = value.map(|value| value.strip_prefix("move ").unwrap_or(value));
        !line[..at].ends_with(is_of_word) && value.is_some_and(|value| value.starts_with('|'))
    })
}

/// Returns the files with the most occurrences if there are more than `max` per unit.
fn excess(
    name: &str,
    max: f64,
    units: f64,
    files: &[Source],
    count: impl Fn(&Source) -> usize,
) -> Option<String> {
    let mut counts: Vec<(usize, &Source)> = files.iter().map(|file| (count(file), file)).collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let total: usize = counts.iter().map(|(count, _)| count).sum();
    let rate = total as f64 / units;
    let most: Vec<String> = counts
        .iter()
        .take(FILES_SHOWN)
        .map(|(count, file)| format!("{count} in {}", file.path.display()))
        .collect();
    (rate > max).then(|| format!("{name}: {rate:.2}, over {max}: {}", most.join(", ")))
}

#[test]
fn habits_of_style_are_rare() {
    let (rust, documents) = (rust(), documents());
    let lines: usize = rust.iter().map(|source| source.text.lines().count()).sum();
    let comments: usize = rust.iter().map(|source| docs(source).count()).sum();
    let words: usize = documents.iter().map(|it| it.text.split_whitespace().count()).sum();
    assert!(lines > 50_000 && comments > 5_000 && words > 50_000, "the files were not found");
    let (lines, words) = (lines as f64 / 1_000.0, words as f64 / 1_000.0);
    let found = [
        excess("tell, 1,000 lines", 0.4, lines, &rust, |it| count_in_prose(it, &TELL)),
        excess("who, 1,000 lines", 0.5, lines, &rust, |it| count_in_prose(it, &WHO)),
        excess("relative comments, percent", 6.0, comments as f64 / 100.0, &rust, |it| {
            docs(it).filter(|doc| is_relative(doc)).count()
        }),
        excess("named closures, 1,000 lines", 3.0, lines, &rust, |it| {
            it.text.lines().filter(|line| has_named_closure(line)).count()
        }),
        excess("long lines, percent", 1.0, lines * 10.0, &rust, |it| {
            it.text.lines().filter(|line| line.chars().count() > MAX_COLUMNS).count()
        }),
        excess("tell, 1,000 words", 0.3, words, &documents, |it| count(&it.text, &TELL)),
        excess("who, 1,000 words", 0.6, words, &documents, |it| count(&it.text, &WHO)),
    ];
    expect_none(found.into_iter().flatten().collect(), "habits that make text hard to read");
}

#[test]
fn planted_habits_are_counted() {
    let text = "/// What it told.\n/// Who is told.\nfn f() {\n    let g = move |x| x;\n    \
                let mut h = |x| \"tell\";\n    let told = whose;\n}\n//! Whatsoever\n";
    let sources = Source::planted("src", &[("a.rs", text)]);
    let source = &sources[0];
    assert_eq!((count_in_prose(source, &TELL), count_in_prose(source, &WHO)), (3, 1));
    assert_eq!(docs(source).map(is_relative).collect::<Vec<_>>(), [true, false]);
    assert_eq!(text.lines().filter(|line| has_named_closure(line)).count(), 2);
    let found = excess("tell", 0.9, 3.0, &sources, |it| count_in_prose(it, &TELL));
    assert_eq!(found.as_deref(), Some("tell: 1.00, over 0.9: 3 in src/a.rs"));
    assert_eq!(excess("tell", 1.0, 3.0, &sources, |it| count_in_prose(it, &TELL)), None);
}
