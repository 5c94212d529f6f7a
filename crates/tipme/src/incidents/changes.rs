// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations of users on their own incidents. The folder belongs to root: the recorder performs
//! them, and root can do without it.

use super::cache;
use anyhow::{Result, bail};
use std::process::ExitCode;
use tipme_control::{CallError, Client, RecorderRequest, RecorderResponse};
use tipme_recorder::StateDirs;
use tipme_store::IncidentFolder;

/// Removes an incident, silently on success.
pub fn remove(dirs: &StateDirs, id: String) -> Result<ExitCode> {
    let done = ask(dirs, &RecorderRequest::Remove { id: id.clone() })?;
    cache::forget(&id);
    Ok(done)
}

/// Pins or unpins an incident, silently on success.
pub fn pin(dirs: &StateDirs, id: String, pinned: bool) -> Result<ExitCode> {
    ask(dirs, &RecorderRequest::Pin { id, pinned })
}

fn ask(dirs: &StateDirs, request: &RecorderRequest) -> Result<ExitCode> {
    match Client::new(dirs.run_dir()).call(request) {
        Ok(RecorderResponse::Done) => {}
        Ok(other) => bail!("unexpected reply from the recorder: {other:?}"),
        Err(CallError::Refused(why)) => bail!(why),
        Err(_) if rustix::process::geteuid().is_root() => {
            without_recorder(request, &IncidentFolder::at(dirs.incidents()))?
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Performs the operation without a recorder.
fn without_recorder(request: &RecorderRequest, folder: &IncidentFolder) -> Result<()> {
    match request {
        RecorderRequest::Remove { id } => folder.remove(id, 0)?,
        RecorderRequest::Pin { id, pinned } => folder.pin(id, 0, *pinned)?,
        _ => {}
    }
    Ok(())
}
