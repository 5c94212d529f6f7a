// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme pause` and `tipme resume`.

use crate::arguments::{PauseArguments, ResumeArguments};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use tipme_control::{Client, RecorderRequest, RecorderResponse};
use tipme_recorder::StateDirs;

/// Pauses the recording of everything, or of input.
pub fn pause(arguments: &PauseArguments) -> Result<ExitCode> {
    let (request, said) = match arguments.input {
        true => (
            RecorderRequest::Keys { record: false },
            "input is no longer recorded; to resume it: tipme resume",
        ),
        false => (RecorderRequest::Pause, "recording is paused; to resume it: tipme resume"),
    };
    ask(arguments.state_dir.as_deref(), &request, said)
}

/// Resumes the recording of everything.
pub fn resume(arguments: &ResumeArguments) -> Result<ExitCode> {
    ask(arguments.state_dir.as_deref(), &RecorderRequest::Start, "recording, with input")
}

fn ask(state_dir: Option<&Path>, request: &RecorderRequest, said: &str) -> Result<ExitCode> {
    match Client::new(StateDirs::choose(state_dir).run_dir()).call(request)? {
        RecorderResponse::Done => println!("{said}"),
        other => bail!("unexpected reply from the recorder: {other:?}"),
    }
    Ok(ExitCode::SUCCESS)
}
