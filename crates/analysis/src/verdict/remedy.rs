// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remedies for each kind of cause.

use crate::explain::describe::span_text;
use crate::model::{CauseKind, Culprit};
use crate::timeline::io_limits::GroupIoLimit;
use crate::timeline::tasks::Tasks;
use crate::timeline::throttle::QuotaGroup;
use std::net::Ipv4Addr;
use tipme_record::{Nanos, Pid, Tid};

/// Returns the remedy against a culprit that has ended, if it differs.
fn after_exit(kind: CauseKind) -> Option<&'static str> {
    Some(match kind {
        CauseKind::CpuCompetition => "start {comm} with nice -n 19 next time (this one has ended)",
        CauseKind::PageIn | CauseKind::DiskQueue | CauseKind::Fsync => {
            "start {comm} with ionice -c 3 next time (this one has ended)"
        }
        CauseKind::IoHeldBack => {
            "{comm} has ended: check the I/O limits of its control group (io.max, blkio.throttle.*)"
        }
        CauseKind::SwapIn | CauseKind::Reclaim => {
            "start {comm} in a control group with memory.high next time (this one has ended)"
        }
        CauseKind::KernelWait => {
            "look up the named function in the kernel's log and documentation ({comm} has ended)"
        }
        CauseKind::KernelLock => {
            "{comm} has ended: see in its log what it did while it held the lock"
        }
        CauseKind::ServerBusy => "start {comm} with nice -n 10 next time (this one has ended)",
        CauseKind::ServerGrab => "report the grab to the developers of {comm}, which has ended",
        CauseKind::PeerWait => "{comm} has ended: see in its log why it was slow",
        _ => return None,
    })
}

/// Returns the remedy against a process, where `{pid}` and `{comm}` are the culprit's and `{app}`
/// is the application's name.
fn against(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::CpuCompetition => {
            "renice -n 19 -p {pid} (what it starts from then on inherits it)"
        }
        CauseKind::CpuThrottled => "raise cpu.max of the control group of {app}",
        CauseKind::OwnComputation => "report to the developers of {comm} what it computes",
        CauseKind::PageIn | CauseKind::DiskQueue | CauseKind::Fsync => {
            "ionice -c 3 -p {pid} (its I/O waits for an idle disk)"
        }
        CauseKind::IoHeldBack => {
            "look for a limit on I/O of the control groups in /proc/{pid}/cgroup (io.max, blkio.throttle.*), then at what \
             lies above the disk (device mapper, network)"
        }
        CauseKind::SwapIn => {
            "limit {comm} (pid {pid}) by memory.high of its control group, or add memory"
        }
        CauseKind::Reclaim => "limit {comm} (pid {pid}) by memory.high of its control group",
        CauseKind::LockWait => {
            "report it to the developers of {comm} (pid {pid}): it must not hold the lock while it waits or computes"
        }
        CauseKind::KernelLock => {
            "look at what {comm} (pid {pid}) waits for while it holds the lock: tipme diagnose --pid {pid}"
        }
        CauseKind::KernelWait => {
            "next time, see what {comm} waits for in the kernel: sudo cat /proc/{pid}/stack"
        }
        CauseKind::ServerBusy => "renice -n 10 -p {pid} (its requests come in smaller portions)",
        CauseKind::ServerGrab => {
            "report the grab to the developers of {comm}; ending {pid} releases it"
        }
        CauseKind::PeerWait => "look at why {comm} (pid {pid}) is slow: tipme diagnose --pid {pid}",
        CauseKind::NetworkWait => "check the network and the host",
        CauseKind::ChildWait => "run {comm} in the background",
        CauseKind::TimerSleep => {
            "report it to the developers of {comm}: it sleeps where it should wait for an event"
        }
        CauseKind::Stopped => {
            "kill -CONT the process that was stopped; see why {comm} (pid {pid}) stopped it"
        }
        CauseKind::Interrupt => {
            "move the interrupt to another CPU (/proc/irq/*/smp_affinity), or update its driver"
        }
        CauseKind::Stall => {
            "check the hypervisor's load or the firmware; no software on this machine ran"
        }
        CauseKind::Unattributed => "",
    }
}

/// Returns the remedy for threads of one process that wait for the lock of their address space.
pub(crate) fn of_address_space(comm: &str) -> String {
    format!(
        "report it to the developers of {comm}: many threads share one address space; fewer or smaller mappings help"
    )
}

/// Returns the remedy for a control group at its memory limit.
pub(crate) fn of_memory_limit(waiter: Pid) -> String {
    format!(
        "raise the memory limit of the control group in /proc/{waiter}/cgroup (memory.max, memory.limit_in_bytes), or end \
         something in it"
    )
}

/// Returns the addition for a wait of the application itself rather than of a program that it runs.
fn of_itself(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::NetworkWait | CauseKind::ChildWait => {
            "; {app} should not wait for it in its event loop"
        }
        _ => "",
    }
}

/// Returns the addition for other jobs that filled a disk or the memory together with the culprit.
/// For a CPU the remedy names the manager, which holds back all of them.
pub(crate) fn for_others(kind: CauseKind, others: usize) -> String {
    use CauseKind::{DiskQueue, Fsync, PageIn, Reclaim, SwapIn};
    match others {
        1.. if matches!(kind, DiskQueue | Fsync | PageIn | Reclaim | SwapIn) => {
            let jobs = if others == 1 { "job".to_owned() } else { format!("{others} jobs") };
            format!("; the same for the other {jobs}, or run fewer at a time")
        }
        _ => String::new(),
    }
}

/// Returns the remedy for a culprit that holds no lock, but should have signalled the waiter.
pub(crate) fn of_signalled(culprit: &Culprit) -> String {
    let text = "report it to the developers of {comm}: the thread that handles input should not wait for other work";
    match culprit {
        Culprit::Process { pid, comm, .. } => fill(text, &pid.to_string(), comm, ""),
        Culprit::Device { .. } | Culprit::Address { .. } => String::new(),
    }
}

/// Returns the remedy for a program that a shell runs for its prompt, a completion or a function.
pub(crate) fn of_prompt(comm: &str) -> String {
    format!(
        "simplify the shell's prompt, completion or function: it runs {comm} each time (see PROMPT_COMMAND and PS1)"
    )
}

/// Remedy for an unknown holder of a file lock.
pub(crate) const OF_UNKNOWN_HOLDER: &str =
    "see which process has the file open or locked while it lasts (lslocks, fuser)";

/// Remedy for a frozen file system.
pub(crate) const OF_FROZEN: &str = "thaw the file system (fsfreeze -u MOUNTPOINT, which findmnt lists), or wait for the \
    backup or snapshot that froze it";

/// Remedy for a command that did its work.
pub(crate) const OF_COMMAND: &str = "nothing held it up; start it in the background (with & at the end) if you need not wait for it";

/// Remedy for a command that slept by itself.
pub(crate) const OF_SLEEPING_COMMAND: &str = "see what it looks for between its sleeps (strace -f); where it sleeps on \
    purpose, start it in the background (with & at the end)";

/// Remedy for a background process that keeps a pipe open which another process reads to its end.
pub(crate) const OF_KEPT_PIPE: &str = "redirect its output (>/dev/null), or end it: a reader of a pipe waits until \
    all other ends are closed";

/// Returns the remedy for an awaited answer that no known process owes.
pub(crate) fn of_unowed(app: &str, pid: Pid) -> String {
    format!(
        "see what {app} waits for, and whether any process will still answer: strace -f -T -p {}",
        pid.0
    )
}

/// Returns `true` if the remedy acts on the culprit, which must not have ended.
pub(crate) fn acts_on_culprit(kind: CauseKind) -> bool {
    after_exit(kind).is_some()
}

/// Remedy if a device is to blame and not the requests of others.
const DEVICE_REMEDY: &str = "check the health of the device (smartctl) and its scheduler (/sys/block/*/queue/scheduler): the device itself is slow";

/// Remedy if the answer comes from an address of this machine, but the process is not known.
const OF_THIS_MACHINE: &str =
    "find the process that listens on {comm} on this machine (ss -lntup), and see its log";

/// Returns the remedy for many small requests to a fast device.
pub(crate) fn of_many_requests(kind: CauseKind, writes: bool, app: &str, each: Nanos) -> String {
    let each = span_text(each);
    match kind {
        CauseKind::SwapIn => {
            format!(
                "free memory for {app} (close other programs, or add memory): each page read back takes {each}"
            )
        }
        CauseKind::DiskQueue if writes => format!(
            "tell the authors of {app}: it waits for one write after the other, while the device needs only {each} for each; \
             fewer and larger ones, or several at a time, take less"
        ),
        CauseKind::Fsync if writes => format!(
            "tell the authors of {app}: it waits for its data to be safe again and again, while the device needs only {each} \
             for each request; once for many changes takes less"
        ),
        _ => format!(
            "tell the authors of {app}: it waits for one request after the other, while the device needs only {each} for \
             each; fewer and larger ones, made ahead of need (readahead), or a cache of its own take less"
        ),
    }
}

/// Name of the application, and `true` if it is the waiter.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    pub app: &'a str,
    pub itself: bool,
}

/// Returns the remedy for a finding. It never acts on a process that had ended at the mark.
pub(crate) fn of(
    kind: CauseKind,
    culprit: &Culprit,
    Waiting { app, itself }: Waiting<'_>,
    tasks: &Tasks,
) -> String {
    let text = match culprit {
        Culprit::Address { address } if is_of_this_machine(address) => OF_THIS_MACHINE,
        Culprit::Process { pid, .. } if tasks.has_ended(Tid(*pid)) => {
            after_exit(kind).unwrap_or_else(|| against(kind))
        }
        _ => against(kind),
    };
    let text = text.to_owned() + if itself { of_itself(kind) } else { "" };
    match culprit {
        Culprit::Process { pid, comm, .. } => fill(&text, &pid.to_string(), comm, app),
        Culprit::Device { .. } if kind != CauseKind::Interrupt => DEVICE_REMEDY.to_owned(),
        Culprit::Device { device } => fill(&text, "", device, app),
        Culprit::Address { address } => fill(&text, "", address, app),
    }
}

fn is_of_this_machine(address: &str) -> bool {
    let host = address.rsplit_once(':').and_then(|(host, _)| host.parse::<Ipv4Addr>().ok());
    host.is_some_and(|host| host.is_loopback())
}

/// Returns the remedy for a known quota of a control group.
pub(crate) fn of_limit(limit: &QuotaGroup) -> String {
    let amount =
        limit.amount().map_or(" it did".to_owned(), |amount| format!(" {amount} of CPU time"));
    match (limit.file.as_str(), limit.is_set()) {
        ("", _) => {
            format!("find what creates the group temporarily, and make it allow more than{amount}")
        }
        (file, false) => {
            format!("find what sets {file} temporarily, and make it allow more than{amount}")
        }
        (file, true) => format!("raise {file}: it allows{amount}"),
    }
}

/// Returns the remedy for a known I/O limit of a control group. For a systemd unit it is the
/// systemctl command, since systemd would otherwise restore its own limit.
pub(crate) fn of_io_limit(limit: &GroupIoLimit, amount: &str) -> String {
    let file = &limit.file;
    let property = match (limit.write, limit.operations) {
        (false, false) => "IOReadBandwidthMax",
        (true, false) => "IOWriteBandwidthMax",
        (false, true) => "IOReadIOPSMax",
        (true, true) => "IOWriteIOPSMax",
    };
    match unit(&limit.folder) {
        Some(unit) => {
            format!(
                "lift the limit: systemctl {unit} {property}= (or, where systemd did not set it, raise the value in {file})"
            )
        }
        None => format!("raise {file}: it allows {amount}"),
    }
}

/// Returns the arguments of systemctl to change the unit of a control group, if it is one. Units
/// below a user's service manager need `--user`.
fn unit(folder: &str) -> Option<String> {
    const KINDS: [&str; 6] = [".slice", ".service", ".scope", ".socket", ".mount", ".swap"];
    let (above, name) = folder.rsplit_once('/')?;
    let is_unit = !name.starts_with('-')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || ":_.\\@-".contains(letter))
        && KINDS.iter().any(|kind| name.ends_with(kind));
    let own =
        if above.split('/').any(|part| part.starts_with("user@") && part.ends_with(".service")) {
            "--user "
        } else {
            ""
        };
    let quote = if name.contains('\\') { "'" } else { "" };
    is_unit.then(|| format!("{own}set-property {quote}{name}{quote}"))
}

/// Fills in the names; a placeholder inside a name is left alone.
fn fill(text: &str, pid: &str, comm: &str, app: &str) -> String {
    text.split("{comm}")
        .map(|part| part.replace("{pid}", pid).replace("{app}", app))
        .collect::<Vec<_>>()
        .join(comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_place_for_another() {
        assert_eq!(fill("{comm} ({pid}): {app}", "7", "{app}", "{comm}"), "{app} (7): {comm}");
    }

    #[test]
    fn every_kind_has_a_remedy() {
        let culprit =
            Culprit::Process { pid: 7, comm: "rsync".into(), cmdline: String::new(), job: None };
        for kind in CauseKind::CAUSES {
            for itself in [false, true] {
                let text = of(*kind, &culprit, Waiting { app: "xterm", itself }, &Tasks::default());
                assert!(!text.is_empty() && !text.contains('{'), "{kind}: {text}");
            }
        }
    }

    #[test]
    fn only_the_application_is_told_not_to_wait_in_its_event_loop() {
        let culprit =
            Culprit::Process { pid: 7, comm: "sleep".into(), cmdline: String::new(), job: None };
        let of = |itself| {
            of(CauseKind::ChildWait, &culprit, Waiting { app: "xterm", itself }, &Tasks::default())
        };
        assert_eq!(of(false), "run sleep in the background");
        assert_eq!(
            of(true),
            "run sleep in the background; xterm should not wait for it in its event loop"
        );
    }

    #[test]
    fn a_unit_is_changed_by_whoever_manages_it() {
        let root = "/sys/fs/cgroup/user.slice/user-7.slice";
        let own = |name: &str| unit(&format!("{root}/user@7.service/app.slice/{name}"));
        assert_eq!(unit(root).as_deref(), Some("set-property user-7.slice"));
        assert_eq!(
            unit(&format!("{root}/user@7.service")).as_deref(),
            Some("set-property user@7.service")
        );
        assert_eq!(own("a.scope").as_deref(), Some("--user set-property a.scope"));
        assert_eq!(
            own(r"a\x2db.service").as_deref(),
            Some(r"--user set-property 'a\x2db.service'")
        );
        assert_eq!(
            [own("box"), own("a b.scope"), own("a;b.scope"), own("$x.scope"), unit("")],
            [const { None }; 5]
        );
    }

    #[test]
    fn nothing_is_to_be_done_to_who_has_ended() {
        for kind in CauseKind::CAUSES {
            let (alive, ended) = (against(*kind), after_exit(*kind).unwrap_or(against(*kind)));
            assert!(!ended.contains("-p {pid}") && !ended.contains("--pid"), "{kind}: {ended}");
            assert!(alive == ended || ended.contains("ended"), "{kind}: {ended}");
        }
    }
}
