// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme incidents`.

mod own;

use crate::arguments::Incidents;
use anyhow::{Context, Result};
use std::process::ExitCode;
use tipme_recorder::StateDirs;
use tipme_store::{Folder, Listed};

/// Lists the incidents, the oldest first: when, what the user said, and the verdict.
pub fn run(arguments: &Incidents) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    if let Some(verb) = &arguments.verb {
        return own::run(verb, &dirs);
    }
    let folder = Folder::at(dirs.incidents());
    let listed = folder.list().with_context(|| format!("cannot read {}", folder.path().display()))?;
    // One at a time: many incidents take minutes to judge.
    let rows = listed.iter().map(row);
    if arguments.json {
        let rows: Vec<_> = rows.map(|row| row.json()).collect();
        println!("{}", serde_json::json!({ "schema": 1, "incidents": rows }));
    } else if listed.is_empty() {
        println!("no incidents in {}; mark one with: tipme mark", folder.path().display());
    } else {
        rows.for_each(|row| println!("{}  {}  {}", row.path, row.text, row.verdict));
    }
    Ok(ExitCode::SUCCESS)
}

struct Row {
    path: String,
    text: String,
    verdict: String,
}

impl Row {
    fn json(&self) -> serde_json::Value {
        serde_json::json!({ "path": self.path, "user_text": self.text, "verdict": self.verdict })
    }
}

fn row(listed: &Listed) -> Row {
    let (text, verdict) = crate::diagnose::headline(&listed.path);
    Row { path: listed.path.display().to_string(), text, verdict }
}
