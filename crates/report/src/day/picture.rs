// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of a day as a picture: the waits by hour and by application.

use super::lost;
use crate::plot::words::{count, duration};
use crate::plot::{Figure, Quantity, budgets};
use tipme_measure::lived::DayFigures;

const NOTICED: &str = "wait over the threshold of its class";
const UNNOTICED: &str = "wait below it";

/// Draws one SVG with a bar for each hour with answers and for each application. `clock` formats
/// seconds since 1970 as time of day.
pub fn picture(date: &str, day: &DayFigures, clock: &dyn Fn(f64) -> String) -> String {
    let hours = day.hours.iter().map(|hour| {
        let from = clock(hour.start_s as f64);
        let label = format!("from {}: {} answered", from.get(..5).unwrap_or(&from), count(hour.n));
        (label, parts(hour.wait_ms, hour.noticed_wait_ms))
    });
    let applications = day.applications.iter().map(|one| {
        let label = format!("{}: {} answered", one.application, count(one.n));
        (label, parts(one.wait_ms, one.noticed_wait_ms))
    });
    let rows: Vec<(String, Vec<(String, f64)>)> = hours.chain(applications).collect();
    let title = format!("{date}: waits by hour and by application");
    let presses = count(day.all.n);
    let footer = format!(
        "{presses} presses answered, {} waited in all{}",
        duration(day.all.wait_ms),
        lost(day.lost)
    );
    budgets(&Figure { title: &title, quantity: Quantity::Latency, footer: &footer }, &rows)
}

fn parts(wait_ms: f64, noticed_ms: f64) -> Vec<(String, f64)> {
    vec![(NOTICED.to_owned(), noticed_ms), (UNNOTICED.to_owned(), (wait_ms - noticed_ms).max(0.0))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::lived::{HourShare, LivedFigures};

    #[test]
    fn each_hour_and_each_application_has_a_bar() {
        let hour = HourShare {
            start_s: 50_400,
            n: 3_214,
            wait_ms: 41_000.0,
            noticed_wait_ms: 12_300.0,
            think_ms: 0.0,
        };
        let application = LivedFigures {
            application: "<editor>".to_owned(),
            n: 9,
            wait_ms: 500.0,
            ..LivedFigures::default()
        };
        let day = DayFigures {
            hours: vec![hour],
            applications: vec![application],
            ..DayFigures::default()
        };
        let svg = picture("2026-01-31", &day, &|_| "14:00:00".to_owned());
        assert!(
            svg.contains("from 14:00: 3,214 answered")
                && svg.contains("&lt;editor&gt;: 9 answered"),
            "{svg}"
        );
        assert!(svg.contains(NOTICED) && svg.contains(UNNOTICED));
    }
}
