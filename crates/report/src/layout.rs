// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of text for display: width and colours.

use anstyle::{AnsiColor, Style};
pub use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Maximum line length of prose, however wide the terminal is.
const PROSE_COLUMNS_MAX: usize = 120;
/// Minimum number of columns assumed for a terminal.
const COLUMNS_MIN: usize = 40;
/// Minimum number of columns beside a lead; with fewer, the text goes below it.
const BESIDE_MIN: usize = 28;
/// Indentation of text below its lead.
const BELOW: &str = "    ";

/// Role of a piece of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// The most important text.
    Strong,
    /// Actions to take.
    Remedy,
    /// A term of the field.
    Term,
    /// Details for some readers only.
    Faint,
    Good,
    Bad,
}

impl Tone {
    fn style(self) -> Style {
        let style = Style::new();
        match self {
            Tone::Strong => style.bold(),
            Tone::Remedy => style.bold().fg_color(Some(AnsiColor::Green.into())),
            Tone::Term => style.fg_color(Some(AnsiColor::Cyan.into())),
            Tone::Faint => style.dimmed(),
            Tone::Good => style.fg_color(Some(AnsiColor::Green.into())),
            Tone::Bad => style.fg_color(Some(AnsiColor::Red.into())),
        }
    }
}

/// Output layout. The default is for programs: every fact on one line, without colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// Columns of the terminal; `None` if lines are not wrapped.
    pub columns: Option<usize>,
    pub colour: bool,
    /// Includes details for kernel experts, such as kernel functions.
    pub verbose: bool,
}

impl Layout {
    /// Formats a text after the lead of its first line. Further lines are indented by the width of
    /// the lead, or less if that leaves little room. Words are never broken, so that paths and
    /// commands can be copied.
    pub fn item(&self, before: &str, text: &str) -> String {
        let Some(columns) = self.columns else {
            return format!("{before}{text}").trim_end().to_owned() + "\n";
        };
        let (columns, lead) =
            (columns.clamp(COLUMNS_MIN, PROSE_COLUMNS_MAX), display_width(before));
        if lead + BESIDE_MIN > columns {
            return format!("{}\n{}", before.trim_end(), wrapped(columns, BELOW, BELOW, text));
        }
        wrapped(columns, before, &" ".repeat(lead), text)
    }

    /// Formats a text without a lead.
    pub fn paragraph(&self, text: &str) -> String {
        self.item("", text)
    }

    /// Colours a text, if colour is enabled.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let style = tone.style();
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Colours each line of a text separately, so that every line is complete by itself.
    pub fn paint_lines(&self, tone: Tone, text: &str) -> String {
        let mut painted = String::new();
        for line in text.lines() {
            let body = line.trim_start();
            painted += &line[..line.len() - body.len()];
            painted += &(self.paint(tone, body) + "\n");
        }
        painted
    }
}

/// Pads a text to this many columns of the terminal: a letter may take none, one or two.
pub fn padded(text: &str, columns: usize) -> String {
    text.to_owned() + &" ".repeat(columns.saturating_sub(display_width(text)))
}

fn wrapped(columns: usize, first: &str, others: &str, text: &str) -> String {
    let options =
        Options::new(columns).initial_indent(first).subsequent_indent(others).break_words(false);
    let options = options
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "had 3 reads and 1,473 writes (1.4 GiB) queued on loop0 ahead of \
                        log-compactor's own request";

    fn layout(columns: usize) -> Layout {
        Layout { columns: Some(columns), ..Layout::default() }
    }

    #[test]
    fn lines_are_as_wide_as_the_terminal_and_hang() {
        for columns in [60, 80, 200] {
            let text = layout(columns).item("  660 ms  ", TEXT);
            assert!(text.lines().all(|line| display_width(line) <= columns), "{text}");
            assert!(
                text.lines().skip(1).all(|line| line.starts_with("          ") && line.len() > 10),
                "{text}"
            );
        }
        assert_eq!(layout(200).item("  660 ms  ", TEXT).lines().count(), 1);
        assert_eq!(layout(60).item("  660 ms  ", TEXT).lines().count(), 2);
    }

    #[test]
    fn for_programs_each_fact_has_one_line() {
        assert_eq!(Layout::default().item("", &TEXT.repeat(9)).lines().count(), 1);
    }

    #[test]
    fn columns_are_those_of_the_terminal() {
        let names = ["xterm", "größe", "e\u{301}", "שלום", "名前", "日本語 エディタ"];
        assert_eq!(names.map(|name| display_width(&padded(name, 16))), [16; 6]);
        assert_eq!(padded("a longer name", 4), "a longer name");
    }

    #[test]
    fn a_text_without_room_beside_goes_below() {
        let text = layout(60)
            .item("missing  a name that takes some columns  ", "the reason and the remedy");
        assert_eq!(
            text,
            "missing  a name that takes some columns\n    the reason and the remedy\n"
        );
    }

    #[test]
    fn words_are_not_broken_and_colours_take_no_room() {
        let path = "/var/lib/tipme/incidents/".repeat(4);
        assert_eq!(layout(60).paragraph(&format!("see {path}")), format!("see\n{path}\n"));
        let painted = Layout { colour: true, ..layout(60) };
        let (plain, text) =
            (layout(60).paragraph(TEXT), painted.paragraph(&painted.paint(Tone::Term, TEXT)));
        assert_eq!(text.replace("\u{1b}[36m", "").replace("\u{1b}[0m", ""), plain);
        assert_eq!(painted.paint_lines(Tone::Faint, "  a\n"), "  \u{1b}[2ma\u{1b}[0m\n");
    }
}
