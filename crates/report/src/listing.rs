// SPDX-License-Identifier: MIT OR Apache-2.0
//! Listing of all interactions of an incident, one per line.

use tipme_analysis::Timed;
use tipme_record::Nanos;

/// Explanation of the columns.
const LEGEND: &str = "\
Milliseconds since the input. latency: to the response; taken: the application read the input; drawn: it drew;
settled: its last drawing of the answer; handled: it was ready for more input; join: how response and input are
known to belong together (exact: by wake-ups and messages; speculative: by time only; open: no response).
repeat: by the application itself, of a key that is held. A dash: not known.
";

/// Formats a table of the interactions: time before the mark, class, application, latency, and its
/// parts.
pub fn interactions(timed: &[Timed], mark: Nanos) -> String {
    let head = "before mark  class   application        latency    taken    drawn  settled  handled  join\n";
    let rows = timed.iter().map(|one| row(one, mark));
    std::iter::once(head.to_owned()).chain(rows).chain([LEGEND.to_owned()]).collect()
}

fn row(timed: &Timed, mark: Nanos) -> String {
    let after = |at: u64| Nanos(at).since(Nanos(timed.input_ns)).millis();
    let part =
        |at: Option<u64>| at.map_or_else(|| "-".to_owned(), |at| format!("{:.2}", after(at)));
    let sign = if timed.censored { ">=" } else { "" };
    let name: String = timed.client_comm.chars().take(16).collect();
    format!(
        "{:>9.3} s  {:6}  {:16}  {:>6} ms  {:>7}  {:>7}  {:>7}  {:>7}  {}{}\n",
        mark.since(Nanos(timed.input_ns)).millis() / 1e3,
        timed.class,
        name,
        format!("{sign}{:.2}", after(timed.end_ns)),
        part(timed.taken_ns),
        part(timed.drawn_ns),
        part(timed.settled_ns),
        part(timed.handled_ns),
        timed.join,
        if timed.repeated { ", repeat" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
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
        let row = row(&timed, Nanos(1_501_000_000));
        assert_eq!(
            row,
            "    1.500 s  key     xterm               2.50 ms     1.00        -        -     2.75  exact\n"
        );
    }
}
