// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walks in ARCHITECTURE.md lead through existing functions.

use crate::tree::{expect_none, root, text};

/// Returns the parts of a line in backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A step: its number in the walk, `true` if text leads to its first function, and the files and
/// functions that it names.
struct Step<'a> {
    number: u32,
    has_text: bool,
    names: Vec<&'a str>,
}

impl<'a> Step<'a> {
    fn of(line: &'a str) -> Option<Step<'a>> {
        let (number, text) = line.split_once(". ")?;
        Some(Step {
            number: number.parse().ok()?,
            has_text: !text.starts_with('`'),
            names: quoted(text).collect(),
        })
    }

    fn files(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied().filter(|name| name.contains('/'))
    }

    fn first_function(&self) -> Option<&'a str> {
        self.names.iter().copied().find(|name| !name.contains('.'))
    }
}

/// Returns the steps of the walks, with their lines in the document.
fn steps(document: &str) -> Vec<(usize, Step<'_>)> {
    let lines =
        document.lines().enumerate().skip_while(|(_, line)| *line != "## Four walks").skip(1);
    let lines = lines.take_while(|(_, line)| !line.starts_with("## "));
    lines.filter_map(|(at, line)| Some((at + 1, Step::of(line)?))).collect()
}

/// Returns a crate's file without its tests.
fn code(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(root().join("crates").join(name)).ok()?;
    Some(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned())
}

/// Returns `true` if a file declares a function of Rust, or of a kernel program in C.
fn declares(file: &str, function: &str) -> bool {
    ["fn {}(", "fn {}<", "int {}(", "void {}("]
        .iter()
        .any(|form| file.contains(&form.replace("{}", function)))
}

/// Returns the names in a step that do not exist.
fn missing(step: &Step) -> Vec<String> {
    let (mut file, mut found) = (None, Vec::new());
    for name in &step.names {
        if name.contains('/') {
            file = code(name);
            found.extend(file.is_none().then(|| (*name).to_owned()));
        } else {
            let is_declared = file.as_ref().is_some_and(|text| declares(text, name));
            found.extend((!is_declared).then(|| (*name).to_owned()));
        }
    }
    found
}

/// Returns `true` if a file calls the function: by its name outside a declaration.
fn calls(file: &str, function: &str) -> bool {
    file.match_indices(function).any(|(at, _)| {
        let (before, after) = (&file[..at], &file[at + function.len()..]);
        !before.ends_with("fn ") && !before.ends_with(is_of_name) && !after.starts_with(is_of_name)
    })
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the first functions of steps that no earlier step of their walk calls, with their lines.
fn uncalled(steps: &[(usize, Step<'_>)]) -> Vec<(usize, String)> {
    let (mut before, mut found): (Vec<String>, Vec<(usize, String)>) = Default::default();
    for (at, step) in steps {
        if step.number == 1 {
            before.clear();
        }
        let first = step.first_function().filter(|_| !step.has_text);
        let lost = first.filter(|first| !before.iter().any(|file| calls(file, first)));
        found.extend(lost.map(|first| (*at, first.to_owned())));
        before.extend(step.files().filter_map(code));
    }
    found
}

#[test]
fn the_walks_lead_through_functions_that_exist() {
    let document = text("ARCHITECTURE.md");
    let steps = steps(&document);
    assert!(steps.len() >= 20, "the walks were not found");
    let lost =
        steps.iter().flat_map(|(at, step)| missing(step).into_iter().map(move |name| (at, name)));
    let lost = lost.map(|(at, name)| format!("ARCHITECTURE.md:{at}: there is no {name}"));
    expect_none(lost.collect(), "steps that lead nowhere");
}

#[test]
fn each_step_of_a_walk_calls_the_next() {
    let document = text("ARCHITECTURE.md");
    let lost = uncalled(&steps(&document)).into_iter();
    let lost =
        lost.map(|(at, name)| format!("ARCHITECTURE.md:{at}: nothing before it calls {name}"));
    expect_none(lost.collect(), "steps that nothing leads to");
}

#[test]
fn a_step_into_nothing_is_found() {
    for (line, lost) in [
        ("1. `store/src/folder.rs` `keep_by`, `lose`: words", &["lose"][..]),
        ("1. `store/src/attic.rs` `keep`", &["store/src/attic.rs", "keep"]),
    ] {
        assert_eq!(missing(&Step::of(line).expect("a step")), lost);
    }
}

#[test]
fn a_step_that_nothing_leads_to_is_found() {
    let begin = Step::of("1. `recorder/src/seal.rs` `seal`").expect("a step");
    let called = Step::of("2. `store/src/folder.rs` `keep_by`").expect("a step");
    let uncalled_step = Step::of("3. `store/src/folder.rs` `prune_nothing`").expect("a step");
    let led_to = Step::of("4. By a socket, `store/src/folder.rs` `prune_nothing`").expect("a step");
    let lost = uncalled(&[(1, begin), (2, called), (3, uncalled_step), (4, led_to)]);
    assert_eq!(lost.iter().map(|(at, _)| *at).filter(|at| *at > 1).collect::<Vec<_>>(), [3]);
}
