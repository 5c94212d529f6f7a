// SPDX-License-Identifier: MIT OR Apache-2.0
//! Competition for CPUs (run-queue delay): whose priority decided it, and what can be tried against that.

use crate::explain::chain::Doing;
use crate::explain::partition::{Budget, Group, length};
use crate::model::{Culprit, Kind};
use crate::timeline::priorities::Standing;
use crate::timeline::tasks::Tasks;
use crate::verdict::remedy;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Pid, Tid};

/// Priorities that decided less than this share of a group are not told.
const SHARE_MIN: f64 = 0.1;

type Party = (Tid, Standing);

/// A thread that ran before another one, or got the larger share, by its priority.
struct Contrast {
    by: Party,
    waiter: Party,
    at: Nanos,
}

/// The pair of threads whose priorities differed for longest, where whoever ran had the better one.
fn contrast(budget: &Budget<'_>, group: &Group) -> Option<Contrast> {
    let mut pairs: BTreeMap<(Party, Party), (u64, Nanos)> = BTreeMap::new();
    for piece in budget.pieces(group) {
        let Doing::Queued(Some(by)) = piece.doing else { continue };
        let standing = |tid| budget.recording.priorities.at(tid, piece.lo).map(|standing| (tid, standing));
        let Some((by, waiter)) = standing(by).zip(standing(piece.tid)) else { continue };
        if by.1.beats(waiter.1) {
            let pair = pairs.entry((by, waiter)).or_insert((0, piece.lo));
            pair.0 = pair.0.saturating_add(length(piece));
        }
    }
    let all: u64 = pairs.values().fold(0, |all, (nanos, _)| all.saturating_add(*nanos));
    let told = all as f64 >= SHARE_MIN * group.nanos as f64;
    let most = pairs.into_iter().max_by_key(|(_, (nanos, _))| *nanos).filter(|_| told);
    most.map(|((by, waiter), (_, at))| Contrast { by, waiter, at })
}

/// `rsync runs at nice -5, xterm at nice 0`.
pub fn line(budget: &Budget<'_>, group: &Group) -> Option<String> {
    let Contrast { by, waiter, at } = contrast(budget, group)?;
    let tasks = &budget.recording.tasks;
    let name = |tid| tasks.comm(tasks.pid(tid, at), at);
    Some(format!("{} runs {}, {} {}", name(by.0), by.1.text(), name(waiter.0), waiter.1.text()))
}

/// What can be tried against a group of this kind; `None` where it is not a competition.
pub fn remedy(budget: &Budget<'_>, group: &Group, culprit: &Culprit, app: &str) -> Option<String> {
    let Culprit::Process { pid, .. } = culprit else { return None };
    if group.kind != Kind::CpuCompetition {
        return None;
    }
    let contrast = contrast(budget, group);
    let usual = || remedy::of(Kind::CpuCompetition, culprit, app);
    let first = contrast.as_ref().and_then(of_contrast).unwrap_or_else(usual);
    let ordinary = !contrast.is_some_and(|contrast| contrast.by.1.is_realtime());
    let managed = ordinary && is_background(budget, Pid(*pid)) && !is_managed(&budget.recording.tasks);
    Some(if managed { format!("{first}; or tipme manage, which puts what you use first") } else { first })
}

fn of_contrast(contrast: &Contrast) -> Option<String> {
    let ((by, before), (waiter, behind)) = (contrast.by, contrast.waiter);
    if before.is_realtime() && !before.is_lent() {
        return Some(format!("chrt -o -p 0 {by} (it runs {})", before.text()));
    }
    if behind.is_idle_policy() {
        return Some(format!("chrt -o -p 0 {waiter} (what waits runs {})", behind.text()));
    }
    let lowered = behind.is_low() && !before.is_realtime();
    lowered.then(|| format!("renice -n 0 -p {waiter} (what waits runs {})", behind.text()))
}

/// Whether a process is neither on a display nor of the delayed application: the manager puts it behind.
fn is_background(budget: &Budget<'_>, pid: Pid) -> bool {
    let recording = budget.recording;
    let on_display = recording.messages.streams().iter().any(|stream| stream.client == pid);
    let known = recording.tasks.process(pid, budget.end()).is_some_and(|life| !life.is_kernel());
    known && !on_display && !recording.messages.is_server(pid) && !budget.judge.is_family(pid)
}

/// Whether a manager runs already.
fn is_managed(tasks: &Tasks) -> bool {
    let manages = |pid: Pid, at| tasks.cmdline(pid, at).split(' ').nth(1) == Some("manage");
    tasks.lives().iter().any(|life| life.comm == "tipme" && manages(life.pid, life.until))
}
