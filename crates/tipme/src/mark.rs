// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme mark`.

use crate::arguments::MarkArguments;
use anyhow::{Result, bail};
use std::process::ExitCode;
use tipme_control::{Client, RecorderRequest, RecorderResponse, Trigger};
use tipme_recorder::StateDirs;

/// Hint about restarting the recording of input.
const RESTART: &str = "restart it with the agent's key (Ctrl+Alt+1), or: tipme resume";

/// Marks, and prints the incident's path.
pub fn run(arguments: MarkArguments) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let text =
        if arguments.words.is_empty() { arguments.message } else { arguments.words.join(" ") };
    let request = RecorderRequest::Mark { text, trigger: Trigger::Command };
    match Client::new(dirs.run_dir()).call(&request)? {
        RecorderResponse::Marked { incident, seconds, input_stopped, .. } => {
            if input_stopped {
                eprintln!(
                    "tipme: input is not recorded, so that the incident tells of no key; {RESTART}"
                );
            }
            eprintln!("written in {seconds:.2} s; read the cause with: tipme diagnose");
            println!("{}", incident.display());
            Ok(ExitCode::SUCCESS)
        }
        RecorderResponse::Error(why) => bail!("the recorder could not mark: {why}"),
        other => bail!("the recorder gave an answer that does not fit: {other:?}"),
    }
}
