// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list: one line for each incident, newest last.

use super::cache::{VerdictFolder, VerdictSummary};
use super::lookup::{all, is_own};
use super::times;
use crate::arguments::Incidents;
use crate::diagnose;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;
use tipme_command::output::layout;
use tipme_report::{Layout, Tone, display_width, padded};
use tipme_store::{IncidentFolder, Listed, id_ago};

/// Maximum number of verdicts computed without a message, since each takes about a second.
const SILENT_MAX: usize = 3;

/// An incident with its verdict, or the reason why there is none.
struct IncidentRow {
    listed: Listed,
    found: Result<VerdictSummary>,
}

/// Output of `tipme incidents --json`: the incidents of this machine, newest last.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme incidents --json")]
pub struct IncidentsDocument {
    pub schema: u32,
    pub incidents: Vec<IncidentEntry>,
    /// Number of incidents of other users, which this user may not read.
    pub foreign: usize,
    /// Number of answers that the cause was right; `wrong` counts the others.
    pub right: usize,
    pub wrong: usize,
}

/// An incident. Results are empty or `null` if it cannot be read, or has none.
#[derive(Serialize, JsonSchema)]
pub struct IncidentEntry {
    pub id: String,
    pub path: String,
    /// Local time of the mark.
    pub time: String,
    /// Numeric id of the user that marked.
    pub owner: u32,
    pub bytes: u64,
    /// `true` if it is kept when the folder is full.
    pub pinned: bool,
    #[serde(flatten)]
    pub found: VerdictSummary,
    /// Reason why it cannot be read.
    pub error: Option<String>,
}

/// The listed incidents, and the number of others.
struct Rows {
    rows: Vec<IncidentRow>,
    foreign: usize,
}

pub fn run(folder: &IncidentFolder, arguments: &Incidents) -> Result<ExitCode> {
    let from = arguments.since.map(id_ago);
    let mut listed = all(folder)?;
    listed.retain(|one| from.as_ref().is_none_or(|from| one.id >= *from));
    let (own, foreign): (Vec<Listed>, Vec<Listed>) = listed.into_iter().partition(is_own);
    let rows = find_all(own).into_iter().filter(|row| row.fits(arguments)).collect();
    let rows = Rows { rows, foreign: foreign.len() };
    if arguments.json {
        println!("{}", serde_json::to_string(&rows.document())?);
    } else if rows.rows.is_empty() && rows.foreign == 0 {
        println!("no matching incidents in {}; mark one with: tipme mark", folder.path().display());
    } else {
        print!("{}", rows.text(&layout()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes cached verdicts and computes the others one at a time, which can take minutes for many
/// incidents.
fn find_all(listed: Vec<Listed>) -> Vec<IncidentRow> {
    let kept = VerdictFolder::open();
    let known: Vec<Option<VerdictSummary>> = listed.iter().map(|one| kept.get(&one.path)).collect();
    let missing = known.iter().filter(|found| found.is_none()).count();
    if missing > SILENT_MAX {
        eprintln!("tipme: diagnosing {missing} incidents; their verdicts are cached");
    }
    let rows = listed.into_iter().zip(known).map(|(listed, known)| {
        let found = known.map_or_else(|| diagnose::summary(&listed.path), Ok);
        IncidentRow { listed, found }
    });
    rows.collect()
}

impl IncidentRow {
    fn fits(&self, arguments: &Incidents) -> bool {
        let none = VerdictSummary::default();
        let found = self.found.as_ref().unwrap_or(&none);
        let app = arguments.app.as_ref().is_none_or(|app| *app == found.application);
        app && arguments.kind.as_ref().is_none_or(|kind| Some(kind) == found.kind.as_ref())
    }

    fn document(&self) -> IncidentEntry {
        let (found, error) = match &self.found {
            Ok(found) => (found.clone(), None),
            Err(error) => (VerdictSummary::default(), Some(format!("{error:#}"))),
        };
        IncidentEntry {
            id: self.listed.id.clone(),
            path: self.listed.path.display().to_string(),
            time: times::local(&self.listed.id),
            owner: self.listed.owner,
            bytes: self.listed.bytes,
            pinned: self.listed.pinned,
            found,
            error,
        }
    }

    /// Id, time, application, latency, cause, note.
    fn cells(&self) -> [String; 6] {
        let (id, time) = (self.listed.id.clone(), times::local(&self.listed.id));
        let rest = match &self.found {
            Ok(found) => {
                [found.application.clone(), latency(found), cause(found), self.words(found)]
            }
            Err(error) => {
                [String::new(), String::new(), format!("cannot be read: {error:#}"), String::new()]
            }
        };
        let [application, latency, cause, words] = rest;
        [id, time, application, latency, cause, words]
    }

    /// Returns the note, after the pin and the user's answer.
    fn words(&self, found: &VerdictSummary) -> String {
        let pinned = if self.listed.pinned { "(pinned) " } else { "" };
        let answer = match found.user_right {
            Some(true) => "(it was this) ",
            Some(false) => "(it was something else) ",
            None => "",
        };
        format!("{pinned}{answer}{}", found.user_text.replace('\n', " "))
    }
}

fn latency(found: &VerdictSummary) -> String {
    found.latency_ms.map(|ms| format!("{ms:.0} ms")).unwrap_or_default()
}

fn cause(found: &VerdictSummary) -> String {
    match &found.kind {
        Some(kind) if found.culprit.is_empty() => kind.clone(),
        Some(kind) => format!("{kind}: {}", found.culprit),
        None => "nothing unusual".to_owned(),
    }
}

const HEADS: [&str; 6] = ["ID", "TIME", "APPLICATION", "LATENCY", "CAUSE", "WORDS"];

/// Formats header and rows with column widths that fit.
fn table(cells: &[[String; 6]]) -> Vec<String> {
    let heads = HEADS.map(str::to_owned);
    let rows: Vec<&[String; 6]> = std::iter::once(&heads).chain(cells).collect();
    let mut widths = [0; 6];
    for row in &rows {
        widths = std::array::from_fn(|column| widths[column].max(display_width(&row[column])));
    }
    let lines = rows.into_iter().map(|row| {
        let cells = row.iter().zip(widths).map(|(cell, width)| padded(cell, width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect()
}

/// Formats time and event in one line, and the id and the note below it.
fn block([id, time, application, latency, cause, words]: &[String; 6], layout: &Layout) -> String {
    let what: Vec<&str> = [application, latency, cause]
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let head = format!("{}  ", layout.paint(Tone::Strong, time));
    let more = [id.as_str(), words].join("  ");
    layout.item(&head, &what.join("  "))
        + &layout.paint_lines(Tone::Faint, &layout.item("    ", more.trim_end()))
}

impl Rows {
    fn document(&self) -> IncidentsDocument {
        let (right, wrong) = self.answers();
        let incidents = self.rows.iter().map(IncidentRow::document).collect();
        IncidentsDocument { schema: 1, incidents, foreign: self.foreign, right, wrong }
    }

    /// Formats a table if it fits, else two or more lines for each incident.
    fn text(&self, layout: &Layout) -> String {
        let cells: Vec<[String; 6]> = self.rows.iter().map(IncidentRow::cells).collect();
        let lines = table(&cells);
        let widest = lines.iter().map(|line| display_width(line)).max().unwrap_or(0);
        let mut text = if layout.columns.is_none_or(|columns| widest <= columns) {
            let (head, rows) =
                lines.split_first().map_or(("", &[][..]), |(head, rows)| (head, rows));
            let head = if cells.is_empty() {
                String::new()
            } else {
                layout.paint(Tone::Strong, head) + "\n"
            };
            head + &rows.iter().map(|row| format!("{row}\n")).collect::<String>()
        } else {
            cells.iter().map(|cells| block(cells, layout)).collect()
        };
        text.push_str(&self.foot());
        text
    }

    fn foot(&self) -> String {
        let (right, wrong) = self.answers();
        let mut lines = Vec::new();
        if right + wrong > 0 {
            lines.push(format!("Answers to \"was it this?\": {right} yes, {wrong} no.\n"));
        }
        if self.foreign > 0 {
            lines.push(format!("Not shown: {} of other users; root sees all.\n", self.foreign));
        }
        lines.concat()
    }

    /// Counts the users' answers that the cause was right, and that it was wrong.
    fn answers(&self) -> (usize, usize) {
        let found = self.rows.iter().filter_map(|row| row.found.as_ref().ok());
        let answers: Vec<bool> = found.filter_map(|found| found.user_right).collect();
        let right = answers.iter().filter(|right| **right).count();
        (right, answers.len() - right)
    }
}
