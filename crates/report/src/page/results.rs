// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of a measurement as one page: plots, conditions, and tables as printed.

use super::frame::frame;
use crate::conditions::conditions;
use crate::plot::words::plain;
use maud::{Markup, PreEscaped, html};
use tipme_measure::MeasuredMachine;

/// Maximum number of bytes of plots in one page; further plots are left out.
const PLOT_BYTES_MAX: usize = 4_000_000;
/// Maximum number of characters of a title.
const TITLE_CHARS: usize = 120;

/// Contents of a page of results.
#[derive(Clone, Copy, Debug)]
pub struct ResultsPage<'a> {
    pub title: &'a str,
    pub machine: &'a MeasuredMachine,
    /// Tables.
    pub text: &'a str,
    /// SVG documents created by this crate.
    pub plots: &'a [String],
}

/// Renders the page of results.
pub fn results(results: &ResultsPage<'_>) -> String {
    let title = plain(results.title, TITLE_CHARS);
    let shown = shown(results.plots);
    let body = html! {
        header {
            p.about { b { "tipme" } " · " (conditions(results.machine)) }
            h1 { (title) }
        }
        main {
            section aria-labelledby="plots" {
                h2 #plots { "Plots" }
                @for plot in &results.plots[..shown] { (figure(plot)) }
                @if shown < results.plots.len() {
                    p.hint { "Not shown: " (results.plots.len() - shown) " more plots; measure with --svg to write all of them." }
                }
            }
            section aria-labelledby="tables" {
                h2 #tables { "Tables" }
                pre tabindex="0" role="group" aria-label="The result as text" { (results.text) }
            }
        }
        footer { p { "Made by tipme. This page is self-contained and loads nothing from the network." } }
    };
    frame(&title, &body)
}

/// Returns the number of plots that fit.
fn shown(plots: &[String]) -> usize {
    let sums = plots.iter().scan(0, |sum: &mut usize, plot| {
        *sum = sum.saturating_add(plot.len());
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= PLOT_BYTES_MAX).count()
}

fn figure(plot: &str) -> Markup {
    html! { div.plot tabindex="0" role="group" aria-label="Plot" { (PreEscaped(plot)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_results_is_bounded_and_says_what_is_left_out() {
        let plots = vec!["<svg></svg>".repeat(100_000); 5];
        let machine = MeasuredMachine::default();
        let page = results(&ResultsPage {
            title: "a <b>",
            machine: &machine,
            text: "1 < 2",
            plots: &plots,
        });
        assert!(page.len() < 5_000_000 && page.contains("Not shown: 2 more plots"));
        assert!(page.contains("<h1>a &lt;b&gt;</h1>") && page.contains("1 &lt; 2"));
    }
}
