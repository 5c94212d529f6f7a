// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links of the documents lead to files and headings that exist, and the summary of the manual
//! lists each of its pages.

use crate::tree::{Source, documents, expect_none, root, text};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Folder of the manual.
const MANUAL: &str = "docs";

/// Returns numbered lines without code: neither fences nor text in backquotes.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut in_fence = false;
    let mut found = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            found.push((at, line.split('`').step_by(2).collect()));
        }
    }
    found
}

/// Returns the targets of links and images, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in words(text) {
        for rest in line.split("](").skip(1) {
            found.extend(rest.split_once(')').map(|(target, _)| (at, target.to_owned())));
        }
    }
    found
}

/// Returns the anchors of the headings, as a code host and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let numbered: BTreeSet<usize> = words(text).into_iter().map(|(at, _)| at).collect();
    let lines = (1..).zip(text.lines()).filter(|(at, _)| numbered.contains(at));
    let headings = lines.filter(|(_, line)| line.starts_with('#'));
    let titles = headings.map(|(_, line)| line.trim_start_matches('#').trim().to_lowercase());
    titles
        .map(|title| {
            let letters = title.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
            letters.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// Returns the path without `.` and `..`; `None` if it leaves the workspace.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop().then_some(())?;
            }
            part => normal.push(part),
        }
    }
    Some(normal)
}

/// Returns the problem of a link, if it has one.
fn problem(page: &Source, target: &str) -> Option<&'static str> {
    if target.starts_with("https://") || target.starts_with("http://") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() {
        return (!anchors(&page.text).contains(anchor)).then_some("leads to no heading");
    }
    let folder = page.path.parent().unwrap_or(Path::new(""));
    let Some(path) = normal(&folder.join(file)).filter(|path| root().join(path).exists()) else {
        return Some("leads nowhere");
    };
    let is_in_manual = path.starts_with(MANUAL) && root().join(&path).is_file();
    if page.path.starts_with(MANUAL) && !is_in_manual {
        // The built book has neither other files nor lists of files.
        return Some("leads to no file of the manual");
    }
    let has_anchor = || anchors(&text(&path.to_string_lossy())).contains(anchor);
    (!anchor.is_empty() && !has_anchor()).then_some("leads to no heading")
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut found = Vec::new();
    let changelog = Source { path: PathBuf::from("CHANGELOG.md"), text: text("CHANGELOG.md") };
    for page in documents().into_iter().chain([changelog]) {
        for (at, target) in links(&page.text) {
            let problem = problem(&page, &target);
            found.extend(problem.map(|problem| format!("{}: {target} {problem}", page.at(at))));
        }
    }
    expect_none(found, "links of documents");
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = links(&text("docs/SUMMARY.md"));
    let mut listed: Vec<PathBuf> =
        summary.into_iter().map(|(_, target)| Path::new(MANUAL).join(target)).collect();
    listed.sort();
    let mut pages: Vec<PathBuf> = documents().into_iter().map(|page| page.path).collect();
    pages.retain(|path| path.starts_with(MANUAL) && !path.ends_with("SUMMARY.md"));
    pages.sort();
    assert_eq!(listed, pages, "pages in docs/SUMMARY.md, and pages below docs");
}

#[test]
fn broken_links_are_found() {
    let text = "# A `b`, c\n[x](#a-b-c) [y](#d)\n```\n[z](nowhere)\n```\n`[z](nowhere)`\n\
                [s](../SUMMARY.md) ![t](../../README.md) [u](../guide) [v](https://a.b/c)\n";
    let page = &Source::planted("docs/guide", &[("page.md", text)])[0];
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["a-b-c"]);
    let targets = links(text);
    let found: Vec<_> = targets
        .iter()
        .filter_map(|(at, target)| problem(page, target).map(|_| (*at, target.as_str())))
        .collect();
    assert_eq!(found, [(2, "#d"), (7, "../../README.md"), (7, "../guide")]);
}
