// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme report`: an incident or a result as a page for a browser, or an incident's timeline as a
//! picture.

pub mod browser;
pub mod file;
mod page;
mod results;

use crate::arguments::Report;
use crate::incidents::lookup::find;
use anyhow::{Result, bail};
use page::{page, picture};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_analysis::DiagnoseOptions;
use tipme_recorder::StateDirs;
use tipme_store::IncidentFolder;

/// Writes the page of an incident or a result, and prints its path.
pub fn run(arguments: &Report) -> Result<ExitCode> {
    let options = arguments.selection.options();
    let result = arguments.file.as_ref().map(Path::new).filter(|path| results::is_result(path));
    let drawn = arguments
        .output
        .as_ref()
        .is_some_and(|output| output.extension().is_some_and(|end| end == "svg"));
    let (path, page) = match result {
        Some(_) if drawn => {
            bail!(
                "only an incident can be drawn as a picture; for the plots of a result, \
                 use --svg of its command"
            )
        }
        Some(_) if options != DiagnoseOptions::default() => {
            bail!("--app, --pid and --at are for incidents; leave them out")
        }
        Some(path) => (path.to_owned(), results::page(path)?),
        None => {
            let dirs = StateDirs::choose(arguments.state_dir.as_deref());
            let path = find(&IncidentFolder::at(dirs.incidents()), arguments.file.as_deref())?;
            let page = if drawn { picture(&path, &options)? } else { page(&path, &options)? };
            (path, page)
        }
    };
    let place = arguments.output.clone().unwrap_or_else(|| name(&path));
    if place == Path::new("-") {
        print!("{page}");
        return Ok(ExitCode::SUCCESS);
    }
    file::write(&place, &page, arguments.force)?;
    println!("{}", place.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns `tipme-ID.html`.
fn name(of: &Path) -> PathBuf {
    let id = of.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("tipme-{id}.html"))
}
