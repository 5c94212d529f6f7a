// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme record`.

use crate::arguments::{DisplayChoice, HotKeyArguments, Record};
use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::process::ExitCode;
use tipme_command::program;
use tipme_control::{Client, RecorderRequest, RecorderResponse, accounts};
use tipme_desktop::console::ACTIVE;
use tipme_record::{CHUNK_BYTES, Nanos, RingClass};
use tipme_recorder::{
    AutoMode, AutoOptions, HotKeyOptions, RecorderOptions, Sealer, StateDirs, Tap,
};

/// Records until it is stopped, or makes the running recorder record more detail for a time.
pub fn run(arguments: Record) -> Result<ExitCode> {
    if let Some(seconds) = arguments.for_seconds {
        return record_detail(&arguments, seconds);
    }
    if !geteuid().is_root() && arguments.state_dir.is_none() {
        bail!(
            "recording needs root; run: sudo tipme record --allow-user {}",
            user_word(geteuid().as_raw())
        );
    }
    let tap = match arguments.display {
        None => Tap::All,
        Some(DisplayChoice::Only(display)) => Tap::Only(display),
        Some(DisplayChoice::OnlyWayland(display)) => Tap::OnlyWayland(display),
        Some(DisplayChoice::Off) => Tap::Off,
    };
    let auto = arguments
        .auto
        .flatten()
        .map(|mode| auto_options(mode, arguments.auto_per_hour))
        .transpose()?;
    let options = RecorderOptions {
        dirs: StateDirs::choose(arguments.state_dir.as_deref()),
        window: Nanos::from_secs(arguments.window),
        memory: arguments
            .memory
            .unwrap_or_else(|| default_memory(machine_memory(), machine_cpus())),
        tap,
        without: arguments.without,
        details: arguments.detail,
        allowed: allowed(&arguments.allow_user)?,
        day: arguments.day,
        auto,
        hot_keys: hot_keys(&arguments.hot_keys)?,
        kept: arguments.kept.bounds(),
        sealer: Sealer::Program(program::own()?),
    };
    tipme_recorder::run(&options)?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the request for detail to the running recorder.
fn record_detail(arguments: &Record, seconds: u32) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let details =
        arguments.detail.iter().map(|detail| detail.name().to_owned()).collect::<Vec<_>>();
    let what = details.join(", ");
    match Client::new(dirs.run_dir()).call(&RecorderRequest::Detail { details, seconds })? {
        RecorderResponse::Done if seconds == 0 => {
            println!("no longer recording in detail for you: {what}")
        }
        RecorderResponse::Done => {
            println!(
                "recording in detail for {seconds} s: {what}; after the next hitch, run: tipme mark"
            )
        }
        other => bail!("unexpected reply from the recorder: {other:?}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine's memory in bytes.
fn machine_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    machine.totalram.saturating_mul(machine.mem_unit.into())
}

/// CPUs that may be used now.
fn machine_cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)
}

/// Share of each CPU in the recorder's memory: the chunk of each class that it writes to.
const CPU_BYTES: u64 = (RingClass::ALL.len() * CHUNK_BYTES) as u64;

/// Default memory for records in bytes: larger on machines with more memory, which have more CPUs
/// to record.
fn default_memory(machine: u64, cpus: u64) -> u64 {
    (machine / 128).clamp(64 << 20, (128 << 20) + cpus * CPU_BYTES) >> 20 << 20
}

fn auto_options(mode: AutoMode, per_hour: u8) -> Result<AutoOptions> {
    Ok(AutoOptions { mode, per_hour: per_hour.into(), judge: program::own()? })
}

fn hot_keys(arguments: &HotKeyArguments) -> Result<Option<HotKeyOptions>> {
    let Some(scope) = arguments.hot_keys else { return Ok(None) };
    let (bindings, judge) = (arguments.keys.bindings(), program::own()?);
    Ok(Some(HotKeyOptions { scope, bindings, console: ACTIVE.into(), judge }))
}

/// Returns the user that called sudo, and the named users.
fn allowed(names: &[String]) -> Result<Vec<u32>> {
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let named = names.iter().map(|name| user_id(name)).collect::<Result<Vec<u32>>>()?;
    Ok(distinct(caller.into_iter().chain(named)))
}

/// Returns each user once, in the order of first mention.
fn distinct(users: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut seen = Vec::new();
    users.for_each(|user| {
        if !seen.contains(&user) {
            seen.push(user);
        }
    });
    seen
}

/// Returns `anna (1000)`, or the number for a user without an entry in `/etc/passwd`.
pub fn user_name(uid: u32) -> String {
    accounts::user_name(uid).map_or_else(|| uid.to_string(), |name| format!("{name} ({uid})"))
}

/// Returns a user as a shell word: the name, or the number if a shell could misinterpret the name.
fn user_word(uid: u32) -> String {
    accounts::user_name(uid).filter(|name| is_word(name)).unwrap_or_else(|| uid.to_string())
}

fn is_word(name: &str) -> bool {
    !name.starts_with('-')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
}

/// Returns the id of a user given by name or id.
pub fn user_id(name: &str) -> Result<u32> {
    if let Ok(uid) = name.parse() {
        return Ok(uid);
    }
    let users = std::fs::read_to_string("/etc/passwd")
        .context("cannot read /etc/passwd; give the user's id instead")?;
    let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = fields.find(|fields| fields.first() == Some(&name));
    let uid = user.and_then(|fields| fields.get(2)?.parse().ok());
    uid.with_context(|| {
        format!("there is no user {name:?} in /etc/passwd; give the user's id instead")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_users_in_words_of_a_shell() {
        assert_eq!(
            (user_word(0).as_str(), user_word(4_294_967_000).as_str()),
            ("root", "4294967000")
        );
        let words = ["anna", "a.b-c_1", "-x", "anna (7)", "$(id)", "a;b"].map(is_word);
        assert_eq!(words, [true, true, false, false, false, false]);
    }

    #[test]
    fn each_user_is_allowed_once() {
        assert_eq!(distinct([1001, 7, 1001, 7].into_iter()), [1001, 7]);
    }

    #[test]
    fn memory_grows_with_the_machine_within_bounds() {
        let machines =
            [(1, 1), (8, 2), (12, 8), (16, 8), (32, 16), (64, 64), (1024, 256), (16, 256)];
        let default_mib = machines.map(|(gib, cpus)| default_memory(gib << 30, cpus) >> 20);
        assert_eq!(default_mib, [64, 64, 96, 128, 131, 140, 176, 128]);
    }
}
