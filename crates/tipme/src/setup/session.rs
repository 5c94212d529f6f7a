// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of the user's session: the agent, now and at each login, and a test press of the key.

use super::step::SetupStep;
use super::system;
use crate::arguments::Setup;
use crate::desktop_keys::{
    DesktopKeys, HEADER, KeyBindings, KeySource, KeyState, agent_words, by_hand, spelled,
    user_folder, write_file,
};
use crate::incidents::lookup::find;
use crate::record::user_name;
use crate::status::SystemState;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tipme_desktop::hotkeys::{Bindings, Chord, HotKeyAction};
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::presence::{self, RunningAgent};
use tipme_desktop::{DisplayTarget, on_bus, portal};
use tipme_recorder::StateDirs;
use tipme_store::IncidentFolder;

/// Autostart entry for all users, if installed.
const FOR_ALL: &str = "/etc/xdg/autostart/tipme-agent.desktop";
/// Timeout for the agent to start or end, and for a mark to be written.
const TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Remedy for a grabbed key that a window manager keeps from the agent.
const OTHER_KEY: &str = ". Without one, choose another key: tipme setup --mark-key KEY";

pub fn plan(arguments: &Setup) -> Result<Vec<SetupStep>> {
    if let Some(step) = other_user() {
        return Ok(vec![step]);
    }
    if !portal::is_wayland() {
        return Ok(vec![at_login(arguments)?, now(arguments)?]);
    }
    let source = KeySource::of_session();
    let state = source.state(&bindings(arguments), &words(arguments)?);
    let mut steps = vec![desktop_keys(arguments, source, &state)?];
    // An agent without a key would exit at once, with an error at each login.
    let keyless =
        matches!(state, KeyState::Missing(_)) && !matches!(source, KeySource::Settings(_));
    if keyless && running(None)?.is_none() {
        steps.push(SetupStep::note("the first press of that key starts the agent"));
    } else {
        steps.extend([at_login(arguments)?, now(arguments)?]);
    }
    Ok(steps)
}

pub fn undo(arguments: &Setup) -> Result<Vec<SetupStep>> {
    if let Some(step) = other_user() {
        return Ok(vec![step]);
    }
    let mut steps = Vec::new();
    if let Some(agent) = running(display().as_ref()).ok().flatten() {
        steps.push(SetupStep::to_do(format!("end the agent (process {})", agent.pid), move || {
            end(&agent)
        }));
    }
    steps.extend(not_at_login(autostart()?, arguments));
    // A user of several desktops has keys in each in which setup was run.
    let bound = DesktopKeys::ALL.into_iter().filter(|desktop| desktop.mark_key().is_some());
    steps.extend(bound.map(|desktop| {
        SetupStep::to_do(format!("remove tipme's keys from {}", desktop.name()), move || {
            desktop.unbind()
        })
    }));
    let by_hand = by_hand::has_marked();
    steps
        .extend(by_hand.then(|| SetupStep::to_do("forget the key bound by hand", by_hand::forget)));
    Ok(steps)
}

/// Plans the keys of a Wayland desktop: in its settings, through its portal, or by hand if tipme
/// can do neither.
fn desktop_keys(arguments: &Setup, source: KeySource, state: &KeyState) -> Result<SetupStep> {
    let (words, bindings) = (words(arguments)?, bindings(arguments));
    let desktop = match (source, state) {
        (KeySource::Settings(desktop), _) => desktop,
        (_, KeyState::OfAgent) => {
            let what = "the desktop binds the keys at the agent's request (portal GlobalShortcuts)";
            return Ok(SetupStep::already(what));
        }
        (_, KeyState::Works(_)) => {
            return Ok(SetupStep::already(format!("{} has the key", source.settings())));
        }
        _ => return Ok(SetupStep::by_hand(source.by_hand(&bindings, &words))),
    };
    let (keys, name) = (KeyBindings::new(&bindings, &words)?, desktop.name());
    if !desktop.has(&keys) {
        let what = format!("bind keys in the settings of {name}");
        return Ok(SetupStep::to_do(what, move || desktop.bind(&keys)));
    }
    Ok(match state {
        KeyState::Works(_) | KeyState::AtNextLogin(_) => {
            SetupStep::already(format!("{name} has the keys: {}", state.words()))
        }
        other => SetupStep::by_hand(other.hindrance().unwrap_or_default()),
    })
}

fn bindings(arguments: &Setup) -> Bindings {
    let mut bindings = Bindings::default();
    mark_key(arguments).into_iter().for_each(|key| bindings.set(HotKeyAction::Mark, key));
    bindings
}

/// Returns the mark key if it is not the default: the given one, else that in the desktop's
/// settings, else that of an earlier setup.
fn mark_key(arguments: &Setup) -> Option<Chord> {
    let desktop = DesktopKeys::of_session().filter(|_| portal::is_wayland());
    let bound = desktop.and_then(|desktop| spelled(&desktop.mark_key()?).parse().ok());
    let key = arguments.mark_key.clone().or(bound).or_else(key_at_login)?;
    let is_default = Bindings::default().0.contains(&(HotKeyAction::Mark, key.clone()));
    (!is_default).then_some(key)
}

/// Returns the mark key of the agent that starts at login.
fn key_at_login() -> Option<Chord> {
    let text = std::fs::read_to_string(autostart().ok()?).ok()?;
    text.split_once(r#""--mark-key" ""#)?.1.split('"').next()?.parse().ok()
}

/// Returns the agent of this session: that of the X11 display, or on Wayland that on the bus.
fn running(target: Option<&DisplayTarget>) -> Result<Option<RunningAgent>> {
    if portal::is_wayland() {
        return Ok(on_bus::find()?);
    }
    Ok(target.map(presence::find).transpose()?.flatten())
}

/// Removes the autostart of the agent. Hides the entry for all users from this user.
fn not_at_login(file: PathBuf, arguments: &Setup) -> Option<SetupStep> {
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let what = format!("do not start the agent at login: {}", file.display());
    if Path::new(FOR_ALL).exists() && arguments.state_dir.is_none() {
        return Some(if text == hidden() {
            SetupStep::already(what)
        } else {
            SetupStep::to_do(what, move || write_file(&file, &hidden()))
        });
    }
    text.starts_with(HEADER)
        .then(|| SetupStep::to_do(what, move || Ok(std::fs::remove_file(&file)?)))
}

/// Returns the entry that overrides the one for all users and hides it.
fn hidden() -> String {
    format!("{HEADER}\n[Desktop Entry]\nType=Application\nName=tipme session agent\nHidden=true\n")
}

/// Root must not act in the session of another user.
fn other_user() -> Option<SetupStep> {
    let user = system::desktop_user();
    let what = format!("also run as {}, in the session: tipme setup", user_name(user));
    (user != geteuid().as_raw()).then(|| SetupStep::by_hand(what))
}

fn at_login(arguments: &Setup) -> Result<SetupStep> {
    let (file, command) = (autostart()?, words(arguments)?);
    let text = format!(
        "{HEADER}\n[Desktop Entry]\nType=Application\nName=tipme session agent\n\
         Comment=Hot keys that mark a hitch for diagnosis\nExec={}\nNoDisplay=true\n",
        command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    );
    let usual = arguments.mark_key.is_none() && arguments.state_dir.is_none();
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    if known == text {
        return Ok(SetupStep::already(format!("the agent starts at login: {}", file.display())));
    }
    if usual && Path::new(FOR_ALL).exists() && !file.exists() {
        return Ok(SetupStep::already(format!("the agent starts at login: {FOR_ALL}")));
    }
    if usual && Path::new(FOR_ALL).exists() && known == hidden() {
        let what = format!("start the agent at login: {FOR_ALL}");
        return Ok(SetupStep::to_do(what, move || Ok(std::fs::remove_file(&file)?)));
    }
    let what = format!("start the agent at login: {}", file.display());
    Ok(SetupStep::to_do(what, move || write_file(&file, &text)))
}

/// Quotes a word for desktop entries, with each backslash of the quoting doubled.
fn quoted(word: &str) -> String {
    let mut quoted = String::new();
    for letter in word.chars() {
        match letter {
            '"' | '`' | '$' => quoted.extend(["\\\\", &letter.to_string()]),
            '\\' => quoted.push_str("\\\\\\\\"),
            '%' => quoted.push_str("%%"),
            letter => quoted.push(letter),
        }
    }
    format!("\"{quoted}\"")
}

fn now(arguments: &Setup) -> Result<SetupStep> {
    let (target, words) = (display(), words(arguments)?);
    let place = match &target {
        _ if portal::is_wayland() => "this session".to_owned(),
        Some(target) => format!("display :{}", target.display),
        None => {
            return Ok(SetupStep::by_hand("DISPLAY is not set; run in the session: tipme setup"));
        }
    };
    let Some(agent) = running(target.as_ref())? else {
        return Ok(SetupStep::to_do(format!("start the agent of {place}"), move || {
            has_key(&words).and_then(|()| start(&words, target.as_ref()))
        }));
    };
    let what = format!("the agent serves {place}: {} (process {})", agent.words, agent.pid);
    Ok(match &arguments.mark_key {
        Some(key) if !portal::is_wayland() && !agent.words.starts_with(&format!("{key} marks")) => {
            let what = format!("restart the agent of {place}, with another key");
            SetupStep::to_do(what, move || {
                end(&agent).and_then(|()| start(&words, target.as_ref()))
            })
        }
        _ => SetupStep::already(what),
    })
}

/// Returns the agent's command line.
fn words(arguments: &Setup) -> Result<Vec<String>> {
    agent_words(arguments.state_dir.as_deref(), mark_key(arguments).as_ref())
}

/// Fails if the settings of the desktop have no key: the agent would end at once, with the remedy
/// of the step that has just failed.
fn has_key(words: &[String]) -> Result<()> {
    if portal::is_wayland()
        && let source @ KeySource::Settings(_) = KeySource::of_session()
        && matches!(source.state(&Bindings::default(), words), KeyState::Missing(_))
    {
        bail!("it needs the key")
    }
    Ok(())
}

fn start(words: &[String], target: Option<&DisplayTarget>) -> Result<()> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut agent = command.spawn().context("cannot start the agent")?;
    let there = wait(|| {
        let ended = agent.try_wait().ok().flatten().is_some();
        ended || running(target).ok().flatten().is_some_and(|agent| !agent.words.is_empty())
    });
    match agent.try_wait()? {
        None if there => Ok(()),
        ended => bail!("{}", absent(ended.is_some(), words)),
    }
}

/// Explains why there is no agent, with the one remedy.
fn absent(has_ended: bool, words: &[String]) -> String {
    let source = portal::is_wayland().then(KeySource::of_session);
    match source {
        Some(source @ KeySource::Portal) => {
            let by_hand = source.by_hand(&Bindings::default(), words);
            if has_ended {
                format!("the desktop's portal did not bind a key; {by_hand}")
            } else {
                "the agent is still waiting for the portal of the desktop".to_owned()
            }
        }
        _ if has_ended => {
            format!("the agent ended at once; for the reason, run: {}", words.join(" "))
        }
        _ => format!("the agent has not answered within {} s; run this again", TIMEOUT.as_secs()),
    }
}

/// Ends an agent of this program, and waits until it is gone.
fn end(agent: &RunningAgent) -> Result<()> {
    let proc = PathBuf::from(format!("/proc/{}", agent.pid));
    let pid = Pid::from_raw(agent.pid as i32).filter(|_| is_agent(&proc));
    let pid = pid.with_context(|| {
        format!("process {} is not a tipme agent of yours; end it yourself", agent.pid)
    })?;
    kill_process(pid, Signal::TERM)?;
    let has_ended = wait(|| {
        std::fs::read_to_string(proc.join("stat")).map_or(true, |stat| stat.contains(") Z "))
    });
    ensure!(has_ended, "process {} does not end", agent.pid);
    Ok(())
}

/// Returns `true` if this is an agent of this user: any client of the display may claim to be one.
fn is_agent(proc: &Path) -> bool {
    let own = std::fs::metadata(proc).is_ok_and(|meta| meta.uid() == geteuid().as_raw());
    let line = std::fs::read(proc.join("cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    let name = words.next().and_then(|word| word.rsplit(|byte| *byte == b'/').next());
    own && name == Some(b"tipme") && words.next() == Some(b"agent")
}

/// Presses the mark key as the user would, and reports the result. Returns `false` if nothing
/// happened.
pub fn test_press(arguments: &Setup, state: &SystemState) -> bool {
    let incident = match press(arguments) {
        Ok(incident) => incident,
        Err(error) => {
            println!("No test press: {error:#}");
            return false;
        }
    };
    let shown = if state.shows_answers() { "the screen shows" } else { "tipme diagnose shows" };
    println!("A test press marked {}; {shown} the verdict.", incident.display());
    match state.key() {
        Some((_, KeyState::Works(key))) => println!("Now press the key yourself: {key}."),
        Some((_, KeyState::OfAgent)) => println!("Now press the key yourself."),
        _ => {}
    }
    true
}

fn press(arguments: &Setup) -> Result<PathBuf> {
    let target = display();
    let agent = running(target.as_ref())?.context("no agent serves this session")?;
    let folder = IncidentFolder::at(StateDirs::choose(arguments.state_dir.as_deref()).incidents());
    let before = find(&folder, None).ok();
    let key = agent.words.split(' ').next().unwrap_or_default();
    match target.filter(|_| !portal::is_wayland()) {
        Some(target) => {
            let chord: Chord =
                key.parse().with_context(|| format!("the agent reports: {}", agent.words))?;
            Typist::open(&target, Pace::default())?.chord(&chord)?;
        }
        // Only the user can press a key of the desktop: this simulates its effect.
        None => drop(on_bus::press(HotKeyAction::Mark)?),
    }
    let mut newest = None;
    wait(|| {
        newest = find(&folder, None).ok();
        newest != before
    });
    newest.filter(|newest| Some(newest) != before.as_ref()).with_context(|| {
        let other = if portal::is_wayland() { "" } else { OTHER_KEY };
        format!(
            "{key} was pressed, but no incident was written within {} s; \
             see the notification{other}",
            TIMEOUT.as_secs()
        )
    })
}

fn display() -> Option<DisplayTarget> {
    DisplayTarget::parse(&std::env::var("DISPLAY").ok()?).ok()
}

fn autostart() -> Result<PathBuf> {
    Ok(user_folder("XDG_CONFIG_HOME", ".config")?.join("autostart/tipme-agent.desktop"))
}

/// Waits for a condition; returns `false` on a timeout.
fn wait(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_desktop_entries() {
        assert_eq!(quoted(r"/opt/a b/$x%\y"), r#""/opt/a b/\\$x%%\\\\y""#);
    }
}
