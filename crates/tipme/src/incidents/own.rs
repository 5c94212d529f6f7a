// SPDX-License-Identifier: MIT OR Apache-2.0
//! What owners do with their incidents. The folder is root's: the recorder does it for them, and root needs none.

use super::kept;
use anyhow::{Result, bail};
use std::process::ExitCode;
use tipme_control::{CallError, Client, Request, Response};
use tipme_recorder::StateDirs;
use tipme_store::Folder;

/// Removes an incident, and says nothing where that was done.
pub fn remove(dirs: &StateDirs, id: String) -> Result<ExitCode> {
    let done = ask(dirs, &Request::Remove { id: id.clone() })?;
    kept::forget(&id);
    Ok(done)
}

/// Keeps an incident or lets it go, and says nothing where that was done.
pub fn pin(dirs: &StateDirs, id: String, pinned: bool) -> Result<ExitCode> {
    ask(dirs, &Request::Pin { id, pinned })
}

fn ask(dirs: &StateDirs, request: &Request) -> Result<ExitCode> {
    match Client::new(dirs.run_dir()).call(request) {
        Ok(Response::Done) => {}
        Ok(other) => bail!("the recorder gave an answer that does not fit: {other:?}"),
        Err(CallError::Refused(why)) => bail!(why),
        Err(_) if rustix::process::geteuid().is_root() => alone(request, &Folder::at(dirs.incidents()))?,
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
