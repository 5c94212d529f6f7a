// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme mark`.

use crate::arguments::MarkArguments;
use crate::status::resuming::{INPUT_KEY, resume};
use anyhow::{Result, bail};
use rustix::process::geteuid;
use std::process::ExitCode;
use tipme_control::{Client, RecorderRequest, RecorderResponse, Trigger};
use tipme_recorder::StateDirs;

/// Marks, and prints the incident's path.
pub fn run(arguments: MarkArguments) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let text =
        if arguments.words.is_empty() { arguments.message } else { arguments.words.join(" ") };
    let request = RecorderRequest::Mark { text, trigger: Trigger::Command };
    match Client::new(dirs.run_dir()).call(&request)? {
        RecorderResponse::Marked { incident, seconds, input_stopped, .. } => {
            if input_stopped {
                let own = geteuid().as_raw();
                eprintln!(
                    "tipme: input is not recorded, so the incident has no keys or clicks; {}",
                    resume(own, own, INPUT_KEY)
                );
            }
            eprintln!("written in {seconds:.2} s; read the cause with: tipme diagnose");
            println!("{}", incident.display());
            Ok(ExitCode::SUCCESS)
        }
        RecorderResponse::Error(why) => bail!("cannot mark: {why}"),
        other => bail!("unexpected reply from the recorder: {other:?}"),
    }
}
