// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts of a plot: cutting, escaping and wrapping; and number formats.

/// Marks a cut.
const CUT: char = '…';
/// Replaces a forbidden character.
const REPLACED: char = '\u{fffd}';

/// Sanitises an external text to one line of at most `chars_max` characters. White space becomes
/// blanks. Control characters, which XML forbids, and marks that change the text direction, which
/// deceive, are replaced.
pub fn plain(text: &str, chars_max: usize) -> String {
    cut(text.chars().map(harmless), chars_max)
}

fn harmless(letter: char) -> char {
    match letter {
        _ if letter.is_whitespace() => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => REPLACED,
        '\u{fffe}' | '\u{ffff}' => REPLACED,
        _ if letter.is_control() => REPLACED,
        _ => letter,
    }
}

fn cut(letters: impl Iterator<Item = char>, chars_max: usize) -> String {
    let mut letters = letters.peekable();
    let mut text: String = letters.by_ref().take(chars_max).collect();
    if letters.peek().is_some() {
        text.pop();
        text.push(CUT);
    }
    text
}

/// Escapes a text for XML, between tags and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
    out
}

/// Returns the maximum width of a text in pixels at a font size, estimated from the widest common
/// fonts.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

fn em(letter: char) -> f64 {
    match letter {
        ' ' | '.' | ',' | ':' | ';' | '!' | '|' | '\'' | 'i' | 'j' | 'l' => 0.33,
        '(' | ')' | '[' | ']' | '-' | '/' | 'f' | 'r' | 't' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.97,
        'A'..='Z' => 0.72,
        _ if letter < '\u{1100}' => 0.63,
        _ => 1.05,
    }
}

/// Wraps a text into lines of at most `pixels`; the rest beyond the last line is cut.
pub(crate) fn wrapped(text: &str, size: f64, pixels: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace().flat_map(|word| pieces(word, size, pixels)) {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(&word, size) + size <= pixels => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(line) = lines.last_mut() {
            line.push(CUT);
        }
    }
    lines
}

/// Splits a word into parts that each fit into a line.
fn pieces(word: &str, size: f64, pixels: f64) -> Vec<String> {
    let (mut parts, mut part, mut taken) = (Vec::new(), String::new(), 0.0);
    for letter in word.chars() {
        let more = em(letter) * size;
        if taken + more > pixels - 2.0 * size && taken > 0.0 {
            parts.push(std::mem::take(&mut part));
            taken = 0.0;
        }
        taken += more;
        part.push(letter);
    }
    parts.push(part);
    parts
}

/// Formats a number with this many decimals and separators of thousands; whole numbers from ten
/// million on as `1.2e7`.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    if decimals == 0 && value.abs() >= 1e7 {
        return format!("{value:e}");
    }
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}", grouped(digits))
}

/// Groups digits by threes: `20,000`.
pub fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count with separators.
pub(crate) fn count(n: impl ToString) -> String {
    grouped(&n.to_string())
}

/// Formats a number with three significant digits; digits before the point are kept.
pub(crate) fn number(value: f64) -> String {
    if value.abs() >= 1e7 {
        return format!("{value:.2e}");
    }
    let exponent = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let text = decimal(value, (2.0 - exponent).clamp(0.0, 6.0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a time for display: `12.3 s`, `938 ms`, `52 µs`.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        1_000.0.. => format!("{} s", number(ms / 1e3)),
        1.0.. => format!("{} ms", number(ms)),
        0.0 => "0 ms".to_owned(),
        _ => format!("{} µs", number(ms * 1e3)),
    }
}

/// Formats a time for display; a dash if it is unknown.
pub(crate) fn or_dash(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_become_harmless() {
        assert_eq!(
            escaped(&plain("a<b & \"c\"\u{0}\n\u{202e}'", 40)),
            "a&lt;b &amp; &quot;c&quot;\u{fffd} \u{fffd}&#39;"
        );
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        assert_eq!(plain(&"x".repeat(10_000), 40).chars().count(), 40);
        assert_eq!(plain("abc", 0), "…");
    }

    #[test]
    fn lines_fit_and_the_last_one_marks_a_cut() {
        let text = "word ".repeat(100) + &"x".repeat(500);
        let lines = wrapped(&text, 10.0, 300.0, 50);
        assert!(lines.iter().all(|line| width(line, 10.0) <= 300.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        let short = wrapped(&text, 10.0, 300.0, 2);
        assert!(short.len() == 2 && short[1].ends_with(CUT));
        assert!(wrapped("", 10.0, 300.0, 2).is_empty());
    }

    #[test]
    fn numbers_are_as_people_read_them() {
        let shown = [0.0, 0.000_123_4, 0.05, 1.0, 2.345, 31.0, 938.4, 12_345.6, 1e12].map(number);
        insta::assert_snapshot!(shown.join(" | "), @"0 | 0.000123 | 0.05 | 1 | 2.35 | 31 | 938 | 12,346 | 1.00e12");
        let times = [0.0, 0.0521, 9.44, 938.0, 2_310.0].map(duration);
        insta::assert_snapshot!(times.join(" | "), @"0 ms | 52.1 µs | 9.44 ms | 938 ms | 2.31 s");
        assert_eq!(decimal(-1234.5, 1), "-1,234.5");
        assert_eq!(decimal(120_000_000.0, 0), "1.2e8");
    }
}
