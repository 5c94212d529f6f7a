// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes, each put in place with a length in milliseconds.

use super::parts::{Culprit, Job, Part, TrialSite};
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

/// From a job's start, which needs no word from the application, to the key.
const LEAD_MS: u32 = 60;
/// Processes that compute on the CPU of somebody who needs it.
const HOGS: &str = "8";
/// How long they compute at most.
const HOGS_MS: &str = "5000";
/// CPU time of whoever needs that CPU, too: the turns of the others add up to about 700 ms.
const STARVED_MS: u32 = 15;

pub fn mutex_asleep(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("mutex-asleep {millis}")))
}

pub fn mutex_starved(site: &TrialSite, _: u32) -> Result<Part> {
    let (hogs, pids) = start_hogs(site)?;
    let order = format!("mutex-starved {} {STARVED_MS}", site.cpu);
    Ok(Part { order, culprit: Culprit::Processes(pids), _jobs: vec![hogs] })
}

/// The job, and the processes that it has.
fn start_hogs(site: &TrialSite) -> Result<(Job, Vec<u32>)> {
    let command = site.command("number-cruncher", &["hogs", HOGS, HOGS_MS])?;
    let hogs = Job::start("number-cruncher", command, Some(site.cpu))?;
    let children = hogs.said.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>();
    let mut pids = children.with_context(|| format!("\"{}\" are not processes", hogs.said))?;
    pids.push(hogs.pid());
    Ok((hogs, pids))
}

pub fn write_lock(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("write-lock {millis}")))
}

pub fn condition(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("condition {millis}")))
}

pub fn pool(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("pool {millis}")))
}

pub fn semaphore(site: &TrialSite, millis: u32) -> Result<Part> {
    let file = site.path("semaphores");
    let job = site.job("index-builder", &["semaphore", &file, &millis.to_string()])?;
    Ok(Part::with(format!("semaphore {file}"), vec![job]))
}

pub fn file_lock(site: &TrialSite, millis: u32) -> Result<Part> {
    held_lock(site, millis, "file-lock", "flock")
}

pub fn record_lock(site: &TrialSite, millis: u32) -> Result<Part> {
    held_lock(site, millis, "record-lock", "record")
}

/// The job holds the lock from now on, so the application's wait is shorter by what passes before the key.
fn held_lock(site: &TrialSite, millis: u32, order: &str, kind: &str) -> Result<Part> {
    let file = site.file("mailbox")?;
    let job = site.job("mail-fetcher", &["lock-holder", &file, kind, &(millis + LEAD_MS).to_string()])?;
    Ok(Part::with(format!("{order} {file}"), vec![job]))
}

pub fn slow_helper(site: &TrialSite, millis: u32) -> Result<Part> {
    asked_helper(site, "spell-checker", &["compute", &millis.to_string()])
}

pub fn sleeping_helper(site: &TrialSite, millis: u32) -> Result<Part> {
    asked_helper(site, "clock-applet", &["sleep", &millis.to_string()])
}

fn asked_helper(site: &TrialSite, alias: &str, how: &[&str]) -> Result<Part> {
    let socket = site.path("helper");
    let job = site.job(alias, &[&["helper", &socket], how].concat())?;
    Ok(Part::with(format!("ask {socket}"), vec![job]))
}

/// The first helper waits for the second, which is to blame.
pub fn helper_chain(site: &TrialSite, millis: u32) -> Result<Part> {
    let (first, second) = (site.path("front"), site.path("behind"));
    let behind = site.job("thesaurus", &["helper", &second, "compute", &millis.to_string()])?;
    let front = site.job("proof-reader", &["helper", &first, "ask", &second])?;
    Ok(Part::with(format!("ask {first}"), vec![behind, front]))
}

/// The helper is ready before the others begin to compute.
pub fn helper_starved(site: &TrialSite, _: u32) -> Result<Part> {
    let socket = site.path("helper");
    let command = site.command("spell-checker", &["helper", &socket, "starve", &STARVED_MS.to_string()])?;
    let helper = Job::start("spell-checker", command, Some(site.cpu))?;
    let (hogs, pids) = start_hogs(site)?;
    Ok(Part { order: format!("ask {socket}"), culprit: Culprit::Processes(pids), _jobs: vec![hogs, helper] })
}

pub fn contained_helper(site: &TrialSite, millis: u32) -> Result<Part> {
    let socket = site.path("helper");
    let inner = site.command("boxed-helper", &["helper", &socket, "compute", &millis.to_string()])?;
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"]);
    command.arg(inner.get_program()).args(inner.get_args());
    let job = Job::start("the contained helper", command, None)?;
    let helper = only_child(job.pid())?;
    Ok(Part { order: format!("ask {socket}"), culprit: Culprit::Processes(vec![helper]), _jobs: vec![job] })
}

fn only_child(pid: u32) -> Result<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let children: Vec<&str> = text.split_whitespace().collect();
    let [child] = children[..] else { bail!("process {pid} has {} children", children.len()) };
    child.parse().with_context(|| format!("\"{child}\" is not a process"))
}

pub fn full_pipe(site: &TrialSite, millis: u32) -> Result<Part> {
    let pipe = site.pipe("log-pipe")?;
    let job = site.job("log-collector", &["pipe-reader", &pipe, &(millis + LEAD_MS).to_string()])?;
    Ok(Part::with(format!("fill-pipe {pipe}"), vec![job]))
}

pub fn empty_pipe(site: &TrialSite, millis: u32) -> Result<Part> {
    let pipe = site.pipe("thumbnail-pipe")?;
    let job = site.job("thumbnailer", &["pipe-writer", &pipe, &(millis + LEAD_MS).to_string()])?;
    Ok(Part::with(format!("read-pipe {pipe}"), vec![job]))
}

pub fn event_counter(site: &TrialSite, millis: u32) -> Result<Part> {
    let socket = site.path("counter");
    let job = site.job("frame-pacer", &["counter", &socket, &millis.to_string()])?;
    Ok(Part::with(format!("event-counter {socket}"), vec![job]))
}

/// The application and the service talk through a bus of their own, which is not to blame.
pub fn message_bus(site: &TrialSite, millis: u32) -> Result<Part> {
    let socket = site.path("bus");
    let mut command = Command::new("dbus-daemon");
    command.args(["--session", "--nofork", "--nopidfile", "--print-address=1", "--address"]);
    // It tells there, too, what it may not do and can do without.
    command.arg(format!("unix:path={socket}")).stderr(Stdio::null());
    let bus = Job::start_saying("unix:", "the message bus", command, None)?;
    let service = site.job("dictionary", &["bus-service", &socket, &millis.to_string()])?;
    Ok(Part::with(format!("bus-call {socket}"), vec![service, bus]))
}

pub fn loopback_service(site: &TrialSite, millis: u32) -> Result<Part> {
    let job = site.job("licence-server", &["service", &millis.to_string()])?;
    let address = format!("127.0.0.1:{}", job.said);
    let culprit = Culprit::Service(job.pid(), address.clone());
    Ok(Part { order: format!("request {address}"), culprit, _jobs: vec![job] })
}

pub fn child_wait(site: &TrialSite, millis: u32) -> Result<Part> {
    started_child(site, &format!("sleep {}", f64::from(millis) / 1e3))
}

/// The child is a hidden program; its words go into the order.
pub fn child_computes(site: &TrialSite, millis: u32) -> Result<Part> {
    let command = site.command("font-cache", &["compute", &millis.to_string()])?;
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    started_child(site, &words.join(" "))
}

fn started_child(site: &TrialSite, command: &str) -> Result<Part> {
    let note = site.folder.join("child");
    let order = format!("child {} {command}", note.display());
    Ok(Part { order, culprit: Culprit::Noted(note), _jobs: Vec::new() })
}

pub fn own_sleep(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("sleep {millis}")))
}

pub fn own_computation(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("compute {millis}")))
}

pub fn poll_timeout(_: &TrialSite, millis: u32) -> Result<Part> {
    Ok(Part::alone(format!("poll {millis}")))
}
