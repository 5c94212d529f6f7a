// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes, each put in place with a length in milliseconds.

use super::parts::{PreparedCause, WaitCulprit};
use crate::selftest::site::{START_TIMEOUT, Site};
use crate::worker::{self, Ready};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// From a job's start, which needs no word from the application, to the key.
const LEAD_MS: u32 = 60;
/// Processes that compute on the CPU of somebody who needs it.
const HOGS: &str = "8";
/// How long they compute at most.
const HOGS_MS: &str = "5000";
/// CPU time of whoever needs that CPU, too: the turns of the others add up to about 700 ms.
const STARVED_MS: u32 = 15;

pub(crate) fn mutex_asleep(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("mutex-asleep {millis}")))
}

pub(crate) fn mutex_starved(site: &Site, _: u32) -> Result<PreparedCause> {
    let (hogs, pids) = start_hogs(site)?;
    let order = format!("mutex-starved {} {STARVED_MS}", site.cpu);
    Ok(PreparedCause { order, culprit: WaitCulprit::Processes(pids), _jobs: vec![hogs] })
}

/// The job, and the processes that it has.
fn start_hogs(site: &Site) -> Result<(Ready, Vec<u32>)> {
    let hogs = site.start("number-cruncher", &["hogs", HOGS, HOGS_MS], Some(site.cpu))?;
    let children = hogs.said.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>();
    let mut pids = children.with_context(|| format!("\"{}\" are not processes", hogs.said))?;
    pids.push(hogs.pid());
    Ok((hogs, pids))
}

pub(crate) fn write_lock(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("write-lock {millis}")))
}

pub(crate) fn condition(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("condition {millis}")))
}

pub(crate) fn pool(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("pool {millis}")))
}

pub(crate) fn semaphore(site: &Site, millis: u32) -> Result<PreparedCause> {
    let file = site.word("semaphores");
    let job = site.start("index-builder", &["semaphore", &file, &millis.to_string()], None)?;
    Ok(PreparedCause::with(format!("semaphore {file}"), vec![job]))
}

pub(crate) fn file_lock(site: &Site, millis: u32) -> Result<PreparedCause> {
    held_lock(site, millis, "file-lock", "flock")
}

pub(crate) fn record_lock(site: &Site, millis: u32) -> Result<PreparedCause> {
    held_lock(site, millis, "record-lock", "record")
}

/// The job holds the lock from now on, so the application's wait is shorter by what passes before the key.
fn held_lock(site: &Site, millis: u32, order: &str, kind: &str) -> Result<PreparedCause> {
    let file = site.file("mailbox")?;
    let job = site.start("mail-fetcher", &["lock-holder", &file, kind, &(millis + LEAD_MS).to_string()], None)?;
    Ok(PreparedCause::with(format!("{order} {file}"), vec![job]))
}

pub(crate) fn slow_helper(site: &Site, millis: u32) -> Result<PreparedCause> {
    asked_helper(site, "spell-checker", &["compute", &millis.to_string()])
}

pub(crate) fn sleeping_helper(site: &Site, millis: u32) -> Result<PreparedCause> {
    asked_helper(site, "clock-applet", &["sleep", &millis.to_string()])
}

fn asked_helper(site: &Site, alias: &str, how: &[&str]) -> Result<PreparedCause> {
    let socket = site.word("helper");
    let job = site.start(alias, &[&["helper", &socket], how].concat(), None)?;
    Ok(PreparedCause::with(format!("ask {socket}"), vec![job]))
}

/// The first helper waits for the second, which is to blame.
pub(crate) fn helper_chain(site: &Site, millis: u32) -> Result<PreparedCause> {
    let (first, second) = (site.word("front"), site.word("behind"));
    let behind = site.start("thesaurus", &["helper", &second, "compute", &millis.to_string()], None)?;
    let front = site.start("proof-reader", &["helper", &first, "ask", &second], None)?;
    Ok(PreparedCause::with(format!("ask {first}"), vec![behind, front]))
}

/// The helper is ready before the others begin to compute.
pub(crate) fn helper_starved(site: &Site, _: u32) -> Result<PreparedCause> {
    let socket = site.word("helper");
    let words = ["helper", &socket, "starve", &STARVED_MS.to_string()];
    let helper = site.start("spell-checker", &words, Some(site.cpu))?;
    let (hogs, pids) = start_hogs(site)?;
    Ok(PreparedCause {
        order: format!("ask {socket}"),
        culprit: WaitCulprit::Processes(pids),
        _jobs: vec![hogs, helper],
    })
}

pub(crate) fn contained_helper(site: &Site, millis: u32) -> Result<PreparedCause> {
    let socket = site.word("helper");
    let inner = site.command("boxed-helper", &["helper", &socket, "compute", &millis.to_string()])?;
    let contain = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"].map(OsString::from);
    let command = worker::behind(&contain, &inner)?;
    let job = worker::start("the contained helper", command, None, START_TIMEOUT)?;
    let helper = only_child(job.pid())?;
    Ok(PreparedCause {
        order: format!("ask {socket}"),
        culprit: WaitCulprit::Processes(vec![helper]),
        _jobs: vec![job],
    })
}

fn only_child(pid: u32) -> Result<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let children: Vec<&str> = text.split_whitespace().collect();
    let [child] = children[..] else { bail!("process {pid} has {} children", children.len()) };
    child.parse().with_context(|| format!("\"{child}\" is not a process"))
}

pub(crate) fn full_pipe(site: &Site, millis: u32) -> Result<PreparedCause> {
    let pipe = site.pipe("log-pipe")?;
    let job = site.start("log-collector", &["pipe-reader", &pipe, &(millis + LEAD_MS).to_string()], None)?;
    Ok(PreparedCause::with(format!("fill-pipe {pipe}"), vec![job]))
}

pub(crate) fn empty_pipe(site: &Site, millis: u32) -> Result<PreparedCause> {
    let pipe = site.pipe("thumbnail-pipe")?;
    let job = site.start("thumbnailer", &["pipe-writer", &pipe, &(millis + LEAD_MS).to_string()], None)?;
    Ok(PreparedCause::with(format!("read-pipe {pipe}"), vec![job]))
}

pub(crate) fn event_counter(site: &Site, millis: u32) -> Result<PreparedCause> {
    let socket = site.word("counter");
    let job = site.start("frame-pacer", &["counter", &socket, &millis.to_string()], None)?;
    Ok(PreparedCause::with(format!("event-counter {socket}"), vec![job]))
}

/// The application and the service talk through a bus of their own, which is not to blame.
pub(crate) fn message_bus(site: &Site, millis: u32) -> Result<PreparedCause> {
    let socket = site.word("bus");
    let mut command = Command::new("dbus-daemon");
    command.args(["--session", "--nofork", "--nopidfile", "--print-address=1", "--address"]);
    // It tells on its error output, too, what it may not do and can do without.
    command.arg(format!("unix:path={socket}")).stdin(Stdio::null()).stderr(Stdio::null());
    let bus = worker::start_saying("unix:", "the message bus", command, None, START_TIMEOUT)?;
    let service = site.start("dictionary", &["bus-service", &socket, &millis.to_string()], None)?;
    Ok(PreparedCause::with(format!("bus-call {socket}"), vec![service, bus]))
}

pub(crate) fn loopback_service(site: &Site, millis: u32) -> Result<PreparedCause> {
    let job = site.start("licence-server", &["service", &millis.to_string()], None)?;
    let address = format!("127.0.0.1:{}", job.said);
    let culprit = WaitCulprit::Service(job.pid(), address.clone());
    Ok(PreparedCause { order: format!("request {address}"), culprit, _jobs: vec![job] })
}

pub(crate) fn child_wait(site: &Site, millis: u32) -> Result<PreparedCause> {
    started_child(site, &format!("sleep {}", f64::from(millis) / 1e3))
}

/// The child is a worker program; its words go into the order.
pub(crate) fn child_computes(site: &Site, millis: u32) -> Result<PreparedCause> {
    let command = site.command("font-cache", &["compute", &millis.to_string()])?;
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    started_child(site, &words.join(" "))
}

fn started_child(site: &Site, command: &str) -> Result<PreparedCause> {
    let note = site.folder.join("child");
    let order = format!("child {} {command}", note.display());
    Ok(PreparedCause { order, culprit: WaitCulprit::Noted(note), _jobs: Vec::new() })
}

pub(crate) fn own_sleep(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("sleep {millis}")))
}

pub(crate) fn own_computation(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("compute {millis}")))
}

pub(crate) fn poll_timeout(_: &Site, millis: u32) -> Result<PreparedCause> {
    Ok(PreparedCause::alone(format!("poll {millis}")))
}
