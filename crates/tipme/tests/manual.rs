// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual's list of verbs is generated from the programs, and the commands of README and guide
//! work. `TIPME_BLESS=1 cargo test -p tipme --test manual` writes the list again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use support::{said, tipme};
use tempfile::TempDir;

const VERBS: &str = "docs/reference/verbs.md";
const INTRODUCTION: &str = "# Verbs

Generated from the programs. `tipme VERB --help` and the man pages add notes, exit codes and
examples. Each verb also takes `--color WHEN`: `auto`, `always` or `never`; `NO_COLOR` is respected.
Many take `--state-dir DIR`: the folder of another recorder or manager than the service. The verbs
of the last group belong to the package `tipme-lab`.
";
/// Options of every verb, or of many, which the introduction describes.
const OF_MANY: [&str; 5] =
    ["--color <WHEN>", "-h, --help", "-V, --version", "help", "--state-dir <DIR>"];
/// Minimum number of benchmarks with an option for the option to be listed once for all.
const SHARED_BY: usize = 3;
/// Largest indentation of the first line of an option.
const OPTION_INDENT: usize = 6;

/// Incident of the examples by id, a copy of it, and the golden incident in their place.
const EXAMPLE: &str = "20260131T230000.000Z";
const COPY: &str = "hang";
const GOLDEN: &str = "tests/golden/field-bash-flock.tipme";
/// Verbs of which the examples are run, not only parsed.
const RUN: [&str; 5] = ["diagnose", "report", "incidents", "scrub", "schema"];
/// Ends of words of examples that need a browser, a recorder or the result of a measurement.
const LACKING: [&str; 5] = ["open", "note", "pin", "rm", ".json"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn printed(words: &[&str]) -> String {
    let (code, text) = said(tipme().args(words).output().unwrap());
    assert_eq!(code, Some(0), "tipme {}: {text}", words.join(" "));
    text
}

/// A list in a help text: its title, and its entries with descriptions.
type HelpList = (String, Vec<(String, String)>);

/// Returns the lists of a help text.
fn lists(help: &str) -> Vec<HelpList> {
    let mut lists: Vec<HelpList> = Vec::new();
    let mut is_list = false;
    for line in help.lines().filter(|line| !line.is_empty()) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if indent == 0 {
            is_list = line.ends_with(':') && !line.starts_with("Example");
            if is_list {
                lists.push((line.trim_end_matches(':').to_owned(), Vec::new()));
            }
        } else if let Some((_, entries)) = lists.last_mut().filter(|_| is_list) {
            if indent <= OPTION_INDENT {
                let (name, about) = text.split_once("  ").unwrap_or((text, ""));
                entries.push((name.to_owned(), about.trim_start().to_owned()));
            } else if let Some((_, about)) = entries.last_mut() {
                *about += if about.is_empty() { "" } else { " " };
                *about += text;
            }
        }
    }
    for (_, entries) in &mut lists {
        entries.retain(|(name, _)| !OF_MANY.contains(&name.as_str()));
    }
    lists.retain(|(_, entries)| !entries.is_empty());
    lists
}

fn item((name, about): &(String, String)) -> String {
    format!("- `{name}`: {}\n", about.replace('<', "\\<"))
}

/// Returns the section of a verb, without entries that `shared` has.
fn section(words: &str, heading: &str, shared: &BTreeMap<String, String>) -> String {
    let help = printed(&words.split(' ').chain(["-h"]).collect::<Vec<_>>());
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap();
    let usage = usage.replace("tipme-lab", "tipme");
    let about = help.lines().next().unwrap();
    let mut text = format!("\n{heading} tipme {words}\n\n{about}.\n\n    {usage}\n");
    let lists = lists(&help);
    text += if lists.is_empty() { "" } else { "\n" };
    for (_, entries) in lists {
        let (common, own): (Vec<_>, Vec<_>) =
            entries.iter().partition(|(name, about)| shared.get(name) == Some(about));
        text.extend(own.into_iter().map(item));
        if !common.is_empty() {
            let names: Vec<_> = common.iter().map(|(name, _)| format!("`{name}`")).collect();
            writeln!(text, "- as above: {}", names.join(", ")).unwrap();
        }
    }
    text
}

/// Returns the sections of the benchmarks, with the options of several before them.
fn benchmarks() -> String {
    let mut all: BTreeMap<(String, String), usize> = BTreeMap::new();
    let (_, benchmarks) = lists(&printed(&["bench", "-h"])).remove(0);
    for (name, _) in &benchmarks {
        for (_, entries) in lists(&printed(&["bench", name, "-h"])) {
            entries.into_iter().for_each(|entry| *all.entry(entry).or_default() += 1);
        }
    }
    all.retain(|_, count| *count >= SHARED_BY);
    let shared: BTreeMap<String, String> = all.into_keys().collect();
    let mut text = "\nOptions of several benchmarks:\n\n".to_owned();
    text.extend(shared.clone().iter().map(|(name, about)| item(&(name.clone(), about.clone()))));
    for (name, _) in benchmarks {
        text += &section(&format!("bench {name}"), "####", &shared);
    }
    text
}

fn verbs() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (group, verbs) in lists(&printed(&["--help"])) {
        if verbs.iter().all(|(name, _)| name.starts_with('-')) {
            continue;
        }
        write!(text, "\n## {group}\n").unwrap();
        for (verb, _) in verbs {
            text += &section(&verb, "###", &BTreeMap::new());
            text += &if verb == "bench" { benchmarks() } else { String::new() };
        }
    }
    text
}

#[test]
fn the_list_of_verbs_is_that_of_the_programs() {
    support::lab();
    let (made, file) = (verbs(), repository().join(VERBS));
    if std::env::var_os("TIPME_BLESS").is_some() {
        fs::write(&file, &made).unwrap();
    }
    let known = fs::read_to_string(file).unwrap_or_default();
    assert!(known == made, "{VERBS} is stale; TIPME_BLESS=1 cargo test -p tipme --test manual");
}

/// Returns the words of a shell command, up to a comment, a redirection or another command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | ';' | '&') => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words
}

/// Returns the commands of `tipme` in the code blocks of a page, without the program's name.
fn commands(page: &str) -> Vec<Vec<String>> {
    let (mut in_fence, mut found) = (false, Vec::new());
    for line in page.lines() {
        in_fence ^= line.starts_with("```");
        let line = line.strip_prefix("    ").or(in_fence.then_some(line)).unwrap_or_default();
        let parts = line.split("&& ").map(|part| words(part.trim()));
        for mut words in parts {
            if words.first().is_some_and(|word| word == "sudo") {
                words.remove(0);
            }
            if words.first().is_some_and(|word| word == "tipme") {
                found.push(words.split_off(1));
            }
        }
    }
    found
}

/// Runs a command with an incident in the state folder of a recorder.
fn run(words: &[String]) {
    let place = TempDir::new().unwrap();
    let [folder, work] = ["incidents", "work"].map(|name| place.path().join(name));
    for (folder, name) in [(&folder, EXAMPLE), (&work, EXAMPLE), (&work, COPY)] {
        fs::create_dir_all(folder).unwrap();
        fs::copy(repository().join(GOLDEN), folder.join(format!("{name}.tipme"))).unwrap();
    }
    let state = place.path().to_str().unwrap();
    let mut command = tipme();
    command.current_dir(&work).args(words.iter().map(|word| word.replace("/tmp", state)));
    if ["diagnose", "report", "incidents"].contains(&words[0].as_str()) {
        command.args(["--state-dir", state]);
    }
    let (code, text) = said(command.output().unwrap());
    assert_eq!(code, Some(0), "tipme {}: {text}", words.join(" "));
}

/// Every command parses: `--help` after its words prints the help of its verb. Commands that need
/// an incident only are run.
#[test]
fn commands_of_the_guide_work() {
    support::lab();
    let guide = fs::read_dir(repository().join("docs/guide")).unwrap().flatten();
    let pages = guide.map(|entry| entry.path()).chain([repository().join("README.md")]);
    let mut count = 0;
    for page in pages {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let (own, rest) = words.split_at(end);
            let asked = tipme().args(own).arg("--help").args(rest).output().unwrap();
            let (code, text) = said(asked);
            let is_help = code == Some(0) && text.contains("Usage: ");
            assert!(is_help, "{}: tipme {}: {text}", page.display(), words.join(" "));
            let lacks = |word: &String| LACKING.iter().any(|end| word.ends_with(end));
            let is_alone = !words.iter().any(lacks);
            if RUN.contains(&words[0].as_str()) && is_alone {
                run(&words);
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} commands were found");
}

#[test]
fn commands_are_found_in_fences_and_indented_blocks() {
    let page = "tipme no\n```sh\nsudo tipme mark \"it hung\" # tipme no\nls\n```\n    tipme a && tipme b > c\n";
    let found: Vec<String> = commands(page).iter().map(|words| words.join("+")).collect();
    assert_eq!(found, ["mark+it hung", "a", "b"]);
}
