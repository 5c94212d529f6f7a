// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matching of the runs of results.
//!
//! Runs with the same name are repeats. A name that is only a number, such as `3` or `repeat 3`,
//! counts repeats and is not a name. If each side has one kind of runs, these are compared whatever
//! their names.

use crate::document::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One result.
#[derive(Clone, Copy, Debug)]
pub struct ComparedSide<'a> {
    /// Name of the file.
    pub name: &'a str,
    pub runs: &'a [Run],
}

/// Runs without a match.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// Index of the side, from 0.
    pub side: usize,
    pub run: String,
}

/// Runs with one name on each side; empty for a side without such runs.
pub(super) struct MatchedRuns<'a> {
    pub run: Option<String>,
    pub sides: Vec<Vec<&'a Run>>,
}

/// Returns the kind of a run, which all its repeats share.
pub(super) fn kind(run: &Run) -> &str {
    let name = run.name.trim();
    let bare = ["repeat ", "run "].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name);
    if bare.bytes().all(|byte| byte.is_ascii_digit()) { "" } else { name }
}

/// Returns each kind of runs of a side once, in order of appearance.
fn kinds<'a>(side: &ComparedSide<'a>) -> Vec<&'a str> {
    let mut kinds = Vec::new();
    for run in side.runs {
        if !kinds.contains(&kind(run)) {
            kinds.push(kind(run));
        }
    }
    kinds
}

fn runs_of<'a>(side: &ComparedSide<'a>, wanted: &str) -> Vec<&'a Run> {
    side.runs.iter().filter(|run| kind(run) == wanted).collect()
}

/// Returns the groups of runs that the first and some other side have, and the runs without a
/// match.
pub(super) fn groups<'a>(sides: &[ComparedSide<'a>]) -> (Vec<MatchedRuns<'a>>, Vec<Unmatched>) {
    let all: Vec<Vec<&str>> = sides.iter().map(kinds).collect();
    let Some((base, others)) = all.split_first() else { return Default::default() };
    if all.iter().all(|kinds| kinds.len() == 1) {
        let sides = sides.iter().map(|side| side.runs.iter().collect()).collect();
        return (vec![MatchedRuns { run: None, sides }], Vec::new());
    }
    let mut common = base.clone();
    common.retain(|kind| others.iter().any(|kinds| kinds.contains(kind)));
    let matched = common.iter().map(|kind| MatchedRuns {
        run: Some((*kind).to_owned()),
        sides: sides.iter().map(|side| runs_of(side, kind)).collect(),
    });
    let mut unmatched = Vec::new();
    for (side, kinds) in all.iter().enumerate() {
        let alone = kinds.iter().filter(|kind| !common.contains(kind));
        unmatched.extend(alone.map(|kind| Unmatched { side, run: (*kind).to_owned() }));
    }
    (matched.collect(), unmatched)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(names: &[&str]) -> Vec<Run> {
        names.iter().map(|name| Run { name: (*name).to_owned(), ..Run::default() }).collect()
    }

    /// Name of a group, and its number of runs on each side.
    type Counts = (Option<String>, Vec<usize>);

    /// Returns the groups, and the rest.
    fn grouped(sides: &[&[&str]]) -> (Vec<Counts>, Vec<(usize, String)>) {
        let runs: Vec<Vec<Run>> = sides.iter().map(|names| runs(names)).collect();
        let sides: Vec<ComparedSide<'_>> =
            runs.iter().map(|runs| ComparedSide { name: "", runs }).collect();
        let (matched, unmatched) = groups(&sides);
        let counts = matched
            .into_iter()
            .map(|matched| (matched.run, matched.sides.iter().map(Vec::len).collect()));
        (counts.collect(), unmatched.into_iter().map(|one| (one.side, one.run)).collect())
    }

    #[test]
    fn repeats_of_one_kind_are_held_against_each_other() {
        assert_eq!(grouped(&[&["hog", "hog"], &["none"]]), (vec![(None, vec![2, 1])], vec![]));
        assert_eq!(
            grouped(&[&["1", "2", "repeat 3"], &["", "run 2"]]),
            (vec![(None, vec![3, 2])], vec![])
        );
    }

    #[test]
    fn runs_of_several_kinds_match_by_name() {
        let (matched, unmatched) =
            grouped(&[&["hog", "none", "hog", "fork"], &["none", "hog", "slow"], &["hog"]]);
        let expected =
            [(Some("hog".to_owned()), vec![2, 1, 1]), (Some("none".to_owned()), vec![1, 1, 0])];
        assert_eq!(matched, expected);
        assert_eq!(unmatched, [(0, "fork".to_owned()), (1, "slow".to_owned())]);
    }

    #[test]
    fn unmatched_runs_are_listed() {
        let (matched, unmatched) = grouped(&[&["a", "b"], &["c"]]);
        assert_eq!((matched.len(), unmatched.len()), (0, 3));
        assert_eq!(grouped(&[&[], &["c"]]), (vec![], vec![(1, "c".to_owned())]));
        assert_eq!(grouped(&[&[], &[]]), (vec![], vec![]));
        assert_eq!(grouped(&[]).1, vec![]);
    }
}
