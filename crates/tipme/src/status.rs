// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme status`: the present state of everything between the key and the verdict; `tipme doctor`
//! prints the summary first.

mod agents_bus;
pub mod resuming;

use crate::arguments;
use crate::desktop_keys::{KeySource, KeyState, agent_words};
use crate::incidents::named::find;
use crate::incidents::when;
use crate::{diagnose, record, suggestion};
use anyhow::Result;
use resuming::{INPUT_KEY, resume, without_input};
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tipme_analysis::clean;
use tipme_command::output::layout;
use tipme_control::{
    CallError, Client, Focused, RecordedDetail, RecorderRequest, RecorderResponse, RecorderStatus,
};
use tipme_desktop::hotkeys::Bindings;
use tipme_desktop::presence::{self, RunningAgent};
use tipme_desktop::{DisplayTarget, clock, on_bus, portal, server};
use tipme_record::Nanos;
use tipme_recorder::StateDirs;
use tipme_report::{Layout, Tone};
use tipme_store::{IncidentFolder, id_at};

/// State of an agent without an answer of its desktop: a portal may take a minute at login.
const WAITS: &str = "the desktop has not answered the agent's request for a key; in a minute, run again: tipme status";

/// Free disk space that a mark may need, in bytes; with less, writing may fail.
const ROOM_MIN: u64 = 4 << 20;

/// Timeout of the recorder.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a press of the key finds its cause, and what it depends on, as `tipme status --json` prints it.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme status --json")]
pub struct StatusDocument {
    pub schema: u32,
    pub ready: bool,
    /// Why it is not ready, and the remedy; `null` where it is.
    pub because: Option<String>,
    /// `null` where no recorder answers.
    pub recorder: Option<RecorderStatus>,
    pub agents: Vec<AgentDocument>,
    /// The notification server on the bus of the agent, else on that of this shell, as it calls
    /// itself; `null` where there is none.
    pub notifications: Option<String>,
    /// The file of the newest incident of this user.
    pub last_incident: Option<String>,
}

/// What serves a display.
#[derive(Serialize, JsonSchema)]
pub struct AgentDocument {
    /// As in `:0` and `wayland-0`.
    pub display: String,
    /// `null` where no agent serves it.
    pub pid: Option<u32>,
    /// What its keys do, for people.
    pub keys: Option<String>,
    /// Why it cannot be known whether an agent serves it.
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
    /// Folder of incidents, and the free space of its disk in bytes, if known.
    room: Option<(PathBuf, u64)>,
}

/// Prints the state. Exit code 1 if a press would find no cause.
pub fn run(arguments: &arguments::StatusArguments) -> Result<ExitCode> {
    let state = SystemState::look(arguments.state_dir.as_deref());
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
    pub fn look(state_dir: Option<&Path>) -> SystemState {
        let dirs = StateDirs::choose(state_dir);
        let asked =
            Client::new(dirs.run_dir()).with_timeout(TIMEOUT).call(&RecorderRequest::Status);
        let recorder = asked.and_then(|answer| match answer {
            RecorderResponse::Status(status) => Ok(status),
            _ => Err(CallError::Refused(
                "the recorder gave an answer that does not fit; restart it".to_owned(),
            )),
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
            room: room(dirs.incidents().to_owned()),
        }
    }

    /// Returns the reasons why a press of the key would find no cause, with remedies; `None` if it
    /// would.
    pub fn hindrance(&self) -> Option<String> {
        let all = self
            .without_recording()
            .into_iter()
            .chain(self.without_key())
            .chain(self.without_room());
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| all.join("; besides, "))
    }

    /// Returns the reason why nothing, or no input, is recorded.
    fn without_recording(&self) -> Option<String> {
        match &self.recorder {
            Ok(status) if status.paused_since_ns.is_some() => {
                Some(format!("recording is {}", paused(status)))
            }
            Ok(status) if status.keys => None,
            Ok(status) => Some(format!("input is {}", without_input(status, INPUT_KEY))),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the reason why no key marks.
    fn without_key(&self) -> Option<String> {
        let status = self.recorder.as_ref().ok();
        let agents = || self.agents.iter().filter_map(|(_, agent)| agent.as_ref().ok()?.as_ref());
        if status.is_some_and(|status| status.any_keyboard)
            || agents().any(|agent| self.is_true(agent))
        {
            return None;
        }
        let of_desktop = self.key.as_ref().map(|(_, key)| key);
        match self.agents.first() {
            _ if matches!(of_desktop, Some(KeyState::Works(_))) => None,
            _ if of_desktop.is_some_and(|key| key.hindrance().is_some()) => of_desktop.and_then(KeyState::hindrance),
            _ if agents().any(|agent| agent.words.is_empty()) => Some(WAITS.to_owned()),
            _ if agents().next().is_some() => {
                let words: Vec<&str> = agents().map(|agent| agent.words.as_str()).collect();
                // An agent that the portal has refused names its remedy.
                if let Some(why) = words[0].strip_prefix("no key marks: ") {
                    return Some(why.to_owned());
                }
                Some(format!("the agent says: {}; choose another key: tipme setup --mark-key KEY", words.join("; ")))
            }
            Some((display, Err(error))) => {
                Some(format!("display {display} does not answer ({error}); start the session there, then: tipme agent &"))
            }
            Some((display, Ok(_))) => {
                Some(format!("no agent serves display {display}; start one there: tipme agent &"))
            }
            None if self.compositors > 0 => {
                Some("no agent has the desktop bind a key; start one there: tipme setup (or the recorder with --hot-keys always)".to_owned())
            }
            // A recorder reads the keys of text consoles itself.
            None if status.is_some_and(|status| status.hot_keys.is_none()) => {
                Some("no display runs; start the session, then: tipme agent &".to_owned())
            }
            None => None,
        }
    }

    /// Returns `true` if an agent serves a display.
    fn is_served(&self) -> bool {
        self.agents.iter().any(|(_, agent)| matches!(agent, Ok(Some(_))))
    }

    /// Returns the reason why no mark can be written.
    fn without_room(&self) -> Option<String> {
        let (folder, bytes) = self.room.as_ref().filter(|(_, bytes)| *bytes < ROOM_MIN)?;
        let folder = folder.display();
        Some(format!(
            "the disk of {folder} is full ({} KiB are free); free some space there",
            bytes / 1024
        ))
    }

    /// Returns `true` if the agent's claim about its mark key is right. Readable desktop settings
    /// take precedence; an agent started by a press has a key that tipme cannot look up.
    fn is_true(&self, agent: &RunningAgent) -> bool {
        match self.of_settings() {
            Some(key) => key.hindrance().is_none(),
            None => !agent.words.is_empty() && !agent.words.starts_with("no key marks"),
        }
    }

    /// Returns the state of the mark key in the desktop's settings, if they are readable.
    fn of_settings(&self) -> Option<&KeyState> {
        self.key
            .as_ref()
            .filter(|(source, _)| matches!(source, KeySource::Settings(_)))
            .map(|(_, key)| key)
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
                    "Ready: from the next login on, when {name} reads the binding of {key}; until then: tipme mark"
                )
            }
            (Some(why), _) => format!("Ready: no, because {why}"),
            (None, _) if !self.shows_answers() => {
                format!(
                    "Ready: yes, {}; no notification server runs, so read the answer by: tipme diagnose",
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
        let of_agent = |(display, agent): &DisplayAgent| {
            let agent = agent.as_ref().ok()?.as_ref()?;
            let words = self.of_settings().map_or_else(|| agent.words.clone(), KeyState::words);
            Some(format!("{words} on {display} (agent, process {})", agent.pid))
        };
        let mut all: Vec<String> = self.agents.iter().filter_map(of_agent).collect();
        if let (true, Some((source, KeyState::Works(key)))) = (all.is_empty(), &self.key) {
            all.push(format!(
                "{key} marks, by {}; the first press starts the agent",
                source.settings()
            ));
        }
        all.extend(self.recorder.as_ref().ok().and_then(|status| status.hot_keys.clone()));
        if all.is_empty() { "none marks".to_owned() } else { all.join("; ") }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match &self.recorder {
            Ok(status) => lines.extend(of_recorder(status)),
            Err(error) => lines.push(("recording", unheard(error).to_owned())),
        }
        lines.push(("keys", self.keys()));
        let unknown = self
            .agents
            .iter()
            .filter_map(|(display, agent)| Some((display, agent.as_ref().err()?)));
        lines.extend(
            unknown.map(|(display, why)| ("agent", format!("of {display} not known: {why}"))),
        );
        let shown = self
            .notifications
            .as_ref()
            .map(|daemon| {
                format!(
                    "{daemon}, on the bus of {}",
                    if self.is_served() { "the agent" } else { "this shell" }
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
        format!("{}: {what} More: tipme diagnose", when::local(&id))
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
        true => format!("a popup comes instead; {why}"),
        false => format!("no answer is shown, so after a press run: tipme diagnose; {why}"),
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

fn of_recorder(status: &RecorderStatus) -> Vec<(&'static str, String)> {
    let may: Vec<String> = status.allowed.iter().map(|uid| record::user_name(*uid)).collect();
    let displays =
        if status.displays.is_empty() { "none".to_owned() } else { status.displays.join(" ") };
    let input = match status.keys {
        true => "recorded: that a key was pressed, never which".to_owned(),
        false => without_input(status, INPUT_KEY),
    };
    let mut lines = vec![
        ("recording", recording(status)),
        ("held", held(status, age(status))),
        ("ended programs", ended(status)),
        ("lost", lost(status.lost)),
        ("displays", displays),
        ("input", input),
        ("may mark", [vec!["root".to_owned()], may].concat().join(", ")),
        ("you may", format!("since {}", status.because)),
    ];
    lines.extend(status.details.iter().map(|detail| ("more detail", more_detail(detail))));
    let day = if status.day {
        "counted by application and hour: tipme day"
    } else {
        "not counted; tipme setup --day has it counted"
    };
    lines.push(("your day", day.to_owned()));
    lines.extend(suggestion::words(status).map(|words| ("by itself", words)));
    lines.extend(status.tolerances.iter().map(|told| ("you endure", suggestion::tolerance(told))));
    lines.extend(status.focus.iter().map(|focused| ("focus", focus(focused))));
    lines.extend(status.missing.iter().map(|missing| ("not recorded", missing.clone())));
    lines
}

/// Describes a recorder that does not answer this user; the headline has the reason.
fn unheard(error: &CallError) -> &'static str {
    match error {
        CallError::Nobody { .. } => "nothing",
        CallError::Refused(_) => "by a recorder that you may not use yet",
        _ => "not known",
    }
}

fn recording(status: &RecorderStatus) -> String {
    match status.paused_since_ns {
        Some(_) => paused(status),
        None => format!("since {} (process {})", wall(status.armed_ns), status.pid),
    }
}

/// Describes a paused recording: time, user, and the remedy.
fn paused(status: &RecorderStatus) -> String {
    let since = wall(status.paused_since_ns.unwrap_or_default());
    let by = status.paused_by_uid.unwrap_or_default();
    let how = resume(by, geteuid().as_raw(), "start it again by the agent's key, Ctrl+Alt+Plus");
    format!("paused since {since} by {}; {how}", record::user_name(by))
}

/// Describes additional detail in the recording: start, end, and the requesting user.
fn more_detail(detail: &RecordedDetail) -> String {
    let name = clean(&detail.name);
    let until = match (detail.until_ns, detail.by_uid) {
        (Some(until), Some(uid)) => {
            format!(" until {}, asked for by {}", wall(until), record::user_name(uid))
        }
        _ => ", as the recorder was started (--detail)".to_owned(),
    };
    format!("{name} since {}{until}", wall(detail.since_ns))
}

/// Describes the client with the keyboard focus on a compositor.
fn focus(focused: &Focused) -> String {
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let client = focused.client.map_or("nobody of yours".to_owned(), |pid| {
        format!("{} (process {pid})", name(pid).trim_end())
    });
    let server = name(focused.server);
    clean(&format!("{client}, under {} (process {})", server.trim_end(), focused.server))
}

fn lost(records: u64) -> String {
    match records {
        0 => "nothing".to_owned(),
        1 => "1 record since then".to_owned(),
        _ => format!("{records} records since then"),
    }
}

/// Describes the contents of a mark, and the reason if it holds less than requested; `age` is the
/// run time of the recorder.
fn held(status: &RecorderStatus, age: Duration) -> String {
    if status.paused_since_ns.is_some() {
        return "nothing can be marked until recording goes on; what it then holds is new"
            .to_owned();
    }
    let why = if status.held_s >= status.window_s {
        ""
    } else if status.held_s + 1.0 >= age.as_secs_f64() {
        ", since recording began then"
    } else {
        ", since the memory holds no more (tipme record --memory gives it more)"
    };
    let held = status.held_s.min(status.window_s);
    format!("the last {held:.0} s{why}; a mark keeps {:.0} s at most", status.window_s)
}

/// Describes the period for which ended programs are known.
fn ended(status: &RecorderStatus) -> String {
    let why = match status.ended_bound.as_str() {
        "memory" => ", since the memory holds no more (tipme record --memory gives it more)",
        "start" => ", since recording began then",
        _ => ", which is as long as they are kept",
    };
    let (minutes, seconds) = (status.ended_s / 60.0, status.ended_s);
    let span =
        if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{minutes:.0} min") };
    format!("known for the last {span}{why}")
}

/// Returns the time since recording began.
fn age(status: &RecorderStatus) -> Duration {
    Duration::from_nanos(clock::now().since(Nanos(status.armed_ns)).0)
}

/// Formats a CLOCK_MONOTONIC time in local time.
fn wall(at_ns: u64) -> String {
    let (now, at) = (clock::now(), Nanos(at_ns));
    let wall = Duration::from_nanos(at.since(now).0)
        + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    when::local(
        &id_at(wall.saturating_sub(Duration::from_nanos(now.since(at).0)).as_nanos() as u64),
    )
}

/// Returns the free space of a folder's disk in bytes.
fn room(folder: PathBuf) -> Option<(PathBuf, u64)> {
    let disk = rustix::fs::statvfs(&folder).ok()?;
    Some((folder, disk.f_bavail.saturating_mul(disk.f_frsize)))
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
            room: None,
        }
    }

    #[test]
    fn a_short_window_says_why() {
        let paused =
            RecorderStatus { held_s: 40.0, paused_since_ns: Some(1), ..RecorderStatus::default() };
        assert!(held(&paused, Duration::from_secs(90)).starts_with("nothing can be marked"));
        let of = |held_s, age| {
            let status = RecorderStatus { held_s, window_s: 40.0, ..RecorderStatus::default() };
            held(&status, Duration::from_secs(age))
        };
        assert_eq!(of(70.0, 90), "the last 40 s; a mark keeps 40 s at most");
        assert_eq!(
            of(9.5, 10),
            "the last 10 s, since recording began then; a mark keeps 40 s at most"
        );
        let full = "the last 12 s, since the memory holds no more (tipme record --memory gives it more); a mark keeps 40 s at most";
        assert_eq!(of(12.0, 90), full);
    }

    #[test]
    fn it_is_said_which_bound_ended_programs_reach() {
        let of = |ended_s, bound: &str| {
            ended(&RecorderStatus {
                ended_s,
                ended_bound: bound.to_owned(),
                ..RecorderStatus::default()
            })
        };
        assert_eq!(
            of(600.0, "time"),
            "known for the last 10 min, which is as long as they are kept"
        );
        assert_eq!(of(7.2, "start"), "known for the last 7 s, since recording began then");
        assert!(
            of(181.0, "memory")
                .starts_with("known for the last 3 min, since the memory holds no more (")
        );
    }

    #[test]
    fn more_detail_says_since_when_until_when_and_for_whom() {
        let now = clock::now().0;
        let detail = |until_ns, by_uid| {
            more_detail(&RecordedDetail {
                name: "locks".to_owned(),
                since_ns: now,
                until_ns,
                by_uid,
            })
        };
        let (began, ends) = (wall(now), wall(now + 60_000_000_000));
        assert!(began < ends, "{began} {ends}");
        assert_eq!(
            detail(Some(now + 60_000_000_000), Some(4242)),
            format!("locks since {began} until {ends}, asked for by 4242")
        );
        assert_eq!(
            detail(None, None),
            format!("locks since {began}, as the recorder was started (--detail)")
        );
    }

    #[test]
    fn it_is_ready_where_a_key_marks() {
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
    fn what_is_stopped_or_refused_is_a_hindrance() {
        let mut stopped = state(None, Some("F9 marks"));
        stopped.recorder = stopped.recorder.map(|status| RecorderStatus { keys: false, ..status });
        assert!(stopped.headline().contains("because input is not recorded"));
        stopped.recorder = Err(CallError::Refused("user 7 may not use this recorder".to_owned()));
        assert_eq!(stopped.headline(), "Ready: no, because user 7 may not use this recorder");
    }

    #[test]
    fn a_recorder_that_refuses_is_not_said_to_record_nothing() {
        let of =
            |error| SystemState { recorder: Err(error), ..state(None, None) }.lines()[0].1.clone();
        assert_eq!(
            of(CallError::Refused("no".to_owned())),
            "by a recorder that you may not use yet"
        );
        let nobody = CallError::Nobody {
            daemon: "recorder",
            start: "sudo tipme record",
            path: "/run/x".into(),
        };
        assert_eq!(of(nobody), "nothing");
    }

    #[test]
    fn an_agent_without_a_key_is_a_hindrance() {
        let headline = state(None, Some("no key marks, without Ctrl+Alt+Minus")).headline();
        let why = "Ready: no, because the agent says: no key marks, without Ctrl+Alt+Minus; choose another key: ";
        assert!(headline.starts_with(why), "{headline}");
    }

    #[test]
    fn an_agent_without_an_answer_or_refused_by_the_portal_has_one_remedy() {
        assert_eq!(state(None, Some("")).hindrance().as_deref(), Some(WAITS));
        let refused = "the desktop binds no shortcut: the desktop refused; bind F9 to this command: a, and press it";
        let told = state(None, Some(&format!("no key marks: {refused}"))).headline();
        assert_eq!(told, format!("Ready: no, because {refused}"));
    }

    #[test]
    fn no_popup_is_promised_without_an_x_display() {
        assert!(without_notifications("why", true).starts_with("a popup comes instead; why"));
        assert_eq!(
            without_notifications("why", false),
            "no answer is shown, so after a press run: tipme diagnose; why"
        );
    }

    #[test]
    fn a_full_disk_is_a_hindrance() {
        let mut full = state(None, Some("F9 marks"));
        full.room = Some(("/d".into(), 5000));
        assert!(
            full.headline()
                .contains("because the disk of /d is full (4 KiB are free); free some space there")
        );
        full.room = Some(("/d".into(), ROOM_MIN));
        assert_eq!(full.hindrance(), None);
    }
}
