// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme record`.

use crate::arguments::{AutoChoice, DisplayChoice, HotKeyArguments, HotKeysChoice, Record};
use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::process::ExitCode;
use tipme_command::program;
use tipme_control::accounts;
use tipme_desktop::console::ACTIVE;
use tipme_recorder::{AutoMode, AutoOptions, HotKeyOptions, RecorderOptions, Scope, Sealer, StateDirs, Tap};

/// Records until it is stopped.
pub fn run(arguments: Record) -> Result<ExitCode> {
    if !geteuid().is_root() && arguments.state_dir.is_none() {
        bail!("recording takes root; run: sudo tipme record --allow-user {}", user_name(geteuid().as_raw()));
    }
    let tap = match arguments.display {
        None => Tap::All,
        Some(DisplayChoice::Only(display)) => Tap::Only(display),
        Some(DisplayChoice::OnlyWayland(display)) => Tap::OnlyWayland(display),
        Some(DisplayChoice::Off) => Tap::Off,
    };
    let auto = arguments.auto.map(|auto| auto_options(auto, arguments.auto_per_hour)).transpose()?.flatten();
    let options = RecorderOptions {
        dirs: StateDirs::choose(arguments.state_dir.as_deref()),
        window: tipme_recorder::seconds(arguments.window),
        memory: arguments.memory.unwrap_or_else(|| default_memory(machine_memory())),
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

/// The machine's memory in bytes.
fn machine_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    machine.totalram.saturating_mul(machine.mem_unit.into())
}

/// Bytes for records where nothing else is asked for: more on a machine with more memory, which has more CPUs to record.
fn default_memory(machine: u64) -> u64 {
    (machine / 128).clamp(64 << 20, 128 << 20) >> 20 << 20
}

fn auto_options(auto: AutoChoice, per_hour: u8) -> Result<Option<AutoOptions>> {
    let mode = match auto {
        AutoChoice::Mark => AutoMode::Mark,
        AutoChoice::DryRun => AutoMode::DryRun,
        AutoChoice::Off => return Ok(None),
    };
    Ok(Some(AutoOptions { mode, per_hour: per_hour.into(), judge: program::own()? }))
}

fn hot_keys(arguments: &HotKeyArguments) -> Result<Option<HotKeyOptions>> {
    let scope = match arguments.hot_keys {
        HotKeysChoice::Console => Scope::Console,
        HotKeysChoice::Always => Scope::Always,
        HotKeysChoice::Off => return Ok(None),
    };
    Ok(Some(HotKeyOptions {
        scope,
        bindings: arguments.keys.bindings(),
        console: ACTIVE.into(),
        judge: program::own()?,
    }))
}

/// The user who called sudo, and those that were named.
fn allowed(names: &[String]) -> Result<Vec<u32>> {
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let named = names.iter().map(|name| user_id(name)).collect::<Result<Vec<u32>>>()?;
    Ok(caller.into_iter().chain(named).collect())
}

/// `anna (1000)`, or the number where the user is not in /etc/passwd.
pub fn user_name(uid: u32) -> String {
    accounts::user_name(uid).map_or_else(|| uid.to_string(), |name| format!("{name} ({uid})"))
}

/// The id of a user who is named, or whose id is given.
pub fn user_id(name: &str) -> Result<u32> {
    if let Ok(uid) = name.parse() {
        return Ok(uid);
    }
    let users =
        std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd; give the user's id instead")?;
    let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = fields.find(|fields| fields.first() == Some(&name));
    let uid = user.and_then(|fields| fields.get(2)?.parse().ok());
    uid.with_context(|| format!("there is no user {name:?} in /etc/passwd; give the user's id instead"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_machine_within_bounds() {
        let default_mib = |gib: u64| default_memory(gib << 30) >> 20;
        assert_eq!([1, 8, 12, 16, 1024].map(default_mib), [64, 64, 96, 128, 128]);
    }
}
