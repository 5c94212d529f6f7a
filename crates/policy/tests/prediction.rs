// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is predicted, and how it is counted.
#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

use proptest::prelude::*;
use tipme_policy::prediction::{FOLLOWERS_MAX, NAME_BYTES_MAX, PREDICTED_MAX, PROGRAMS_MAX, Prediction};
use tipme_record::Nanos;

/// A user who stays ten seconds at each of these.
struct User {
    prediction: Prediction,
    second: u64,
    at: String,
}

impl User {
    fn at(name: &str) -> User {
        User { prediction: Prediction::default(), second: 0, at: name.to_owned() }
    }

    fn visits(&mut self, names: &[&str]) {
        for name in names {
            self.second += 10;
            self.prediction.observe(Nanos::from_secs(self.second), &self.at, name);
            self.at = (*name).to_owned();
        }
    }

    fn says(&self, name: &str) -> Vec<String> {
        self.prediction.predict(name).iter().map(|(name, chance)| format!("{name} {chance:.2}")).collect()
    }
}

#[test]
fn a_round_is_learnt() {
    let mut user = User::at("edit");
    for _ in 0..5 {
        user.visits(&["build", "browse", "edit"]);
    }
    user.prediction.finish();
    assert_eq!(user.says("edit"), ["build 0.80"]);
    assert_eq!(user.says("build"), ["browse 0.80"]);
    assert_eq!(user.says("mail"), [] as [&str; 0]);
    assert_eq!((user.prediction.hits(), user.prediction.misses()), (12, 3));
}

#[test]
fn little_experience_makes_no_great_claims() {
    let mut user = User::at("edit");
    assert_eq!((user.prediction.hits(), user.prediction.misses()), (0, 0));
    user.visits(&["build"]);
    assert_eq!(user.says("edit"), [] as [&str; 0], "it may be a passing one");
    user.visits(&["edit"]);
    assert_eq!(user.says("edit"), ["build 0.50"]);
}

#[test]
fn several_followers_are_ranked_and_the_unlikely_ones_are_left_out() {
    let names = |followers: &[&str]| {
        let mut user = User::at("edit");
        followers.iter().for_each(|follower| user.visits(&[follower, "edit"]));
        let predicted = user.prediction.predict("edit");
        assert!(predicted.iter().map(|(_, chance)| chance).sum::<f64>() < 1.0);
        predicted.into_iter().map(|(name, _)| name).collect::<Vec<String>>()
    };
    assert_eq!(names(&["a", "b", "c", "d"]), ["d", "c", "b"], "{PREDICTED_MAX} at most");
    assert_eq!(names(&["a", "b", "c", "d", "d", "c", "d"]), ["d", "c"], "one in ten at least");
}

#[test]
fn an_old_habit_gives_way() {
    let mut user = User::at("edit");
    for _ in 0..50 {
        user.visits(&["old", "edit"]);
    }
    for _ in 0..8 {
        user.visits(&["new", "edit"]);
    }
    assert!(user.says("edit")[0].starts_with("new"), "{:?}", user.says("edit"));
}

#[test]
fn what_is_only_passed_is_not_learnt() {
    let mut prediction = Prediction::default();
    let ms = Nanos::from_millis;
    prediction.observe(ms(10_000), "edit", "mail");
    prediction.observe(ms(10_999), "mail", "browse");
    prediction.observe(ms(12_000), "browse", "chat");
    prediction.observe(ms(12_500), "chat", "browse");
    prediction.finish();
    let first = |name| prediction.predict(name).first().map(|(name, _)| name.clone());
    assert_eq!(first("edit").unwrap(), "browse");
    assert_eq!((first("mail"), first("browse"), first("chat")), (None, None, None), "there and back is not a change");
    assert_eq!(prediction.misses(), 1);
}

#[test]
fn another_boot_starts_time_again() {
    let mut prediction = Prediction::default();
    prediction.observe(Nanos::from_secs(1_000), "edit", "mail");
    prediction.observe(Nanos::from_secs(1), "mail", "browse");
    prediction.finish();
    assert_eq!(prediction.predict("edit")[0].0, "mail");
}

#[test]
fn the_bounds_hold_and_losses_are_counted() {
    let mut prediction = Prediction::default();
    for number in 0..FOLLOWERS_MAX as u64 + 2 {
        prediction.observe(Nanos::from_secs(2 * number), "edit", &format!("f{number}"));
    }
    prediction.finish();
    assert_eq!(prediction.dropped(), 2);
    for number in 0..PROGRAMS_MAX as u64 + 2 {
        prediction.observe(Nanos::from_secs(1_000 + 2 * number), &format!("p{number}"), "x");
    }
    prediction.finish();
    assert_eq!(prediction.dropped(), 2 + 3);
    assert!(prediction.predict("edit").is_empty(), "it was left longest ago");
    assert!(!prediction.predict("p129").is_empty());
    let long = "ä".repeat(NAME_BYTES_MAX);
    prediction.observe(Nanos::from_secs(9_000), &long, "y");
    prediction.finish();
    assert_eq!(prediction.predict(&long)[0].0, "y", "a cut name is still a name");
}

#[test]
fn a_history_is_written_down_and_read_again() {
    let mut user = User::at("edit");
    user.visits(&["build", "edit", "mail", "edit", "build", "edit"]);
    user.prediction.finish();
    let text = serde_json::to_string(&user.prediction).unwrap();
    assert_eq!(serde_json::from_str::<Prediction>(&text).unwrap(), user.prediction);
    assert_eq!(serde_json::from_str::<Prediction>("{}").unwrap(), Prediction::default());
}

#[test]
fn a_strange_history_keeps_the_bounds() {
    let program = |name: String| format!("\"{name}\":{{\"weights\":{{\"a\":1e300,\"b\":-4,\"c\":2.5}},\"turn\":7}}");
    let programs: Vec<String> = (0..500).map(|number| program(format!("p{number}"))).collect();
    let text = format!("{{\"programs\":{{{}}},\"hits\":3}}", programs.join(","));
    let prediction: Prediction = serde_json::from_str(&text).unwrap();
    assert_eq!(prediction.hits(), 3);
    assert_eq!(prediction.dropped(), 500 - PROGRAMS_MAX as u64);
    let known: Vec<Vec<(String, f64)>> = (0..500).map(|number| prediction.predict(&format!("p{number}"))).collect();
    assert_eq!(known.iter().filter(|list| !list.is_empty()).count(), PROGRAMS_MAX);
    assert!(known.iter().flatten().all(|(name, chance)| name == "c" && *chance < 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn probabilities_are_probabilities(changes in proptest::collection::vec((0u64..5_000, 0u8..6, 0u8..6), 0..200)) {
        let mut prediction = Prediction::default();
        let mut ms = 0;
        for (wait, from, to) in &changes {
            ms += wait;
            prediction.observe(Nanos::from_millis(ms), &from.to_string(), &to.to_string());
        }
        prediction.finish();
        prop_assert!(prediction.hits() + prediction.misses() <= changes.len() as u64);
        for from in 0..6 {
            let predicted = prediction.predict(&from.to_string());
            prop_assert!(predicted.len() <= PREDICTED_MAX);
            prop_assert!(predicted.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            prop_assert!(predicted.iter().map(|(_, chance)| chance).sum::<f64>() < 1.0);
            prop_assert!(predicted.iter().all(|(name, _)| *name != from.to_string()), "it does not follow itself");
        }
    }
}
