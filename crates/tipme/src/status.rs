// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme status`: the way from the key to the answer as it is now; and whether it is whole, which `tipme doctor` says
//! first.

use crate::arguments;
use crate::incidents::{find, kept::Summary, when};
use crate::{diagnose, record};
use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tipme_control::{CallError, Client, Request, Response, Status};
use tipme_desktop::presence::{self, Agent};
use tipme_desktop::{Target, notify, server};
use tipme_recorder::StateDirs;
use tipme_store::{Folder, id_at};

/// How long the recorder may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Everything that a press of the key needs.
pub struct State {
    recorder: Result<Status, CallError>,
    /// By display: the agent that serves it, or why that cannot be known.
    agents: Vec<(u32, Result<Option<Agent>, String>)>,
    compositors: usize,
    notifications: Result<String, String>,
    last: Option<(PathBuf, Result<Summary>)>,
}

/// Prints what is. Exit code 1 where a press would find no cause.
pub fn run(arguments: &arguments::Status) -> Result<ExitCode> {
    let state = State::look(arguments.state_dir.as_deref());
    if arguments.json {
        println!("{}", state.json());
    } else {
        println!("{}\n", state.headline());
        state.lines().iter().for_each(|(what, text)| println!("{what:15}{text}"));
    }
    Ok(if state.hindrance().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl State {
    pub fn look(state_dir: Option<&Path>) -> State {
        let dirs = StateDirs::choose(state_dir);
        let asked = Client::new(dirs.run_dir()).with_patience(PATIENCE).call(&Request::Status);
        let recorder = asked.and_then(|answer| match answer {
            Response::Status(status) => Ok(status),
            _ => Err(CallError::Refused("the recorder gave an answer that does not fit; restart it".to_owned())),
        });
        let last = find(&Folder::at(dirs.incidents()), None).ok();
        State {
            recorder,
            agents: displays().into_iter().map(|display| (display, agent(display))).collect(),
            compositors: server::find_compositors().len(),
            notifications: notify::daemon().map_err(|error| error.to_string()),
            last: last.map(|path| (path.clone(), diagnose::summary(&path))),
        }
    }

    /// Why a press of the key would find no cause, and the remedy; `None` where it would.
    pub fn hindrance(&self) -> Option<String> {
        let status = match &self.recorder {
            Ok(status) => status,
            Err(error) => return Some(error.to_string()),
        };
        let served = self.agents.iter().any(|(_, agent)| matches!(agent, Ok(Some(_))));
        let first = self.agents.first().map(|(display, _)| format!("no agent serves display :{display}"));
        let everywhere = status.hot_keys.as_ref().is_some_and(|keys| keys.contains("any keyboard"));
        match first {
            Some(none) if !served && !everywhere => Some(format!("{none}; start one there: tipme agent &")),
            None if self.compositors > 0 && !everywhere => {
                Some("under Wayland the recorder has to take the key; start it with: --hot-keys always".to_owned())
            }
            None if status.hot_keys.is_none() => {
                Some("no display runs; start the session, then: tipme agent &".to_owned())
            }
            _ if !status.keys => Some("input is not recorded; restart it by the agent's key, ctrl+alt+1".to_owned()),
            _ => None,
        }
    }

    /// `Ready: yes, ctrl+alt+minus marks on :0`.
    pub fn headline(&self) -> String {
        match self.hindrance() {
            Some(why) => format!("Ready: no, because {why}"),
            None => format!("Ready: yes, {}", self.keys()),
        }
    }

    /// What marks where.
    fn keys(&self) -> String {
        let of_agent = |(display, agent): &(u32, Result<Option<Agent>, String>)| {
            agent
                .as_ref()
                .ok()
                .and_then(Option::as_ref)
                .map(|agent| format!("{} on :{display} (agent, process {})", agent.words, agent.pid))
        };
        let of_recorder = self.recorder.as_ref().ok().and_then(|status| status.hot_keys.clone());
        let all: Vec<String> = self.agents.iter().filter_map(of_agent).chain(of_recorder).collect();
        if all.is_empty() { "no key marks; start one with: tipme agent &".to_owned() } else { all.join("; ") }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match &self.recorder {
            Ok(status) => lines.extend(of_recorder(status)),
            Err(error) => lines.push(("recording", format!("no: {error}"))),
        }
        lines.push(("keys", self.keys()));
        let unknown = self.agents.iter().filter_map(|(display, agent)| Some((display, agent.as_ref().err()?)));
        lines.extend(unknown.map(|(display, why)| ("agent", format!("of :{display} not known: {why}"))));
        let shown = self.notifications.as_ref().cloned();
        lines.push(("notifications", shown.unwrap_or_else(|why| format!("{why}; a dialog comes instead"))));
        lines.push(("last incident", self.last()));
        lines
    }

    fn last(&self) -> String {
        let Some((path, found)) = &self.last else { return "none of yours".to_owned() };
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        let what = found.as_ref().map_or_else(|error| format!("{error:#}"), |found| found.headline.clone());
        format!("{}: {what}", when::local(&id))
    }

    fn json(&self) -> Value {
        let agents = self.agents.iter().map(|(display, agent)| {
            let found = agent.as_ref().ok().and_then(Option::as_ref);
            json!({
                "display": format!(":{display}"), "pid": found.map(|agent| agent.pid),
                "keys": found.map(|agent| &agent.words), "error": agent.as_ref().err(),
            })
        });
        json!({
            "schema": 1, "ready": self.hindrance().is_none(), "because": self.hindrance(),
            "recorder": self.recorder.as_ref().ok(), "agents": agents.collect::<Vec<_>>(),
            "notifications": self.notifications.as_ref().ok(),
            "last_incident": self.last.as_ref().map(|(path, _)| path),
        })
    }
}

fn of_recorder(status: &Status) -> Vec<(&'static str, String)> {
    let held = status.held_s.min(status.window_s);
    let may: Vec<String> = status.allowed.iter().map(|uid| record::user_name(*uid)).collect();
    let displays = if status.displays.is_empty() { "none".to_owned() } else { status.displays.join(" ") };
    let input = if status.keys { "recorded" } else { "not recorded; restart it by the agent's key, ctrl+alt+1" };
    let mut lines = vec![
        ("recording", format!("since {} (process {})", since(status), status.pid)),
        ("held", format!("the last {held:.0} s, of {:.0} s at most", status.window_s)),
        ("lost", format!("{} records since then", status.lost)),
        ("displays", displays),
        ("input", input.to_owned()),
        ("may mark", [vec!["root".to_owned()], may].concat().join(", ")),
    ];
    lines.extend(status.missing.iter().map(|missing| ("not recorded", missing.clone())));
    lines
}

/// When recording began, by the clock on the wall.
fn since(status: &Status) -> String {
    let now = clock_gettime(ClockId::Monotonic);
    let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = wall.saturating_sub(now.saturating_sub(Duration::from_nanos(status.armed_ns)));
    when::local(&id_at(began.as_nanos() as u64))
}

/// The display of this session, else those of the machine.
fn displays() -> Vec<u32> {
    let own = std::env::var("DISPLAY").ok().and_then(|name| Target::parse(&name).ok());
    own.map_or_else(server::find, |target| vec![target.display])
}

fn agent(display: u32) -> Result<Option<Agent>, String> {
    presence::find(&Target::new(display)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(hot_keys: Option<&str>, agent: Option<&str>) -> State {
        let status = Status { keys: true, hot_keys: hot_keys.map(str::to_owned), ..Status::default() };
        let agent = agent.map(|words| Agent { pid: 7, words: words.to_owned() });
        let agents = vec![(3, Ok(agent))];
        State { recorder: Ok(status), agents, compositors: 0, notifications: Ok("d".to_owned()), last: None }
    }

    #[test]
    fn it_is_ready_where_a_key_marks() {
        let none = "Ready: no, because no agent serves display :3; start one there: tipme agent &";
        assert_eq!(state(Some("on a text console f9 marks"), None).headline(), none);
        let served = state(None, Some("f9 marks")).headline();
        assert_eq!(served, "Ready: yes, f9 marks on :3 (agent, process 7)");
        let always = state(Some("f9 marks, on any keyboard of the machine"), None).headline();
        assert_eq!(always, "Ready: yes, f9 marks, on any keyboard of the machine");
    }

    #[test]
    fn without_a_display_the_console_will_do_but_not_for_wayland() {
        let at_console = State { agents: Vec::new(), ..state(Some("on a text console f9 marks"), None) };
        assert_eq!(at_console.hindrance(), None);
        let wayland = State { compositors: 1, ..at_console };
        assert!(wayland.hindrance().is_some_and(|why| why.contains("--hot-keys always")));
    }

    #[test]
    fn what_is_stopped_or_refused_is_a_hindrance() {
        let mut stopped = state(None, Some("f9 marks"));
        stopped.recorder = stopped.recorder.map(|status| Status { keys: false, ..status });
        assert!(stopped.headline().contains("because input is not recorded"));
        stopped.recorder = Err(CallError::Refused("user 7 may not use this recorder".to_owned()));
        assert_eq!(stopped.headline(), "Ready: no, because user 7 may not use this recorder");
    }
}
