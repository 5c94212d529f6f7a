// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters for the diagnosis, and the processes that they name.

use crate::error::DiagnoseError;
use crate::timeline::recording::Recording;
use tipme_record::Pid;

/// Filters for the diagnosis; without any, everything is considered.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DiagnoseOptions {
    /// Only processes with this name.
    pub app: Option<String>,
    /// Only this process.
    pub pid: Option<Pid>,
    /// Seconds before the mark around which to search.
    pub at_s: Option<f64>,
}

/// Returns the processes that the options name; `None` for all.
pub(crate) fn pids(
    recording: &Recording,
    options: &DiagnoseOptions,
) -> Result<Option<Vec<Pid>>, DiagnoseError> {
    let lives = || recording.tasks.lives().iter().filter(|life| life.tid.0 == life.pid.0);
    if let Some(pid) = options.pid {
        let known = lives().any(|life| life.pid == pid);
        return if known {
            Ok(Some(vec![pid]))
        } else {
            Err(DiagnoseError::NoSuchProcess { name: format!("with pid {pid}") })
        };
    }
    let Some(app) = &options.app else { return Ok(None) };
    let pids: Vec<Pid> = lives()
        .filter(|life| {
            life.comm == *app || program(recording.tasks.cmdline(life.pid, life.until)) == app
        })
        .map(|life| life.pid)
        .collect();
    if pids.is_empty() {
        Err(DiagnoseError::NoSuchProcess { name: format!("named {app}") })
    } else {
        Ok(Some(pids))
    }
}

/// Returns the name of the program in a command line, without its directory.
fn program(cmdline: &str) -> &str {
    let path = cmdline.split(' ').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}
