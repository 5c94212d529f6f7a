// SPDX-License-Identifier: MIT OR Apache-2.0
//! `replay-focus FILE...` plays changes of focus through the manager's prediction, and prints as JSON for each file how
//! often the program that came next was among those made ready; beside it two simple guesses, the programs used last
//! and those used most, as many of them at a time. `scripts/measure-prediction` asks for it.
//!
//! A line of a file is a time in seconds and the name of the program that got the focus then.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use tipme_policy::prediction::{MADE_READY_MAX, Prediction, SETTLED};
use tipme_record::Nanos;

/// A program got the focus.
struct ReplayedFocus {
    at: Nanos,
    program: String,
}

/// A way to guess what comes next.
trait NextGuess {
    /// What is ready while this program has the focus.
    fn ready(&self, current: &str) -> Vec<String>;

    /// The focus went from one program to another.
    fn learn(&mut self, at: Nanos, from: &str, to: &str);
}

impl NextGuess for Prediction {
    fn ready(&self, current: &str) -> Vec<String> {
        self.predict(current).into_iter().map(|(name, _)| name).take(MADE_READY_MAX).collect()
    }

    fn learn(&mut self, at: Nanos, from: &str, to: &str) {
        self.observe(at, from, to);
    }
}

/// The programs that had the focus last, the latest first.
#[derive(Default)]
struct LastUsed(Vec<String>);

impl NextGuess for LastUsed {
    fn ready(&self, current: &str) -> Vec<String> {
        self.0.iter().filter(|name| *name != current).take(MADE_READY_MAX).cloned().collect()
    }

    fn learn(&mut self, _: Nanos, from: &str, _: &str) {
        self.0.retain(|name| name != from);
        self.0.insert(0, from.to_owned());
    }
}

/// How often each program got the focus.
#[derive(Default)]
struct MostUsed(BTreeMap<String, u64>);

impl NextGuess for MostUsed {
    fn ready(&self, current: &str) -> Vec<String> {
        let mut others: Vec<(&String, &u64)> = self.0.iter().filter(|(name, _)| *name != current).collect();
        others.sort_by(|one, other| other.1.cmp(one.1));
        others.into_iter().take(MADE_READY_MAX).map(|(name, _)| name.clone()).collect()
    }

    fn learn(&mut self, _: Nanos, _: &str, to: &str) {
        *self.0.entry(to.to_owned()).or_default() += 1;
    }
}

fn read(text: &str) -> Result<Vec<ReplayedFocus>, String> {
    let mut all: Vec<ReplayedFocus> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let fields = line.split_once(char::is_whitespace);
        let parsed = fields.and_then(|(seconds, program)| Some((seconds.parse::<f64>().ok()?, program.trim())));
        let (seconds, program) = parsed.ok_or_else(|| format!("line {number}: write seconds and a program's name"))?;
        let at = Nanos((seconds.max(0.0) * 1e9) as u64);
        if all.last().is_none_or(|last| last.program != program) {
            all.push(ReplayedFocus { at, program: program.to_owned() });
        }
    }
    Ok(all)
}

/// As the manager does: nothing is made ready where the focus has not stayed for a while.
fn replay(name: &str, changes: &[ReplayedFocus], guess: &mut dyn NextGuess) -> Value {
    let (mut hits, mut ready_in_all) = (0, 0);
    for (from, to) in changes.iter().zip(changes.iter().skip(1)) {
        let stays = to.at.since(from.at) >= SETTLED;
        let ready = if stays { guess.ready(&from.program) } else { Vec::new() };
        hits += usize::from(ready.contains(&to.program));
        ready_in_all += ready.len();
        guess.learn(to.at, &from.program, &to.program);
    }
    json!({ "guess": name, "changes": changes.len().saturating_sub(1), "hits": hits, "made_ready": ready_in_all })
}

fn scores(changes: &[ReplayedFocus]) -> Value {
    json!([
        replay("prediction", changes, &mut Prediction::default()),
        replay("last used", changes, &mut LastUsed::default()),
        replay("most used", changes, &mut MostUsed::default()),
    ])
}

fn main() -> Result<(), Box<dyn Error>> {
    let of = |path: String| Ok(scores(&read(&std::fs::read_to_string(path)?)?));
    let all: Vec<Value> = std::env::args().skip(1).map(of).collect::<Result<_, Box<dyn Error>>>()?;
    println!("{}", Value::from(all));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(programs: &[&str], seconds_each: usize, rounds: usize) -> Vec<u64> {
        let visits = programs.iter().cycle().take(rounds * programs.len()).enumerate();
        let lines: Vec<String> = visits.map(|(number, name)| format!("{} {name}", number * seconds_each)).collect();
        let scores = scores(&read(&lines.join("\n")).expect("it can be read"));
        scores.as_array().into_iter().flatten().filter_map(|score| score["hits"].as_u64()).collect()
    }

    #[test]
    fn a_long_round_is_predicted_and_is_never_what_was_used_last() {
        let hits = hits(&["edit", "build", "browse", "mail", "chat"], 10, 20);
        assert!(hits[0] > 85, "{hits:?}");
        assert_eq!(hits[1], 0);
        assert!(hits[2] < 50, "{hits:?}");
    }

    #[test]
    fn between_two_programs_all_guesses_hit() {
        let hits = hits(&["edit", "browse"], 10, 50);
        assert!(hits.iter().all(|hits| *hits >= 95), "{hits:?}");
    }

    #[test]
    fn nothing_is_made_ready_while_the_focus_does_not_stay() {
        assert_eq!(hits(&["edit", "build", "browse"], 1, 20), [0, 0, 0]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        assert_eq!(read("0 edit\nsoon browse").err().as_deref(), Some("line 2: write seconds and a program's name"));
    }
}
