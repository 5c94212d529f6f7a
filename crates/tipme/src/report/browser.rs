// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages to open: cached in the user's folder, and shown by the desktop's browser.

use super::file;
use super::page::page;
use crate::incidents::cache::{self, PAGE};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tipme_analysis::DiagnoseOptions;

/// Maximum number of cached pages: the newest.
const CACHED_MAX: usize = 20;
/// Desktop program that opens a file.
const OPENER: &str = "xdg-open";
/// Time after which an opener that has not failed counts as successful: it shows the page, or
/// starts a program that does.
const TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Writes the page of an incident and opens it, on the given display if there is one.
///
/// # Errors
/// Fails if no program opens it; the message names the path.
pub fn open(incident: &Path, display: Option<&str>) -> Result<PathBuf> {
    let page = make(incident)?;
    let mut command = Command::new(OPENER);
    command
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some(display) = display {
        command.env("DISPLAY", display);
    }
    let opener = command.spawn().with_context(|| {
        format!("no browser was found to open it; the page is {}", page.display())
    })?;
    if !shows(opener)? {
        bail!("{OPENER} found no browser to open it; the page is {}", page.display());
    }
    Ok(page)
}

/// Writes the page of an incident to a file of this user.
fn make(incident: &Path) -> Result<PathBuf> {
    let folder = cache::folder().context(
        "there is no folder to keep the page in; set XDG_CACHE_HOME, or give tipme report -o FILE",
    )?;
    let id = incident.file_stem().unwrap_or_default().to_string_lossy();
    let place = folder.join(format!("{id}{PAGE}"));
    file::write(&place, &page(incident, &DiagnoseOptions::default())?, true)?;
    prune(&folder);
    Ok(place)
}

/// Removes the oldest pages beyond the bound.
fn prune(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let pages = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(PAGE));
    let mut pages: Vec<_> = pages
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    pages.sort();
    let excess = pages.len().saturating_sub(CACHED_MAX);
    for (_, page) in pages.into_iter().take(excess) {
        // A file that is already gone needs no removal.
        let _ = fs::remove_file(page);
    }
}

/// Returns `true` if an opener succeeds or still runs after a while: some stay as long as the
/// browser does.
fn shows(mut opener: Child) -> Result<bool> {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        if let Some(status) = opener.try_wait().context("cannot wait for the browser")? {
            return Ok(status.success());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    std::thread::spawn(move || opener.wait());
    Ok(true)
}
