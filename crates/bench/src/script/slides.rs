// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated presentation as flat OpenDocument: slides with a title and sentences, every tenth with
//! an embedded chart.

use super::prose::sentence;
use fastrand::Rng;

/// Interval of slides with a chart.
const CHART_EVERY: u64 = 10;
/// Sentences of a slide.
const SENTENCES: usize = 5;
/// Bars of a chart.
const BARS: u64 = 8;

const NAMESPACES: [(&str, &str); 8] = [
    ("office", "office"),
    ("draw", "drawing"),
    ("text", "text"),
    ("table", "table"),
    ("chart", "chart"),
    ("style", "style"),
    ("svg", "svg-compatible"),
    ("fo", "xsl-fo-compatible"),
];

/// Returns a presentation of `slides` slides, the same for the same seed.
pub(super) fn presentation(slides: u64, seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let pages: String = (1..=slides).map(|number| slide(number, &mut random)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}<office:body><office:presentation>\n{pages}</office:presentation>\
         </office:body></office:document>\n",
        root("presentation")
    )
}

/// Returns the beginning of a document of a kind.
fn root(kind: &str) -> String {
    let names = NAMESPACES.map(|(prefix, name)| {
        format!(" xmlns:{prefix}=\"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0\"")
    });
    let names = names.concat();
    let kind = format!("application/vnd.oasis.opendocument.{kind}");
    format!("<office:document{names} office:version=\"1.3\" office:mimetype=\"{kind}\">\n")
}

fn slide(number: u64, random: &mut Rng) -> String {
    let title = frame(1.0, 2.0, &format!("<text:p>Slide {number}</text:p>"));
    let sentences: String =
        (0..SENTENCES).map(|_| format!("<text:p>{}</text:p>", sentence(random))).collect();
    let chart = if number.is_multiple_of(CHART_EVERY) { chart(random) } else { String::new() };
    format!(
        "<draw:page draw:name=\"Slide {number}\">{title}{}{chart}</draw:page>\n",
        frame(3.5, 6.0, &sentences)
    )
}

/// Returns a text box, with its distance from the top and its height in centimetres.
fn frame(top: f64, height: f64, text: &str) -> String {
    format!(
        "<draw:frame svg:x=\"2cm\" svg:y=\"{top}cm\" svg:width=\"22cm\" svg:height=\"{height}cm\"><draw:text-box>{text}\
         </draw:text-box></draw:frame>"
    )
}

/// Returns a chart as a document of its own, like an embedded object.
fn chart(random: &mut Rng) -> String {
    let rows = (1..=BARS).map(|number| {
        let value = 10 + random.u64(..90);
        format!("<table:table-row>{}{}</table:table-row>", text_cell(number), number_cell(value))
    });
    let rows: String = rows.collect();
    let [names, values] =
        ['A', 'B'].map(|column| format!("local-table.${column}$2:.${column}${}", BARS + 1));
    let series = format!(
        "<chart:axis chart:dimension=\"x\"><chart:categories table:cell-range-address=\"{names}\"/></chart:axis>\
         <chart:axis chart:dimension=\"y\"/><chart:series chart:values-cell-range-address=\"{values}\" chart:class=\"chart:bar\">\
         <chart:data-point chart:repeated=\"{BARS}\"/></chart:series>"
    );
    let head = format!("<table:table-row>{}{}</table:table-row>", text_cell(0), text_cell(1));
    format!(
        "<draw:frame svg:x=\"6cm\" svg:y=\"10cm\" svg:width=\"14cm\" svg:height=\"5cm\"><draw:object>{}<office:body>\
         <office:chart><chart:chart chart:class=\"chart:bar\" svg:width=\"14cm\" svg:height=\"5cm\"><chart:plot-area>{series}\
         </chart:plot-area><table:table table:name=\"local-table\"><table:table-header-columns><table:table-column/>\
         </table:table-header-columns><table:table-columns><table:table-column/></table:table-columns>\
         <table:table-header-rows>{head}</table:table-header-rows><table:table-rows>{rows}</table:table-rows></table:table>\
         </chart:chart></office:chart></office:body></office:document></draw:object></draw:frame>",
        root("chart")
    )
}

fn text_cell(number: u64) -> String {
    format!(
        "<table:table-cell office:value-type=\"string\"><text:p>C{number}</text:p></table:table-cell>"
    )
}

fn number_cell(value: u64) -> String {
    format!(
        "<table:table-cell office:value-type=\"float\" office:value=\"{value}\"><text:p>{value}</text:p></table:table-cell>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_presentation_has_its_slides_and_follows_the_seed() {
        let text = presentation(46, 1);
        assert_eq!(
            (text.matches("<draw:page ").count(), text.matches("<chart:chart ").count()),
            (46, 4)
        );
        assert_eq!(text, presentation(46, 1));
        assert_ne!(text, presentation(46, 2));
        assert_eq!(text.matches("<draw:frame ").count(), text.matches("</draw:frame>").count());
    }
}
