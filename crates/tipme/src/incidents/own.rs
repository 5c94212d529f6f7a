// SPDX-License-Identifier: MIT OR Apache-2.0
//! What owners do with their incidents. The folder is root's: the recorder does it for them, and root needs none.

use crate::arguments::incidents::Verb;
use anyhow::{Result, bail};
use std::process::ExitCode;
use tipme_control::{CallError, Client, Request, Response};
use tipme_recorder::StateDirs;
use tipme_store::Folder;

/// Removes, pins or lets go, and says nothing where that was done.
pub fn run(verb: &Verb, dirs: &StateDirs) -> Result<ExitCode> {
    let request = match verb {
        Verb::Rm { id } => Request::Remove { id: plain(id) },
        Verb::Pin { id } => Request::Pin { id: plain(id), pinned: true },
        Verb::Unpin { id } => Request::Pin { id: plain(id), pinned: false },
    };
    match Client::new(dirs.run_dir()).call(&request) {
        Ok(Response::Done) => {}
        Ok(other) => bail!("the recorder gave an answer that does not fit: {other:?}"),
        Err(CallError::Refused(why)) => bail!(why),
        Err(_) if rustix::process::geteuid().is_root() => alone(&request, &Folder::at(dirs.incidents()))?,
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Without a recorder.
fn alone(request: &Request, folder: &Folder) -> Result<()> {
    match request {
        Request::Remove { id } => folder.remove(id, 0)?,
        Request::Pin { id, pinned } => folder.pin(id, 0, *pinned)?,
        _ => {}
    }
    Ok(())
}

/// The id in a path, as `tipme mark` prints it.
fn plain(id: &str) -> String {
    id.rsplit('/').next().unwrap_or(id).trim_end_matches(".tipme").to_owned()
}
