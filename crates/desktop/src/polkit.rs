// SPDX-License-Identifier: MIT OR Apache-2.0
//! Authorization by polkit for the action [`ACTION`], which by default is granted to the user in
//! front of this machine.
//!
//! Only the system bus is used, at the one address where root's programs find it: no environment
//! variable can name another. Only users logged in according to the login manager are checked: a
//! user can act under thousands of ids (those of a user name space), all of them from the session
//! in front.

use crate::logind::Logind;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use tipme_record::proc_text::StatLine;
use zbus::blocking::{Connection, connection::Builder};
use zbus::zvariant::Value;

/// Name of the action.
pub const ACTION: &str = "org.tipme.mark";
/// Maximum time for polkit to answer: less than the caller's own client waits.
const TIMEOUT: Duration = Duration::from_millis(1_500);

const BUS: &str = "/run/dbus/system_bus_socket";
const NAME: &str = "org.freedesktop.PolicyKit1";
const OBJECT: &str = "/org/freedesktop/PolicyKit1/Authority";
const INTERFACE: &str = "org.freedesktop.PolicyKit1.Authority";
/// No password dialog.
const NO_FLAGS: u32 = 0;

/// Answer of polkit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Authorization {
    Yes,
    No(String),
    /// There is no polkit, or it does not answer.
    Nothing(String),
}

type Subject = (&'static str, HashMap<&'static str, Value<'static>>);

/// Checks a process of a user that the kernel has identified.
pub fn of_process(pid: u32, uid: u32) -> Authorization {
    if !Logind::default().has(uid) {
        return Authorization::No(format!("user {uid} is not logged in at this machine"));
    }
    let Some(start) = start(pid) else {
        return Authorization::No(format!("process {pid} has ended"));
    };
    let user = i32::try_from(uid).unwrap_or(-1);
    let details =
        [("pid", Value::from(pid)), ("start-time", Value::from(start)), ("uid", Value::from(user))];
    ask(&("unix-process", HashMap::from(details)))
}

/// Checks the session in front of the machine, if it is this user's.
pub fn of_seated(uid: u32) -> Authorization {
    match Logind::default().in_front(uid).next() {
        Some(session) => {
            ask(&("unix-session", HashMap::from([("session-id", Value::from(session.id))])))
        }
        None => Authorization::No(format!("user {uid} has no session in front of this machine")),
    }
}

/// Returns the start time of a process, in the kernel's units.
fn start(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    StatLine::read(&text)?.field(22)?.parse().ok()
}

fn ask(subject: &Subject) -> Authorization {
    if !Path::new(BUS).exists() {
        return Authorization::Nothing("there is no system bus, and so no polkit".to_owned());
    }
    match check(subject) {
        Ok((true, _)) => Authorization::Yes,
        Ok((false, true)) => {
            Authorization::No(format!("polkit allows {ACTION} only with a password"))
        }
        Ok((false, false)) => Authorization::No(format!(
            "polkit does not allow {ACTION} here; see: pkaction --verbose"
        )),
        Err(error) => Authorization::Nothing(silence(error)),
    }
}

/// Returns `true` if it is authorized, and `true` if it would be after a password.
fn check(subject: &Subject) -> zbus::Result<(bool, bool)> {
    let bus: Connection =
        Builder::address(format!("unix:path={BUS}").as_str())?.method_timeout(TIMEOUT).build()?;
    let details: HashMap<&str, &str> = HashMap::new();
    let words = (subject, ACTION, details, NO_FLAGS, "");
    let reply =
        bus.call_method(Some(NAME), OBJECT, Some(INTERFACE), "CheckAuthorization", &words)?;
    let (allowed, challenge, _): (bool, bool, HashMap<String, String>) =
        reply.body().deserialize()?;
    Ok((allowed, challenge))
}

fn silence(error: zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(_, said, _) => {
            format!(
                "polkit gave no answer: {}",
                crate::plain::plain(said.as_deref().unwrap_or_default(), 200)
            )
        }
        error => format!("cannot ask polkit: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polkit_is_not_asked_about_a_user_without_a_login() {
        assert_eq!(
            of_process(1, 4_242),
            Authorization::No("user 4242 is not logged in at this machine".to_owned())
        );
    }
}
