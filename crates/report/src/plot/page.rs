// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page of a plot, filled from top to bottom: title, legend, areas, footer.

use super::Figure;
use super::palette::{INK, colour, dashes};
use super::words::{escaped, plain, width, wrapped};

/// Dimensions of the page and its parts, in pixels.
pub(super) const PAGE_WIDTH: f64 = 1_000.0;
const LEFT: f64 = 84.0;
/// Width of a usual area.
pub(super) const PLOT_WIDTH: f64 = 860.0;
/// Height of a usual area.
pub(super) const PLOT_HEIGHT: f64 = 320.0;
/// Left margin of title, legend and footer.
const MARGIN: f64 = 16.0;

const TITLE_SIZE: f64 = 17.0;
/// Font size of legends and axis names.
pub(super) const TEXT_SIZE: f64 = 12.0;
/// Font size of ticks and footer.
pub(super) const SMALL_SIZE: f64 = 11.0;

const TITLE_CHARS: usize = 200;
const FOOTER_CHARS: usize = 1_200;
const FOOTER_LINES: usize = 10;
const LEGEND_CHARS: usize = 140;

/// Rectangle for drawing values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    /// Converts a share, counted from the bottom.
    pub(super) fn y(&self, share: f64) -> f64 {
        self.bottom() - share * self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// Alignment of a text relative to its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Symbol of the legend with its description.
pub(super) struct LegendEntry {
    pub mark: MarkStyle,
    pub text: String,
}

impl LegendEntry {
    pub(super) fn new(mark: MarkStyle, text: String) -> LegendEntry {
        LegendEntry { mark, text }
    }

    /// Creates the entry of the n-th curve.
    pub(super) fn line(index: usize, text: String) -> LegendEntry {
        LegendEntry::new(MarkStyle::Line(colour(index), dashes(index)), text)
    }
}

/// Style of a legend symbol.
#[derive(Clone, Copy)]
pub(super) enum MarkStyle {
    Box(&'static str),
    /// Colour and dashes, as an attribute.
    Line(&'static str, &'static str),
    /// Arrow head for a lower bound.
    Open(&'static str),
}

/// Drawing in progress.
pub(super) struct Page {
    body: String,
    title: String,
    footer: String,
    /// Everything above is in use.
    y: f64,
}

impl Page {
    /// Creates a page with its title.
    pub(super) fn new(figure: &Figure<'_>) -> Page {
        let title = plain(figure.title, TITLE_CHARS);
        let footer = plain(figure.footer, FOOTER_CHARS);
        let mut page = Page { body: String::new(), title, footer, y: 12.0 };
        let size = format!(r#"font-size="{TITLE_SIZE}" font-weight="bold""#);
        for line in wrapped(&page.title.clone(), TITLE_SIZE * 1.05, PAGE_WIDTH - 2.0 * MARGIN, 3) {
            page.y += 22.0;
            page.text((MARGIN, page.y - 4.0), Anchor::Start, &size, &line);
        }
        page
    }

    /// Adds remarks by this program to the footer.
    pub(super) fn remark(&mut self, sentences: &[String]) {
        for sentence in sentences {
            self.footer = format!("{sentence} {}", self.footer);
        }
    }

    /// Draws a legend on as many lines as needed.
    pub(super) fn legend(&mut self, entries: &[LegendEntry]) {
        let mut x = f64::INFINITY;
        for entry in entries {
            let text = plain(&entry.text, LEGEND_CHARS);
            let wide = 24.0 + width(&text, TEXT_SIZE);
            if x + wide > PAGE_WIDTH - MARGIN {
                x = MARGIN;
                self.y += 19.0;
            }
            self.mark(entry.mark, x, self.y - 4.0);
            self.text((x + 22.0, self.y), Anchor::Start, &font(TEXT_SIZE), &text);
            x += wide + 14.0;
        }
    }

    fn mark(&mut self, mark: MarkStyle, x: f64, y: f64) {
        match mark {
            MarkStyle::Box(colour) => {
                self.rect((x + 2.0, y - 6.0, 12.0, 12.0), &format!(r#"fill="{colour}""#))
            }
            MarkStyle::Line(colour, dashes) => {
                self.line(
                    (x, y),
                    (x + 17.0, y),
                    &format!(r#"stroke="{colour}" stroke-width="2"{dashes}"#),
                );
            }
            MarkStyle::Open(colour) => {
                self.path(&arrow(x + 8.0, y - 4.0), &format!(r#"fill="{colour}""#));
                self.line(
                    (x + 8.0, y + 6.0),
                    (x + 8.0, y - 2.0),
                    &format!(r#"stroke="{colour}" stroke-width="2""#),
                );
            }
        }
    }

    /// Draws a line of text above an area.
    pub(super) fn caption(&mut self, text: &str) {
        self.y += 22.0;
        self.text(
            (LEFT, self.y - 2.0),
            Anchor::Start,
            &font(TEXT_SIZE),
            &plain(text, LEGEND_CHARS),
        );
    }

    /// Allocates the next rows of the page for an area of the usual width.
    pub(super) fn area(&mut self, height: f64) -> Area {
        self.area_beside(0.0, 0.0, height)
    }

    /// Allocates an area with more room for names to the left and right.
    pub(super) fn area_beside(&mut self, left: f64, right: f64, height: f64) -> Area {
        let top = self.y + 12.0;
        self.y = top + height;
        Area { left: LEFT + left, top, width: PLOT_WIDTH - left - right, height }
    }

    /// Allocates rows for content below an area.
    pub(super) fn skip(&mut self, height: f64) {
        self.y += height;
    }

    /// Finishes the page with a frame that says that there is nothing to draw.
    pub(super) fn nothing(mut self, what: &str) -> String {
        let area = self.area(PLOT_HEIGHT / 2.0);
        self.empty(&area, what);
        self.skip(8.0);
        self.finish()
    }

    /// Fills an area with the message that there is nothing to draw.
    pub(super) fn empty(&mut self, area: &Area, what: &str) {
        let Area { left, top, width, height } = *area;
        self.rect((left, top, width, height), &format!(r#"fill="none" stroke="{INK}""#));
        let at = (area.x(0.5), area.y(0.5) + 5.0);
        self.text(at, Anchor::Middle, r#"font-size="15" fill-opacity="0.7""#, what);
    }

    pub(super) fn rect(&mut self, (x, y, width, height): (f64, f64, f64, f64), style: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(pixel);
        self.element(&format!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {style}/>"#
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(pixel);
        self.element(&format!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>"#));
    }

    /// Draws a path unless it is empty. The data must come from this crate.
    pub(super) fn path(&mut self, data: &str, style: &str) {
        if !data.is_empty() {
            self.element(&format!(r#"<path d="{data}" {style}/>"#));
        }
    }

    /// Draws a text from any source; the style must come from this crate.
    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, style: &str, text: &str) {
        let (x, y) = (pixel(at.0), pixel(at.1));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        self.element(&format!(r#"<text x="{x}" y="{y}"{anchor} {style}>{}</text>"#, escaped(text)));
    }

    /// Draws a vertical text, read from bottom to top, at the middle of an area's height.
    pub(super) fn text_upwards(&mut self, area: &Area, text: &str) {
        let (x, y) = (MARGIN, pixel(area.y(0.5)));
        let turned = format!(r#"{} transform="rotate(-90 {x} {y})""#, font(TEXT_SIZE));
        self.text((x, area.y(0.5)), Anchor::Middle, &turned, text);
    }

    fn element(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// Returns the whole page with its footer.
    pub(super) fn finish(mut self) -> String {
        self.y += 6.0;
        let style = format!(r##"font-size="{SMALL_SIZE}" fill="#555555""##);
        for line in
            wrapped(&self.footer.clone(), SMALL_SIZE, PAGE_WIDTH - 2.0 * MARGIN, FOOTER_LINES)
        {
            self.y += 16.0;
            self.text((MARGIN, self.y), Anchor::Start, &style, &line);
        }
        let (width, height) = (pixel(PAGE_WIDTH), pixel(self.y + 12.0));
        let head = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" fill="{INK}">"#
        );
        let paper = r##"<rect width="100%" height="100%" fill="#ffffff"/>"##;
        format!("{head}\n<title>{}</title>\n{paper}\n{}</svg>\n", escaped(&self.title), self.body)
    }
}

/// Returns the attribute of a font size.
pub(super) fn font(size: f64) -> String {
    format!(r#"font-size="{size}""#)
}

/// Returns the outline of an arrow head that points upwards, with its tip at this position.
pub(super) fn arrow(x: f64, y: f64) -> String {
    format!("M{} {}l4.5 8h-9Z", pixel(x), pixel(y - 3.0))
}

/// Rounds a coordinate to a hundredth of a pixel. NaN and infinities become 0; values far outside
/// are clamped.
pub(super) fn pixel(value: f64) -> f64 {
    let value = if value.is_finite() { value.clamp(-1e5, 1e5) } else { 0.0 };
    (value * 100.0).round() / 100.0 + 0.0
}
