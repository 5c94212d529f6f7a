// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme why`: explains the manager's treatment of a process.

use crate::arguments;
use anyhow::{Result, bail};
use std::process::ExitCode;
use tipme_analysis::clean;
use tipme_control::manager::{Client, ManagerRequest, ManagerResponse, ProcessTreatment};
use tipme_manager::StateDir;

/// Queries the running manager.
pub fn run(arguments: &arguments::WhyArguments) -> Result<ExitCode> {
    let client = Client::new(StateDir::find(arguments.state_dir.as_deref()).path());
    let ManagerResponse::Why(why) = client.call(&ManagerRequest::Why { pid: arguments.pid })?
    else {
        bail!("unexpected reply from the manager; restart it")
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&why)?);
    } else {
        print!("{}", text(&why));
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the answer for people.
fn text(why: &ProcessTreatment) -> String {
    let role = why.role.as_deref().unwrap_or("left alone");
    let program = clean(&why.program);
    let mut lines = vec![format!("{} ({program}): {role}, because {}", why.pid, why.reason)];
    match (&why.membership, why.set) {
        (Some(membership), _) if membership == "alone" => {
            lines.push("  it is a set of its own".to_owned())
        }
        (Some(membership), Some(set)) => {
            lines.push(format!("  it belongs to the set of process {set}: {}", member(membership)));
        }
        _ => {}
    }
    for knob in &why.knobs {
        let origin = match &why.role {
            Some(_) => format!("was {}", knob.baseline),
            None => {
                format!("inherited; {} again at the latest when the manager ends", knob.baseline)
            }
        };
        lines.push(format!("  {:<16} {} ({origin})", knob.name, knob.applied));
    }
    if why.role.is_some() && why.knobs.is_empty() {
        lines.push("  no knob is changed".to_owned());
    }
    lines.extend(why.skipped.iter().map(|skipped| format!("  left alone: {skipped}")));
    lines.join("\n") + "\n"
}

fn member(membership: &str) -> &str {
    match membership {
        "client" => "it is connected to the display",
        "child" => "it was started below it",
        "foreground" => "it is in the foreground of its terminal",
        "server" => {
            "it does the work of what is in the foreground of a terminal, over a local socket"
        }
        "property" => "its window names it as a helper",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_control::manager::KnobStatus;

    #[test]
    fn an_answer_is_read_from_top_to_bottom() {
        let knob =
            KnobStatus { name: "nice value".into(), baseline: "0".into(), applied: "-8".into() };
        let why = ProcessTreatment {
            pid: 7,
            program: "sh".into(),
            role: Some("focused".into()),
            reason: "it has the keyboard focus".into(),
            membership: Some("foreground".into()),
            set: Some(6),
            knobs: vec![knob.clone()],
            skipped: vec!["I/O priority: set by the user".into()],
        };
        let expected = "7 (sh): focused, because it has the keyboard focus
  it belongs to the set of process 6: it is in the foreground of its terminal
  nice value       -8 (was 0)
  left alone: I/O priority: set by the user
";
        assert_eq!(text(&why), expected);
        let alone = ProcessTreatment {
            pid: 1,
            program: "init".into(),
            reason: "it belongs to the system".into(),
            ..ProcessTreatment::default()
        };
        assert_eq!(text(&alone), "1 (init): left alone, because it belongs to the system\n");
        let inherited =
            "  nice value       -8 (inherited; 0 again at the latest when the manager ends)\n";
        assert!(text(&ProcessTreatment { knobs: vec![knob], ..alone }).ends_with(inherited));
    }
}
