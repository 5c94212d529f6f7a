// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers to requests on the manager's socket.

use crate::daemon::{Manager, own_cpu};
use crate::session::{not_favoured, program};
use crate::trust::ClaimRefusal;
use serde::Serialize;
use tipme_control::manager::{
    LISTED_MAX, ManagerCounts, ManagerRequest, ManagerResponse, ManagerStatus, ProcessTreatment,
    SetStatus,
};
use tipme_desktop::clock;
use tipme_policy::{Assignment, Identity, Strength};
use tipme_record::Nanos;
use tipme_sched::{RoleExplanation, processes};

impl Manager {
    /// Answers a request, or returns the reason for a failure.
    pub(crate) fn answer(&mut self, request: &ManagerRequest) -> Result<ManagerResponse, String> {
        match request {
            ManagerRequest::Status => Ok(ManagerResponse::Status(Box::new(self.status()))),
            ManagerRequest::Strength(name) => {
                let strength = Strength::named(name).ok_or_else(|| {
                    format!("unknown strength {name:?}; use off, gentle, normal or strong")
                })?;
                self.set_strength(strength);
                Ok(ManagerResponse::Done)
            }
            ManagerRequest::Why { pid } => self.why(*pid).map(ManagerResponse::Why),
        }
    }

    fn status(&self) -> ManagerStatus {
        let seconds = clock::now().since(self.since).millis() / 1e3;
        let display = self.attention.facts();
        let own_cpu_by = self.chores.spent(display.own_cpu).into_iter();
        ManagerStatus {
            pid: std::process::id(),
            display: self.setting.display.clone(),
            user: self.setting.user,
            under: self.setting.under.map(|top| top.pid),
            strength: self.strength.to_string(),
            backend: self.setting.backend.to_string(),
            helper: self.actuator.helper(),
            missing: self.missing(),
            seconds,
            present: self.present.unwrap_or(true),
            silent_seconds: display.silent.map(|since| clock::now().since(since).millis() / 1e3),
            core: self.core.iter().map(|process| (self.name(process.pid), process.pid)).collect(),
            sets: self.sets(),
            sets_left_out: self.assigned.len().saturating_sub(LISTED_MAX),
            focus_changes: self.focus_times.times(),
            memory: self.memory.latest(),
            prediction: self.prefetch.figures(),
            preload: self.preload.status(),
            counts: self.totals(),
            own_cpu_percent: percent(own_cpu().since(self.own_cpu), seconds),
            own_cpu_by: own_cpu_by
                .map(|(what, time)| (what.to_owned(), percent(time, seconds)))
                .collect(),
            own_rss_bytes: processes::resident(&self.setting.proc, std::process::id()).unwrap_or(0),
        }
    }

    /// Returns unavailable functions, and processes of the core that cannot be favoured.
    fn missing(&self) -> Vec<String> {
        let known = self.setting.missing.iter().cloned().chain(self.actuator.trouble());
        let (proc, user) = (&self.setting.proc, self.setting.user);
        known.chain(not_favoured(proc, user, &self.core, self.parts.manager)).collect()
    }

    /// Returns the sets, most favoured first.
    fn sets(&self) -> Vec<SetStatus> {
        let mut assignments: Vec<&Assignment> = self.assigned.values().collect();
        assignments.sort_by_key(|assignment| (assignment.role, assignment.set));
        let sets = assignments.into_iter().take(LISTED_MAX).map(|assignment| SetStatus {
            program: self.name(assignment.set.0.pid),
            pid: assignment.set.0.pid,
            role: word(&assignment.role),
            reason: assignment.reason.to_string(),
            processes: assignment.members.len(),
        });
        sets.collect()
    }

    fn totals(&self) -> ManagerCounts {
        let dropped = self.attention_dropped();
        ManagerCounts {
            dropped: self.desktop.counts.dropped + self.policy.dropped() + dropped,
            disbelieved: self.desktop.counts.disbelieved,
            looks_left: self.desktop.looks_left(),
            ..self.counts
        }
    }

    fn name(&self, pid: u32) -> String {
        program(&self.setting.proc, pid).unwrap_or_else(|| "gone".to_owned())
    }

    fn why(&mut self, pid: u32) -> Result<ProcessTreatment, String> {
        let process = processes::read(&self.setting.proc, pid)
            .ok_or_else(|| format!("there is no process {pid}"))?;
        let why = ProcessTreatment {
            pid,
            program: process.command.clone(),
            ..ProcessTreatment::default()
        };
        let found = self.actuator.explain(process.identity).unwrap_or_default();
        let why = ProcessTreatment { knobs: found.knobs, skipped: found.left, ..why };
        if let Some(found) = found.role {
            let is_job = self.desktop.is_job(found.set);
            return Ok(explained(why, found, is_job));
        }
        // A role without an explanation: the mechanism was not asked to do anything for the
        // process.
        match self.policy.role(pid).filter(|_| self.knows(process.identity)) {
            Some((role, reason)) => {
                Ok(ProcessTreatment { role: Some(word(&role)), reason: reason.to_string(), ..why })
            }
            None => {
                Ok(ProcessTreatment { reason: self.why_not(process.identity, process.uid), ..why })
            }
        }
    }

    /// Returns `true` if exactly this process, not an earlier one with its PID, is in a set or in
    /// the core.
    fn knows(&self, process: Identity) -> bool {
        let mut members = self.assigned.values().flat_map(|assignment| &assignment.members);
        members.any(|member| member.who == process) || self.core.contains(&process)
    }

    /// Explains why a process has no role.
    fn why_not(&self, process: Identity, uid: u32) -> String {
        let (user, under) = (self.setting.user, self.setting.under);
        if self.strength == Strength::Off {
            return "the manager is off; turn it on with: tipme manage normal".to_owned();
        }
        if uid != user {
            return format!("it belongs to user {uid}, and this manager serves user {user}");
        }
        if let Some(top) =
            under.filter(|top| !processes::is_below(&self.setting.proc, process, *top))
        {
            return format!(
                "it is not below process {}, to which --under restricts changes",
                top.pid
            );
        }
        match self.desktop.refusal(process.pid) {
            Some(refusal) => words(refusal),
            None => "it has no window, no ancestor with one, and is not a hog".to_owned(),
        }
    }
}

/// Merges the mechanism's explanation of a process; `is_job` marks a background job of a terminal.
fn explained(why: ProcessTreatment, found: RoleExplanation, is_job: bool) -> ProcessTreatment {
    ProcessTreatment {
        role: Some(word(&found.role)),
        reason: format!(
            "{}{}",
            found.reason,
            if is_job { ", a background job of its terminal" } else { "" }
        ),
        membership: Some(word(&found.because)),
        set: Some(found.set.0.pid),
        ..why
    }
}

fn words(refusal: ClaimRefusal) -> String {
    match refusal {
        ClaimRefusal::Unknown => "the process of its window is unknown".to_owned(),
        ClaimRefusal::Gone => {
            "the process that created the window has ended, and this one reuses its PID".to_owned()
        }
        ClaimRefusal::OtherUser(uid) => format!("its window belongs to user {uid}"),
        ClaimRefusal::OwnWords => {
            "a window claims to belong to it, which the display server does not confirm".to_owned()
        }
        ClaimRefusal::OtherClient => {
            "a window claims to belong to it, but it is another client of the display".to_owned()
        }
        ClaimRefusal::NotConnected => "it has no connection to the display: \
             the process that created the window had the same PID"
            .to_owned(),
        ClaimRefusal::Core => "it belongs to the session".to_owned(),
    }
}

/// Returns the share of a time in these seconds.
fn percent(time: Nanos, seconds: f64) -> f64 {
    if seconds > 0.0 { 100.0 * time.millis() / 1e3 / seconds } else { 0.0 }
}

/// Returns a role or membership as written in JSON.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    }
}
