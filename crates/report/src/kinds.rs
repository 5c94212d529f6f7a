// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts for each kind of cause that do not depend on the verdict; the headline of a finding and
//! its remedy are part of the verdict.

use crate::layout::{Layout, Tone};
use tipme_analysis::model::CauseKind;

/// Texts for one kind.
pub(crate) struct KindWords {
    kind: CauseKind,
    /// Name for users without knowledge of schedulers.
    pub(crate) name: &'static str,
    /// Clause for a process, where `{who}` is the culprit, `{app}` the awaited application, and
    /// `{waiter}` the program that was held up directly, which may be the same one. `None` if only
    /// the evidence can describe it.
    pub(crate) of_process: Option<&'static str>,
    /// Clause for a device or an address.
    pub(crate) of_device: Option<&'static str>,
    /// Explanation of the mechanism.
    pub(crate) what: &'static str,
    /// Usual remedy.
    helps: &'static str,
    /// Ways to observe it without tipme.
    see: &'static str,
    /// Fault of `tipme selftest` that reproduces it.
    pub(crate) fault: Option<&'static str>,
}

/// Returns the texts for a kind; those for [`CauseKind::Unattributed`] come last.
pub(crate) fn about(kind: CauseKind) -> &'static KindWords {
    ABOUT.iter().find(|about| about.kind == kind).unwrap_or(&ABOUT[ABOUT.len() - 1])
}

/// Explains a kind in a few sentences, including [`CauseKind::Unattributed`], which is a share of a
/// verdict but never a cause.
pub fn explanation(kind: CauseKind, layout: &Layout) -> String {
    let about = about(kind);
    let parts = [("What helps", about.helps), ("See it yourself", about.see)];
    let head = layout.paint(Tone::Term, kind.name()) + "\n" + &layout.paragraph(about.what);
    let tell =
        |(name, text): (&str, &str)| format!("\n{}\n{}", layout.paint(Tone::Strong, name), layout.paragraph(text));
    parts.into_iter().fold(head, |told, part| told + &tell(part))
}

const ABOUT: [KindWords; 22] = [
    KindWords {
        kind: CauseKind::CpuCompetition,
        name: "Waiting for a CPU",
        of_process: Some("{who} took the CPU time that {waiter} needed"),
        of_device: None,
        what: "The program was ready to go on, but other programs had the CPU (run-queue delay, or scheduling latency). This \
               happens when more threads want to run than there are CPUs, or when others have a higher priority.",
        helps: "Give the work in the background a low priority (nice, systemd-run -p CPUWeight=10), let it use fewer \
                threads (make -j2), or run tipme manage, which puts what you use first.",
        see: "top sorts by CPU use; cat /proc/pressure/cpu tells how much of the time something waited for a CPU; \
              perf sched timehist has the column \"sch delay\".",
        fault: Some("cpu"),
    },
    KindWords {
        kind: CauseKind::CpuThrottled,
        name: "Held back by a limit on CPU time",
        of_process: Some("{who} ran until {waiter}'s control group had used up the CPU time that it is allowed"),
        of_device: None,
        what: "The program belongs to a control group (a container, a service, a slice) that may use only so much \
               CPU time in each period. The group had used that up, and the program was not let run until the next \
               period, though a CPU may have been free.",
        helps: "Raise or remove the limit: systemctl set-property UNIT CPUQuota=, docker update --cpus, or cpu.max \
                of the group. More CPUs do not help.",
        see: "nr_throttled and throttled_usec in cpu.stat of the group, which /proc/PID/cgroup names.",
        fault: Some("quota"),
    },
    KindWords {
        kind: CauseKind::OwnComputation,
        name: "Computing",
        of_process: Some("{who} was busy with work of its own"),
        of_device: None,
        what: "Nobody held the program up: it computed, longer than it usually does, and did not come to what you \
               did.",
        helps: "Give it less to do (a smaller file, fewer plug-ins, a newer version), or report it to its authors \
                with the functions that the verdict names.",
        see: "perf top -p PID while it hangs; top shows it near 100 % of a CPU.",
        fault: Some("computation"),
    },
    KindWords {
        kind: CauseKind::PageIn,
        name: "Reading a part of a program from disk",
        of_process: Some("{waiter} had to wait until parts of a file were in memory again, because of {who}"),
        of_device: Some("{waiter} had to wait until parts of a file were read from {who}"),
        what: "The program touched a part of a program file, a library or a mapped file that was not in memory, and \
               had to wait until it was read from the disk. Such parts are dropped when memory is short, and are \
               read slowly when others keep the disk busy.",
        helps: "Move heavy disk work to another time or to the idle class (ionice -c 3), and have less in memory at \
                a time. A faster disk makes it rarer.",
        see: "The column majflt of pidstat -r -p PID 1; cat /proc/pressure/memory and /proc/pressure/io.",
        fault: Some("page-in"),
    },
    KindWords {
        kind: CauseKind::SwapIn,
        name: "Reading memory back from swap",
        of_process: Some("{waiter} had to wait until memory came back from swap, because of {who}"),
        of_device: Some("{waiter} had to wait until memory came back from swap on {who}"),
        what: "Memory ran short earlier, and some of the program's was moved to the swap device. It had to be read \
               back before the program could go on.",
        helps: "Close what you do not use, add memory, or limit what takes it: memory.high of its control group \
                (systemctl set-property UNIT MemoryHigh=2G). zram makes swap much faster.",
        see: "The column si of vmstat 1; VmSwap in /proc/PID/status.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Reclaim,
        name: "Waiting for memory to be freed",
        of_process: Some("memory was short: {who} took what {waiter} needed"),
        of_device: Some("{who} was reached, and {waiter} had to wait"),
        what: "The program asked for memory when hardly any was free. First the kernel had to write or drop other \
               pages, or it held the program back.",
        helps: "Limit what takes the memory (memory.high of its control group), close what you do not use, or add \
                memory.",
        see: "The line \"some\" of /proc/pressure/memory; allocstall and pgscan_direct in /proc/vmstat.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::DiskQueue,
        name: "Waiting for a disk",
        of_process: Some("{who} kept the disk busy that {app} had to wait for"),
        of_device: Some("{app} had to wait for {who}, which hardly anybody else used"),
        what: "The program waited for the disk. A disk serves only so many requests at a time, and large writes fill \
               its queue: what is asked of it meanwhile has to wait.",
        helps: "Give the other program's disk work the idle class (ionice -c 3 -p PID), or limit it (systemd-run -p \
                IOWriteBandwidthMax=); a scheduler such as bfq in /sys/block/*/queue/scheduler shares a slow disk \
                fairly. Where hardly anybody else used it, look at its health: smartctl -a.",
        see: "iostat -x 1: the queue (aqu-sz) and the waits (r_await, w_await); iotop names who.",
        fault: Some("io"),
    },
    KindWords {
        kind: CauseKind::IoHeldBack,
        name: "Held back before the disk",
        of_process: Some("I/O of {who} was held back before it reached a disk"),
        of_device: None,
        what: "The program waited for the disk, but for most of that time no request was with the disk. So it was held back \
               above it: by a limit on the I/O of its control group (a container, a service, a slice), or by what lies \
               between, such as the device mapper or a file system of the network.",
        helps: "Raise or remove the limit: systemctl set-property UNIT IOReadBandwidthMax= IOWriteBandwidthMax= \
                IOReadIOPSMax= IOWriteIOPSMax=, or io.max of the group (blkio.throttle.* of cgroup v1). A faster disk does \
                not help.",
        see: "io.max and io.stat of the group and of those above it, which /proc/PID/cgroup names; io.pressure beside \
              them grows while iostat -x 1 shows an idle disk (%util).",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Fsync,
        name: "Waiting until data is safe on the disk",
        of_process: Some("{app} had to wait until data was safe on the disk, which {who} kept busy"),
        of_device: Some("{app} had to wait until data was safe on {who}"),
        what: "The program asked that its data be safe on the disk before it went on (fsync, or a journal commit). \
               That takes as long as the disk needs for all that was written before.",
        helps: "Less writing meanwhile (ionice -c 3 for backups and copies), smaller vm.dirty_bytes so that less is \
                held back, a disk with a fast cache. An application should do it on another thread: report it.",
        see: "strace -f -T -e fsync,fdatasync -p PID shows how long each took; w_await of iostat -x 1.",
        fault: Some("fsync"),
    },
    KindWords {
        kind: CauseKind::LockWait,
        name: "Waiting for a lock",
        of_process: Some("{who} held a lock that {app} had to wait for"),
        of_device: None,
        what: "Two threads or programs share something that only one may use at a time (a lock), or one waits until \
               the other signals that it is done (a condition or semaphore). The other one had it, or was not done, \
               while it slept, computed or waited itself.",
        helps: "Report it to the authors of the program that was waited for, with what it did meanwhile. For lock \
                files: end or finish the other program.",
        see: "strace -f -T -e futex,flock,fcntl -p PID; lslocks for locks of files; gdb -p PID for who holds it.",
        fault: Some("lock"),
    },
    KindWords {
        kind: CauseKind::KernelLock,
        name: "Waiting for a lock inside the kernel",
        of_process: Some("{who} held a lock of the kernel that {app} had to wait for"),
        of_device: None,
        what: "The kernel itself lets only one thread at a time change some things: the memory map of a process, a \
               folder, a file. Another thread was at it.",
        helps: "Less of what takes the lock: fewer threads that map and unmap memory, no folder with a great many \
                files. A newer kernel may have finer locks.",
        see: "perf lock contention -a -b while it happens; cat /proc/PID/stack of the one that waits.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::KernelWait,
        name: "Waiting inside the kernel",
        of_process: None,
        of_device: None,
        what: "The program made a system call and slept inside the kernel until something let it go on. tipme has no name of \
               its own for what that is; the kernel's function and the system call are named instead.",
        helps: "Search for the kernel function that the verdict names: it belongs to a driver, a file system or a security \
                module, and that is where a setting or an update helps.",
        see: "cat /proc/PID/stack as root while it hangs; strace -T -p PID for the system call.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::ServerBusy,
        name: "The display server was busy",
        of_process: Some("the display server was busy drawing for {who}"),
        of_device: None,
        what: "All programs share one display server, which passes on keys and draws windows. It was busy with what \
               another program had asked it to draw, so that nobody else could be served.",
        helps: "Close or calm the other program (animations, very large pictures); give it a lower priority, so that \
                its requests come in smaller portions. A driver with acceleration draws faster.",
        see: "top shows Xorg or Xwayland near 100 %; xrestop has what each program keeps there.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::ServerGrab,
        name: "The display was reserved by another program",
        of_process: Some("{who} kept the whole display for itself"),
        of_device: None,
        what: "A program may keep the display server for itself for a moment (a grab): nobody else is drawn \
               meanwhile. It kept it too long.",
        helps: "End the program, which releases the grab; report it to its authors.",
        see: "xtrace -n PROGRAM shows GrabServer and UngrabServer of a program that it starts.",
        fault: Some("grab"),
    },
    KindWords {
        kind: CauseKind::PeerWait,
        name: "Waiting for another program",
        of_process: Some("{app} had to wait for an answer from {who}"),
        of_device: None,
        what: "The program had asked another one on this machine for something (over a socket, a pipe, the message \
               bus) and did not go on before it had the answer.",
        helps: "See why the other program was slow: tipme diagnose --pid PID. The one that waits should not do so on \
                the thread that answers you: report it.",
        see: "strace -f -T -p PID; ss -xp has who is connected with whom; busctl monitor for the message bus.",
        fault: Some("bus"),
    },
    KindWords {
        kind: CauseKind::NetworkWait,
        name: "Waiting for the network",
        of_process: Some("{app} had to wait for the network"),
        of_device: Some("{app} had to wait for {who} on the network"),
        what: "The program waited for another machine, or for a name to be looked up.",
        helps: "Check the network and the server; for names /etc/resolv.conf. A program should not wait for the \
                network on the thread that answers you: report it.",
        see: "ping and mtr to the address; ss -tpi for the connection; resolvectl query NAME for names.",
        fault: Some("network"),
    },
    KindWords {
        kind: CauseKind::ChildWait,
        name: "Waiting for a program that it had started",
        of_process: Some("{waiter} waited until {who} had ended"),
        of_device: None,
        what: "The program had started another one and waited until that had ended.",
        helps: "Nothing is wrong where you started it. Else the program should run it in the background: report it.",
        see: "pstree -p PID while it hangs; strace -f -e execve,wait4 -p PID.",
        fault: Some("child"),
    },
    KindWords {
        kind: CauseKind::TimerSleep,
        name: "Sleeping by itself",
        of_process: Some("{who} slept by itself instead of answering"),
        of_device: None,
        what: "The program slept for a time that it had chosen itself, instead of waiting for the next event.",
        helps: "Report it to its authors, or look at the script, macro or plug-in that has the sleep in it.",
        see: "strace -f -T -e clock_nanosleep,nanosleep,poll -p PID.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Stopped,
        name: "Stopped",
        of_process: None,
        of_device: None,
        what: "The program was not allowed to run: a signal had stopped it (as Ctrl-Z does), its control group was \
               frozen, a debugger held it, or the output of its terminal was stopped (as Ctrl-S does).",
        helps: "kill -CONT PID lets it go on; the verdict says who stopped it, and how to thaw a group.",
        see: "The column STAT of ps has T for stopped, t for a debugger; cgroup.freeze of its group in \
              /proc/PID/cgroup.",
        fault: Some("stopped"),
    },
    KindWords {
        kind: CauseKind::Interrupt,
        name: "Devices took the CPU",
        of_process: Some("interrupts of {who} took the CPU that {waiter} needed"),
        of_device: Some("interrupts ({who}) took the CPU that {waiter} needed"),
        what: "Devices interrupt whatever a CPU does, and the kernel's work for them comes first: network packets, \
               disk requests, timers. There was so much of it that programs could not run.",
        helps: "Spread or move the interrupts (irqbalance, /proc/irq/*/smp_affinity), update the driver, and look \
                for what causes the flood: traffic, a loose cable, a faulty device.",
        see: "watch -d cat /proc/interrupts and /proc/softirqs; the columns %irq and %soft of mpstat -P ALL 1.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Stall,
        name: "The machine itself stood still",
        of_process: None,
        of_device: None,
        what: "A CPU did nothing, though there was work for it, and no program of this machine explains that: the \
               hypervisor gave it to another machine, the firmware took it, or a device did not answer.",
        helps: "On a virtual machine: fewer guests on the host, or a larger share. On a real one: update the \
                firmware, switch off its power saving, look for overheating.",
        see: "The column st of top or vmstat 1; hwlatdetector measures what firmware takes; turbostat has the count \
              SMI.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Unattributed,
        name: "Not explained",
        of_process: None,
        of_device: None,
        what: "Time for which nothing was recorded. It is shown, and never spread over the causes.",
        helps: "Have more recorded: tipme record --detail waits, and see in tipme doctor --verbose what this kernel \
                lacks. Time that firmware takes shows up here too.",
        see: "tipme diagnose --verbose, and tipme diagnose --json with every step of the way back.",
        fault: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Minimum length of a useful text.
    const LETTERS_MIN: usize = 40;

    #[test]
    fn every_kind_tells_what_it_is_what_helps_and_how_to_see_it() {
        for kind in CauseKind::CAUSES.iter().chain([&CauseKind::Unattributed]) {
            let told = explanation(*kind, &Layout::default());
            let lines: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
            let [name, what, helps, helps_text, see, see_text] = lines[..] else { panic!("{kind}: {told}") };
            assert_eq!([name, helps, see], [kind.name(), "What helps", "See it yourself"]);
            for text in [what, helps_text, see_text] {
                assert!(text.len() > LETTERS_MIN && text.ends_with('.'), "{kind}: {text}");
            }
        }
    }

    #[test]
    fn every_kind_has_words_of_its_own() {
        let kinds: Vec<CauseKind> = ABOUT.iter().map(|about| about.kind).collect();
        assert_eq!(kinds, [CauseKind::CAUSES, &[CauseKind::Unattributed]].concat());
        let names: BTreeSet<&str> = ABOUT.iter().map(|about| about.name).collect();
        assert_eq!(names.len(), ABOUT.len());
    }

    #[test]
    fn it_fits_the_terminal() {
        let layout = Layout { columns: Some(60), ..Layout::default() };
        let all = CauseKind::CAUSES.iter().map(|kind| explanation(*kind, &layout)).collect::<String>();
        assert!(all.lines().all(|line| line.chars().count() <= 60), "{all}");
    }
}
