// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults in which the program waits for something: a lock, a service, a server, a child, a stop, a
//! grab.

use super::scenario::{ECHO, InjectedFault, START_TIMEOUT, Scenario, Site, shell};
use crate::process::ProcessGroup;
use crate::worker;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Duration of an operation during a fault, in seconds.
const DELAY: &str = "0.8\n";
/// File with the current duration of the operation, in seconds.
const DIAL: &str = "delay";
const NO_DELAY: &str = "0\n";

/// Seconds that the job holds the lock.
const HELD_S: &str = "1.5";

/// The program locks a file for each key, and `flock` holds that lock while it sleeps.
pub(super) fn lock(site: &Site) -> Result<Scenario> {
    let file = site.write("lock", "")?;
    let each = format!("flock 9; flock -u 9\n{ECHO}");
    let script = Scenario::on_key("notes", r#"exec 9<"$1""#, &each, &[&file]);
    let site = site.clone();
    Ok(script.typing("notes are kept under a lock and nothing else is slow\n").injecting(
        move |_| {
            let flock = ["flock".into(), file.clone().into_os_string()];
            let job = site.script(
                "holder",
                &flock,
                r#"echo ready; exec sleep "$1""#,
                &[HELD_S.as_ref()],
            )?;
            Ok(InjectedFault::job(&format!("flock {} sleep {HELD_S}", file.display()), job))
        },
    ))
}

/// Script that calls a method of a service, which the bus at `$1` has to start.
const CALL: &str = r#"
    DBUS_SESSION_BUS_ADDRESS=unix:path=$1 dbus-send --print-reply --dest=io.tipme.Dictionary \
        / io.tipme.Dictionary.LookUp >&- 2>&-"#;

/// A private message bus starts a service, which fails after a time.
pub(super) fn bus(site: &Site) -> Result<Scenario> {
    let (delay, socket) = (site.write(DIAL, NO_DELAY)?, site.folder.join("bus"));
    let service =
        site.write("dictionary", format!("#!/bin/sh\nsleep $(cat {})\nexit 1\n", delay.display()))?;
    std::fs::set_permissions(&service, PermissionsExt::from_mode(0o755))
        .context("cannot make the service")?;
    let services = site.folder.join("dbus-1/services");
    std::fs::create_dir_all(&services).context("cannot make a folder for services")?;
    let entry = format!("[D-BUS Service]\nName=io.tipme.Dictionary\nExec={}\n", service.display());
    std::fs::write(services.join("io.tipme.Dictionary.service"), entry)
        .context("cannot write the service file")?;
    let mut command = Command::new("dbus-daemon");
    command.args(["--session", "--nofork", "--nopidfile", "--print-address=1", "--address"]);
    command.arg(format!("unix:path={}", socket.display())).env("XDG_DATA_HOME", &site.folder);
    // The bus also reports harmless missing permissions on its error output.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let bus = worker::start_saying("unix:", "the message bus", command, None, START_TIMEOUT)?;
    let script = Scenario::on_key("editor", "", &format!("{CALL}\n{ECHO}"), &[&socket]);
    let site = site.clone();
    Ok(script.injecting(move |_| {
        site.write(DIAL, DELAY)?;
        Ok(InjectedFault::new("dictionary: starts for 0.8 s")
            .named("dictionary")
            .by_children_of(bus.pid()))
    }))
}

/// Server address from the range reserved for documentation.
const ADDRESS: &str = "192.0.2.2";
/// Script that assigns that address to a new network name space, which drops packets for it
/// otherwise.
const JOIN: &str = r#"
    ip link set lo up
    ip address add 192.0.2.1/32 dev lo
    ip address add 192.0.2.2/32 dev lo
    ip route add 192.0.2.0/24 dev lo src 192.0.2.1
    exec "$0" "$@""#;
/// Script that removes the address for a time: a client that connects meanwhile retries after a
/// second.
const OUTAGE: &str = r#"
    ip address del 192.0.2.2/32 dev lo
    echo ready
    sleep 0.9
    ip address add 192.0.2.2/32 dev lo"#;

/// The network loses the packets that the program sends to a server for each key.
pub(super) fn network(site: &Site) -> Result<Scenario> {
    let join = ["unshare", "--net", "sh", "-euc", JOIN].map(OsString::from);
    let server = site.worker("licence-server", &join, &["server".into()])?;
    let enter = ["nsenter", "--target", &server.pid().to_string(), "--net", "--"]
        .map(OsString::from)
        .to_vec();
    let address = format!("{ADDRESS}/{}", server.said);
    let each = format!("exec 9<>/dev/tcp/{address}\n{ECHO}");
    let (script, site) =
        (Scenario::on_key("editor", "", &each, &[]).behind(enter.clone()), site.clone());
    let name = address.replace('/', ":");
    Ok(script.injecting(move |_| {
        // The name space lives as long as the server.
        let outage = site.script("router", &enter, OUTAGE, &[])?;
        let what = format!("{name} cannot be reached for 0.9 s");
        Ok(InjectedFault::new(&what).named(&name).by(&[server.pid()]).beside(outage))
    }))
}

/// The program runs a command for each key, which takes the seconds in the file `$1`.
pub(super) fn child(site: &Site) -> Result<Scenario> {
    let delay = site.write(DIAL, NO_DELAY)?;
    let script = Scenario::on_key("shell", "", &format!("sleep \"$(<\"$1\")\"\n{ECHO}"), &[&delay]);
    let site = site.clone();
    Ok(script.injecting(move |_| {
        site.write(DIAL, DELAY)?;
        Ok(InjectedFault::new("sleep 0.8").named("sleep"))
    }))
}

/// Script that stops the process `$1` for `$2` seconds, and continues it in any case.
const STOP: &str = r#"trap 'kill -CONT "$1"' EXIT TERM; kill -STOP "$1"; echo ready; sleep "$2""#;

/// Starts a job of this name that stops a process for `seconds`.
pub fn stop_for(site: &Site, name: &str, pid: u32, seconds: &str) -> Result<ProcessGroup> {
    site.script(name, &[], STOP, &[pid.to_string().as_ref(), seconds.as_ref()])
}

/// A job stops the terminal.
pub(super) fn stopped(site: &Site) -> Result<Scenario> {
    let site = site.clone();
    Ok(shell().injecting(move |terminal| {
        let job = stop_for(&site, "power-saver", terminal, "1.2")?;
        Ok(InjectedFault::job(&format!("power-saver: stops process {terminal} for 1.2 s"), job))
    }))
}

/// Another client grabs the X server.
pub(super) fn grab(site: &Site) -> Result<Scenario> {
    let site = site.clone();
    Ok(shell().injecting(move |_| {
        let target = site.x11.as_ref().context("the fault needs an X display")?;
        let authority = target.authority.clone().unwrap_or_default().into_os_string();
        let words = ["grab".into(), target.display.to_string().into(), authority, "1200".into()];
        let client = site.worker("screen-shooter", &[], &words)?;
        Ok(InjectedFault::job("screen-shooter: grabs the display for 1.2 s", client.process))
    }))
}
