// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme status`: the current state of everything that a verdict needs; `tipme doctor` prints the
//! summary first.

mod agents_bus;
mod recorder;
pub mod resuming;

use crate::arguments;
use crate::desktop_keys::{KeySource, KeyState, agent_words};
use crate::diagnose;
use crate::incidents::lookup::find;
use crate::incidents::times;
use anyhow::Result;
use resuming::{INPUT_KEY, without_input};
use rustix::fs::StatVfsMountFlags;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tipme_command::output::layout;
use tipme_control::{CallError, Client, RecorderRequest, RecorderResponse, RecorderStatus};
use tipme_desktop::hotkeys::Bindings;
use tipme_desktop::presence::{self, RunningAgent};
use tipme_desktop::{DisplayTarget, on_bus, portal, server};
use tipme_recorder::StateDirs;
use tipme_report::{Layout, Tone};
use tipme_store::IncidentFolder;

/// State of an agent without an answer of its desktop: a portal may take a minute at login.
const WAITS: &str = "the desktop has not answered the agent's request for a key yet; \
                     in a minute, run: tipme status";

/// Free disk space that a mark may need, in bytes; with less, writing may fail.
const ROOM_MIN: u64 = 4 << 20;

/// Timeout of the recorder.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Output of `tipme status --json`: readiness for a press of the key, and everything that it needs.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme status --json")]
pub struct StatusDocument {
    pub schema: u32,
    pub ready: bool,
    /// Reason why it is not ready, with the remedy; `null` if it is.
    pub because: Option<String>,
    /// `null` if no recorder answers.
    pub recorder: Option<RecorderStatus>,
    pub agents: Vec<AgentDocument>,
    /// Name of the notification server on the agent's bus, else on that of this shell; `null` if
    /// there is none.
    pub notifications: Option<String>,
    /// File of the newest incident of this user.
    pub last_incident: Option<String>,
}

/// The agent of a display.
#[derive(Serialize, JsonSchema)]
pub struct AgentDocument {
    /// Name such as `:0` or `wayland-0`.
    pub display: String,
    /// `null` if no agent serves it.
    pub pid: Option<u32>,
    /// Description of its keys, for people.
    pub keys: Option<String>,
    /// Reason why the agent is unknown.
    pub error: Option<String>,
}

/// A display with its agent, if there is one, or the reason why that is unknown.
type DisplayAgent = (String, Result<Option<RunningAgent>, String>);

/// State of everything that a press of the key needs.
pub struct SystemState {
    recorder: Result<RecorderStatus, CallError>,
    agents: Vec<DisplayAgent>,
    /// State of the mark key in a Wayland session's desktop.
    key: Option<(KeySource, KeyState)>,
    compositors: usize,
    notifications: Result<String, String>,
    /// Newest incident of this user.
    last: Option<PathBuf>,
    /// Reason why no mark can be written.
    without_room: Option<String>,
}

/// Prints the state. Exit code 1 if a press would find no cause.
pub fn run(arguments: &arguments::StatusArguments) -> Result<ExitCode> {
    let state = SystemState::read(arguments.state_dir.as_deref());
    if arguments.json {
        println!("{}", serde_json::to_string(&state.document())?);
    } else {
        let layout = layout();
        println!("{}", state.ready(&layout));
        state
            .lines()
            .iter()
            .for_each(|(what, text)| print!("{}", layout.item(&format!("{what:15}"), text)));
    }
    Ok(if state.hindrance().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl SystemState {
    /// Queries recorder, agents, desktop and disk.
    pub fn read(state_dir: Option<&Path>) -> SystemState {
        let dirs = StateDirs::choose(state_dir);
        let asked =
            Client::new(dirs.run_dir()).with_timeout(TIMEOUT).call(&RecorderRequest::Status);
        let recorder = asked.and_then(|answer| match answer {
            RecorderResponse::Status(status) => Ok(status),
            _ => {
                Err(CallError::Refused("unexpected reply from the recorder; restart it".to_owned()))
            }
        });
        let last = find(&IncidentFolder::at(dirs.incidents()), None).ok();
        let agents = agents();
        let served = agents.iter().find_map(|(_, agent)| agent.as_ref().ok()?.as_ref());
        let notifications = agents_bus::notifications(served.map(|agent| agent.pid));
        SystemState {
            recorder,
            agents,
            key: portal::is_wayland().then(|| session_key(state_dir)),
            compositors: server::find_compositors().len(),
            notifications,
            last,
            without_room: without_room(dirs.incidents()),
        }
    }

    /// Returns the reasons why a press of the key would find no cause, with remedies; `None` if it
    /// would.
    pub fn hindrance(&self) -> Option<String> {
        let all = self
            .without_recording()
            .into_iter()
            .chain(self.without_key())
            .chain(self.without_room.clone());
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| all.join("; also, "))
    }

    /// Returns the reason why nothing, or no input, is recorded.
    fn without_recording(&self) -> Option<String> {
        match &self.recorder {
            Ok(status) if status.paused_since_ns.is_some() => {
                Some(format!("recording is {}", recorder::paused(status)))
            }
            Ok(status) if status.keys => None,
            Ok(status) => Some(format!("input is {}", without_input(status, INPUT_KEY))),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the reason why no key marks.
    fn without_key(&self) -> Option<String> {
        let status = self.recorder.as_ref().ok();
        let agents: Vec<&RunningAgent> = self.running_agents().collect();
        if status.is_some_and(|status| status.any_keyboard)
            || agents.iter().any(|agent| !agent.is_stopped() && self.is_true(agent))
        {
            return None;
        }
        if let Some(RunningAgent { pid, .. }) = agents.iter().find(|agent| agent.is_stopped()) {
            return Some(format!("the agent (process {pid}) is stopped; run: kill -CONT {pid}"));
        }
        let silence = self.agents.first().and_then(|(_, agent)| agent.clone().err());
        match &self.key {
            Some((_, KeyState::Works(_))) => return None,
            // Without an answer of the bus, the state of the key is unknown too.
            Some(_) if silence.is_some() => return silence,
            Some((_, key)) if key.hindrance().is_some() => return key.hindrance(),
            _ if !agents.is_empty() => return Some(without_agent_key(&agents)),
            _ => {}
        }
        let why = match self.agents.first() {
            Some((display, Err(error))) => format!(
                "display {display} does not answer ({error}); start the session there, \
                 then run: tipme agent &"
            ),
            Some((display, Ok(_))) => {
                format!("no agent serves display {display}; start one there: tipme agent &")
            }
            None if self.compositors > 0 => "no agent has asked the desktop for a key; \
                 run: tipme setup (or start the recorder with --hot-keys always)"
                .to_owned(),
            // A recorder reads the keys of text consoles itself.
            None if status.is_some_and(|status| status.hot_keys.is_none()) => {
                "no display is running; start the session, then run: tipme agent &".to_owned()
            }
            None => return None,
        };
        Some(why)
    }

    fn running_agents(&self) -> impl Iterator<Item = &RunningAgent> {
        self.agents.iter().filter_map(|(_, agent)| agent.as_ref().ok()?.as_ref())
    }

    /// Returns `true` if the agent's claim about its mark key is right. Readable desktop settings
    /// take precedence; an agent started by a press has a key that tipme cannot look up.
    fn is_true(&self, agent: &RunningAgent) -> bool {
        match self.settings_key() {
            Some(key) => key.hindrance().is_none(),
            None => !agent.words.is_empty() && !agent.words.starts_with("no key marks"),
        }
    }

    /// Returns the state of the mark key in the desktop's settings, if they are readable.
    fn settings_key(&self) -> Option<&KeyState> {
        match &self.key {
            Some((KeySource::Settings(_), key)) => Some(key),
            _ => None,
        }
    }

    /// Returns the state of the mark key in a Wayland session's desktop.
    pub fn key(&self) -> Option<&(KeySource, KeyState)> {
        self.key.as_ref()
    }

    /// Returns the functions that the recorder lacks, with reasons.
    pub fn missing(&self) -> &[String] {
        self.recorder.as_ref().map_or(&[], |status| &status.missing)
    }

    /// Returns a line such as `Ready: yes, Ctrl+Alt+Minus marks on :0`.
    pub fn headline(&self) -> String {
        match (self.hindrance(), &self.key) {
            (Some(why), Some((source, state @ KeyState::AtNextLogin(key))))
                if why == state.words() =>
            {
                let name = source.name();
                format!(
                    "Ready: after the next login, when {name} reads the binding of {key}; \
                     until then, run: tipme mark"
                )
            }
            (Some(why), _) => format!("Ready: no, because {why}"),
            (None, _) if !self.shows_answers() => {
                format!(
                    "Ready: yes, {}; no notification server is running, so read the answer with: \
                     tipme diagnose",
                    self.keys()
                )
            }
            (None, _) => format!("Ready: yes, {}", self.keys()),
        }
    }

    /// Returns `true` if answers are shown: by notifications, popups, or on a text console.
    pub fn shows_answers(&self) -> bool {
        self.notifications.is_ok()
            || self.agents.is_empty()
            || has_x_display()
            || !portal::is_wayland()
    }

    /// Returns the coloured headline.
    pub fn ready(&self, layout: &Layout) -> String {
        let tone = if self.hindrance().is_none() { Tone::Good } else { Tone::Bad };
        layout.paint_lines(tone, &layout.paragraph(&self.headline()))
    }

    /// Lists all mark keys with their displays.
    fn keys(&self) -> String {
        let mut all = Vec::new();
        for (display, agent) in &self.agents {
            let Ok(Some(agent)) = agent else { continue };
            let words = self.settings_key().map_or_else(|| agent.words.clone(), KeyState::words);
            let stopped = if agent.is_stopped() { ", stopped" } else { "" };
            all.push(format!("{words} on {display} (agent, process {}{stopped})", agent.pid));
        }
        if let (true, Some((source, KeyState::Works(key)))) = (all.is_empty(), &self.key) {
            all.push(format!(
                "{key} marks, bound in {}; the first press starts the agent",
                source.settings()
            ));
        }
        all.extend(self.recorder.as_ref().ok().and_then(|status| status.hot_keys.clone()));
        if all.is_empty() { "none".to_owned() } else { all.join("; ") }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match &self.recorder {
            Ok(status) => lines.extend(recorder::lines(status)),
            Err(error) => lines.push(("recording", recorder::unavailable(error).to_owned())),
        }
        lines.push(("keys", self.keys()));
        for (display, agent) in &self.agents {
            if let Err(why) = agent {
                lines.push(("agent", format!("of {display}: unknown, {why}")));
            }
        }
        let shown = self
            .notifications
            .as_ref()
            .map(|daemon| {
                format!(
                    "{daemon}, on the bus of {}",
                    if self.running_agents().next().is_some() { "the agent" } else { "this shell" }
                )
            })
            .map_err(String::clone);
        lines.push((
            "notifications",
            shown.unwrap_or_else(|why| without_notifications(&why, has_x_display())),
        ));
        lines.push(("last incident", self.last()));
        lines
    }

    fn last(&self) -> String {
        let Some(path) = &self.last else { return "none of yours".to_owned() };
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        let what = diagnose::summary(path)
            .map_or_else(|error| format!("{error:#}"), |found| found.headline);
        format!("{}: {what} More: tipme diagnose", times::local(&id))
    }

    fn document(&self) -> StatusDocument {
        let because = self.hindrance();
        StatusDocument {
            schema: 1,
            ready: because.is_none(),
            because,
            recorder: self.recorder.as_ref().ok().cloned(),
            agents: self.agents.iter().map(agent_document).collect(),
            notifications: self.notifications.as_ref().ok().cloned(),
            last_incident: self.last.as_ref().map(|path| path.display().to_string()),
        }
    }
}

/// Describes a session without a notification server. A popup needs an X display.
fn without_notifications(why: &str, has_x_display: bool) -> String {
    match has_x_display {
        true => format!("popups instead; {why}"),
        false => format!("none, so after a press run: tipme diagnose; {why}"),
    }
}

fn has_x_display() -> bool {
    std::env::var("DISPLAY").is_ok_and(|name| DisplayTarget::parse(&name).is_ok())
}

fn agent_document((display, agent): &DisplayAgent) -> AgentDocument {
    let found = agent.as_ref().ok().and_then(Option::as_ref);
    AgentDocument {
        display: display.to_owned(),
        pid: found.map(|agent| agent.pid),
        keys: found.map(|agent| agent.words.clone()),
        error: agent.as_ref().err().cloned(),
    }
}

/// Explains why none of these agents has a key.
fn without_agent_key(agents: &[&RunningAgent]) -> String {
    let words: Vec<&str> = agents.iter().map(|agent| agent.words.as_str()).collect();
    if words.contains(&"") {
        return WAITS.to_owned();
    }
    // An agent that the portal has refused names its remedy.
    if let Some(why) = words[0].strip_prefix("no key marks: ") {
        return why.to_owned();
    }
    let words = words.join("; ");
    format!("the agent reports: {words}; choose another key: tipme setup --mark-key KEY")
}

/// Returns the reason why no mark can be written to this folder.
fn without_room(folder: &Path) -> Option<String> {
    let (disk, folder) = (rustix::fs::statvfs(folder).ok()?, folder.display());
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Some(format!(
            "the disk of {folder} is mounted read-only; see journalctl -k, and mount it writable"
        ));
    }
    (free < ROOM_MIN).then(|| {
        let free = free / 1024;
        format!("the disk of {folder} is full ({free} KiB free); free some space there")
    })
}

/// Returns the state of the default key in this session's desktop.
fn session_key(state_dir: Option<&Path>) -> (KeySource, KeyState) {
    let source = KeySource::of_session();
    let agent = agent_words(state_dir, None)
        .unwrap_or_else(|_| ["tipme", "agent"].map(str::to_owned).to_vec());
    (source, source.state(&Bindings::default(), &agent))
}

/// Returns the agents of this session's display; outside of a session, those of all displays.
fn agents() -> Vec<DisplayAgent> {
    if portal::is_wayland() {
        let display = std::env::var("WAYLAND_DISPLAY").unwrap_or_default();
        return vec![(display, on_bus::find().map_err(|error| error.to_string()))];
    }
    let own = std::env::var("DISPLAY").ok().and_then(|name| DisplayTarget::parse(&name).ok());
    let displays = own.map_or_else(server::find, |target| vec![target.display]);
    let agent =
        |display| presence::find(&DisplayTarget::new(display)).map_err(|error| error.to_string());
    displays.into_iter().map(|display| (format!(":{display}"), agent(display))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(hot_keys: Option<&str>, agent: Option<&str>) -> SystemState {
        let status = RecorderStatus {
            keys: true,
            hot_keys: hot_keys.map(str::to_owned),
            ..RecorderStatus::default()
        };
        let agent = agent.map(|words| RunningAgent { pid: 7, words: words.to_owned() });
        let agents = vec![(":3".to_owned(), Ok(agent))];
        SystemState {
            recorder: Ok(status),
            agents,
            key: None,
            compositors: 0,
            notifications: Ok("d".to_owned()),
            last: None,
            without_room: None,
        }
    }

    #[test]
    fn a_key_that_marks_makes_it_ready() {
        let none = "Ready: no, because no agent serves display :3; start one there: tipme agent &";
        assert_eq!(state(Some("on a text console F9 marks"), None).headline(), none);
        let served = state(None, Some("F9 marks")).headline();
        assert_eq!(served, "Ready: yes, F9 marks on :3 (agent, process 7)");
        let mut always = state(Some("F9 marks, on any keyboard of the machine"), None);
        always.recorder =
            always.recorder.map(|status| RecorderStatus { any_keyboard: true, ..status });
        assert_eq!(always.headline(), "Ready: yes, F9 marks, on any keyboard of the machine");
    }

    #[test]
    fn without_a_display_the_console_will_do_but_not_for_wayland() {
        let at_console =
            SystemState { agents: Vec::new(), ..state(Some("on a text console F9 marks"), None) };
        assert_eq!(at_console.hindrance(), None);
        let wayland = SystemState { compositors: 1, ..at_console };
        assert!(wayland.hindrance().is_some_and(|why| why.contains("--hot-keys always")));
    }

    #[test]
    fn paused_input_or_a_refusal_is_a_hindrance() {
        let mut stopped = state(None, Some("F9 marks"));
        stopped.recorder = stopped.recorder.map(|status| RecorderStatus { keys: false, ..status });
        assert!(stopped.headline().contains("because input is not recorded"));
        stopped.recorder = Err(CallError::Refused("user 7 may not use this recorder".to_owned()));
        assert_eq!(stopped.headline(), "Ready: no, because user 7 may not use this recorder");
    }

    #[test]
    fn a_recorder_that_refuses_is_not_said_to_record_nothing() {
        let (daemon, start) = ("recorder", "sudo tipme record");
        for (error, words) in [
            (CallError::Refused("no".to_owned()), "by a recorder that you may not use yet"),
            (CallError::Nobody { daemon, start, path: "/run/x".into() }, "nothing"),
        ] {
            let state = SystemState { recorder: Err(error), ..state(None, None) };
            assert_eq!(state.lines()[0].1, words);
        }
    }

    #[test]
    fn an_agent_without_a_key_is_a_hindrance() {
        let headline = state(None, Some("no key marks (unavailable: Ctrl+Alt+Minus)")).headline();
        let why = "Ready: no, because the agent reports: no key marks (unavailable: Ctrl+Alt+Minus); \
                   choose another key: ";
        assert!(headline.starts_with(why), "{headline}");
    }

    #[test]
    fn an_agent_that_waits_or_was_refused_has_one_remedy() {
        assert_eq!(state(None, Some("")).hindrance().as_deref(), Some(WAITS));
        let refused = "the desktop binds no shortcut: the desktop refused; bind F9 to this command";
        let headline = state(None, Some(&format!("no key marks: {refused}"))).headline();
        assert_eq!(headline, format!("Ready: no, because {refused}"));
    }

    #[test]
    fn no_popup_is_promised_without_an_x_display() {
        assert!(without_notifications("why", true).starts_with("popups instead; why"));
        assert_eq!(
            without_notifications("why", false),
            "none, so after a press run: tipme diagnose; why"
        );
    }
}
