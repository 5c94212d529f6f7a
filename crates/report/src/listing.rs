// SPDX-License-Identifier: MIT OR Apache-2.0
//! Listing of all interactions of an incident, one per line.

use crate::layout::padded;
use tipme_analysis::Timed;
use tipme_record::Nanos;

/// Explanation of the columns.
const LEGEND: &str = "\
Milliseconds since the input. latency: to the response; taken: the application read the input; drawn: it drew;
settled: its last drawing of the answer; handled: it was ready for more input; join: how the response was
matched to the input (exact: by wake-ups and messages; speculative: by time only; open: no response).
repeat: by the application itself, while a key was held. A dash: unknown.
";

/// Formats a table of the interactions: time before the mark, class, application, latency, and its
/// parts.
pub fn interactions(timed: &[Timed], mark: Nanos) -> String {
    let head = "before mark  class   application        latency    taken    drawn  settled  handled  join\n";
    let rows = timed.iter().map(|one| row(one, mark));
    std::iter::once(head.to_owned()).chain(rows).chain([LEGEND.to_owned()]).collect()
}

fn row(timed: &Timed, mark: Nanos) -> String {
    let parts = [timed.taken_ns, timed.drawn_ns, timed.settled_ns, timed.handled_ns];
    let [taken, drawn, settled, handled] =
        parts.map(|at| at.map_or_else(|| "-".to_owned(), |at| since_input(timed, at)));
    let sign = if timed.censored { ">=" } else { "" };
    let name: String = timed.client_comm.chars().take(16).collect();
    format!(
        "{:>9.3} s  {:6}  {}  {:>6} ms  {taken:>7}  {drawn:>7}  {settled:>7}  {handled:>7}  {}{}\n",
        mark.since(Nanos(timed.input_ns)).millis() / 1e3,
        timed.class,
        padded(&name, 16),
        sign.to_owned() + &since_input(timed, timed.end_ns),
        timed.join,
        if timed.repeated { ", repeat" } else { "" }
    )
}

/// Formats a time in milliseconds since the input.
fn since_input(timed: &Timed, at_ns: u64) -> String {
    format!("{:.2}", Nanos(at_ns).since(Nanos(timed.input_ns)).millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::display_width;

    #[test]
    fn an_unknown_time_is_a_dash() {
        let timed = Timed {
            class: "key".to_owned(),
            client_comm: "xterm".to_owned(),
            input_ns: 1_000_000,
            taken_ns: Some(2_000_000),
            end_ns: 3_500_000,
            handled_ns: Some(3_750_000),
            join: "exact".to_owned(),
            ..Timed::default()
        };
        let mark = Nanos(1_501_000_000);
        assert_eq!(
            row(&timed, mark),
            "    1.500 s  key     xterm               2.50 ms     1.00        -        -     2.75  exact\n"
        );
        let wide = Timed { client_comm: "端末".to_owned(), ..timed.clone() };
        assert_eq!(display_width(&row(&wide, mark)), display_width(&row(&timed, mark)));
    }
}
