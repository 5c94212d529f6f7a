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
    /// Clause for a process, where `{culprit}` is the culprit, `{app}` the awaited application, and
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
    let mut out = layout.paint(Tone::Term, kind.name()) + "\n" + &layout.paragraph(about.what);
    for (title, text) in [("What helps", about.helps), ("See it yourself", about.see)] {
        out += &format!("\n{}\n", layout.paint(Tone::Strong, title));
        out += &layout.paragraph(text);
    }
    out
}

const ABOUT: [KindWords; 22] = [
    KindWords {
        kind: CauseKind::CpuCompetition,
        name: "Waiting for a CPU",
        of_process: Some("{culprit} took the CPU time that {waiter} needed"),
        of_device: None,
        what: "The program was ready to run, but other programs had the CPU (run-queue delay, or \
               scheduling latency). This happens when there are more runnable threads than CPUs, \
               or when others have a higher priority.",
        helps: "Give background work a low priority (nice, systemd-run -p CPUWeight=10) or fewer \
                threads (make -j2), or run tipme manage, which gives priority to the application \
                in use.",
        see: "top sorts by CPU use; /proc/pressure/cpu has the share of time in which something \
              waited for a CPU; perf sched timehist has the column \"sch delay\".",
        fault: Some("cpu"),
    },
    KindWords {
        kind: CauseKind::CpuThrottled,
        name: "Throttled by a CPU quota",
        of_process: Some("{culprit} used up the CPU quota of {waiter}'s control group"),
        of_device: None,
        what: "The program belongs to a control group (a container, a service, a slice) with a \
               quota of CPU time per period. The group had used up its quota, so the program was \
               throttled until the next period, even if a CPU was free.",
        helps: "Raise or remove the limit: systemctl set-property UNIT CPUQuota=, docker update \
                --cpus, or cpu.max of the group. More CPUs do not help.",
        see: "nr_throttled and throttled_usec in cpu.stat of the group; /proc/PID/cgroup names the \
              group.",
        fault: Some("quota"),
    },
    KindWords {
        kind: CauseKind::OwnComputation,
        name: "Computing",
        of_process: Some("{culprit} was busy computing"),
        of_device: None,
        what: "Nothing held the program up: it computed, longer than it usually does, and did not \
               get to your input meanwhile.",
        helps: "Give it less to do (a smaller file, fewer plug-ins), try a newer version, or \
                report it to its authors with the functions that the verdict names.",
        see: "perf top -p PID while it hangs; top shows it near 100% of a CPU.",
        fault: Some("computation"),
    },
    KindWords {
        kind: CauseKind::PageIn,
        name: "Reading part of a file back from disk",
        of_process: Some(
            "{waiter} was waiting for parts of a file to be read back into memory, because of \
             {culprit}",
        ),
        of_device: Some("{waiter} was waiting for parts of a file to be read from {culprit}"),
        what: "The program touched a page of an executable, a library or a mapped file that was \
               not in memory, and had to wait until it was read from the disk (a major page \
               fault). Such pages are dropped when memory is short, and are read slowly when \
               others keep the disk busy.",
        helps: "Move heavy disk work to another time or to the idle class (ionice -c 3), and keep \
                fewer programs in memory. A faster disk helps.",
        see: "The column majflt of pidstat -r -p PID 1; cat /proc/pressure/memory and \
              /proc/pressure/io.",
        fault: Some("page-in"),
    },
    KindWords {
        kind: CauseKind::SwapIn,
        name: "Reading memory back from swap",
        of_process: Some(
            "{waiter} was waiting for memory to be read back from swap, because of {culprit}",
        ),
        of_device: Some("{waiter} was waiting for memory to be read back from swap on {culprit}"),
        what: "Memory ran short earlier, and some of the program's memory was moved to swap. It \
               had to be read back before the program could continue.",
        helps: "Close unused programs, add memory, or limit the largest user of memory: \
                memory.high of its control group (systemctl set-property UNIT MemoryHigh=2G). zram \
                makes swap much faster.",
        see: "The column si of vmstat 1; VmSwap in /proc/PID/status.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Reclaim,
        name: "Waiting for memory to be freed",
        of_process: Some("memory ran short: {culprit} took what {waiter} needed"),
        of_device: Some("{culprit} was reached, and {waiter} had to wait"),
        what: "The program requested memory when hardly any was free. The kernel first had to \
               write or drop other pages (direct reclaim), or it throttled the program.",
        helps: "Limit the largest user of memory (memory.high of its control group), close unused \
                programs, or add memory.",
        see: "The line \"some\" of /proc/pressure/memory; allocstall and pgscan_direct in \
              /proc/vmstat.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::DiskQueue,
        name: "Waiting for a disk",
        of_process: Some("{culprit} saturated the disk that {app} was waiting for"),
        of_device: Some("{app} was waiting for {culprit}, which hardly anything else was using"),
        what: "The program was waiting for the disk. A disk serves a limited number of requests at \
               a time, and large writes fill its queue: later requests have to wait.",
        helps: "Put the other program's I/O into the idle class (ionice -c 3 -p PID), or limit it \
                (systemd-run -p IOWriteBandwidthMax=); a scheduler such as bfq in \
                /sys/block/*/queue/scheduler shares a slow disk fairly. If hardly anything else \
                used the disk, check its health: smartctl -a.",
        see: "iostat -x 1: the queue (aqu-sz) and the waits (r_await, w_await); iotop names the \
              processes.",
        fault: Some("io"),
    },
    KindWords {
        kind: CauseKind::IoHeldBack,
        name: "Held back before the disk",
        of_process: Some("I/O of {culprit} was held back before it reached a disk"),
        of_device: None,
        what: "The program was waiting for the disk, but for most of that time the disk had no \
               request. So its I/O was held back above the disk: by an I/O limit of its control \
               group (a container, a service, a slice), or by a layer between, such as the device \
               mapper or a network file system.",
        helps: "Raise or remove the limit: systemctl set-property UNIT IOReadBandwidthMax= \
                IOWriteBandwidthMax= IOReadIOPSMax= IOWriteIOPSMax=, or io.max of the group \
                (blkio.throttle.* of cgroup v1). A faster disk does not help.",
        see: "io.max and io.stat of the group named by /proc/PID/cgroup and of its parents; \
              io.pressure there grows while iostat -x 1 shows an idle disk (%util).",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Fsync,
        name: "Waiting for a flush to disk",
        of_process: Some(
            "{app} was waiting for data to be flushed to the disk, which {culprit} kept busy",
        ),
        of_device: Some("{app} was waiting for data to be flushed to {culprit}"),
        what: "The program waited until its data were safely on the disk (fsync, or a journal \
               commit). This takes as long as the disk needs for everything written before.",
        helps: "Write less meanwhile (ionice -c 3 for backups and copies), lower vm.dirty_bytes so \
                that fewer dirty pages accumulate, or use a disk with a fast cache. An application \
                should call fsync on another thread: report it.",
        see: "strace -f -T -e fsync,fdatasync -p PID shows how long each took; w_await of iostat \
              -x 1.",
        fault: Some("fsync"),
    },
    KindWords {
        kind: CauseKind::LockWait,
        name: "Waiting for a lock",
        of_process: Some("{culprit} held a lock that {app} was waiting for"),
        of_device: None,
        what: "Two threads or programs share something that only one may use at a time (a lock), \
               or one waits for a signal of the other (a condition or semaphore). The other held \
               the lock, or did not signal, while it slept, computed or waited itself.",
        helps: "Report it to the authors of the other program, and say what that program was doing at the time. For \
                lock files: end or finish the other program.",
        see: "strace -f -T -e futex,flock,fcntl -p PID; lslocks for file locks; gdb -p PID for the \
              holder.",
        fault: Some("lock"),
    },
    KindWords {
        kind: CauseKind::KernelLock,
        name: "Waiting for a kernel lock",
        of_process: Some("{culprit} held a kernel lock that {app} was waiting for"),
        of_device: None,
        what: "The kernel lets only one thread at a time change some things: the memory map of a \
               process, a folder, a file. Another thread held the lock.",
        helps: "Reduce the contention: fewer threads that map and unmap memory, fewer files per \
                folder. A newer kernel may have finer locks.",
        see: "perf lock contention -a -b while it happens; /proc/PID/stack of the waiting process.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::KernelWait,
        name: "Waiting inside the kernel",
        of_process: None,
        of_device: None,
        what: "The program made a system call and slept inside the kernel. tipme has no category \
               for this wait; the verdict names the kernel function and the system call instead.",
        helps: "Look up the kernel function that the verdict names: it belongs to a driver, a file \
                system or a security module, where a setting or an update may help.",
        see: "cat /proc/PID/stack as root while it hangs; strace -T -p PID for the system call.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::ServerBusy,
        name: "The display server was busy",
        of_process: Some("the display server was busy drawing for {culprit}"),
        of_device: None,
        what: "All programs share one display server, which delivers keys and draws windows. It \
               was busy with the drawing requests of another program, and other programs had to \
               wait.",
        helps: "Close the other program or reduce its drawing (animations, very large pictures); \
                lower its priority, so that its requests arrive in smaller portions. An \
                accelerated driver draws faster.",
        see: "top shows Xorg or Xwayland near 100%; xrestop lists the resources of each program \
              there.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::ServerGrab,
        name: "The display was grabbed by another program",
        of_process: Some("{culprit} had grabbed the whole display"),
        of_device: None,
        what: "A program may briefly reserve the display server (a grab): no other program is \
               served meanwhile. This grab lasted too long.",
        helps: "End the program, which releases the grab; report it to its authors.",
        see: "xtrace -n PROGRAM shows GrabServer and UngrabServer of a program that it starts.",
        fault: Some("grab"),
    },
    KindWords {
        kind: CauseKind::PeerWait,
        name: "Waiting for another program",
        of_process: Some("{app} was waiting for an answer from {culprit}"),
        of_device: None,
        what: "The program had sent a request to another one on this machine (over a socket, a \
               pipe, the message bus) and did not continue before the answer arrived.",
        helps: "See why the other program was slow: tipme diagnose --pid PID. The waiting program \
                should not block the thread that handles your input: report it.",
        see: "strace -f -T -p PID; ss -xp lists connections; busctl monitor for the message bus.",
        fault: Some("bus"),
    },
    KindWords {
        kind: CauseKind::NetworkWait,
        name: "Waiting for the network",
        of_process: Some("{app} was waiting for the network"),
        of_device: Some("{app} was waiting for {culprit} on the network"),
        what: "The program was waiting for another machine, or for a name lookup.",
        helps: "Check the network and the server; for name lookups, /etc/resolv.conf. A program \
                should not wait for the network on the thread that handles your input: report it.",
        see: "ping and mtr to the address; ss -tpi for the connection; resolvectl query NAME for \
              names.",
        fault: Some("network"),
    },
    KindWords {
        kind: CauseKind::ChildWait,
        name: "Waiting for a child process",
        of_process: Some("{waiter} was waiting for {culprit} to finish"),
        of_device: None,
        what: "The program had started another one and waited for it to finish.",
        helps: "Nothing is wrong if you started it. Otherwise the program should run it in the \
                background: report it.",
        see: "pstree -p PID while it hangs; strace -f -e execve,wait4 -p PID.",
        fault: Some("child"),
    },
    KindWords {
        kind: CauseKind::TimerSleep,
        name: "Sleeping on a timer",
        of_process: Some("{culprit} slept on a timer instead of responding"),
        of_device: None,
        what: "The program slept for a time of its own choice instead of waiting for the next \
               event.",
        helps: "Report it to its authors, or look for the sleep in a script, macro or plug-in.",
        see: "strace -f -T -e clock_nanosleep,nanosleep,poll -p PID.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Stopped,
        name: "Stopped",
        of_process: None,
        of_device: None,
        what: "The program was not allowed to run: a signal had stopped it (as Ctrl-Z does), its \
               control group was frozen, a debugger held it, or the output of its terminal was \
               stopped (as Ctrl-S does).",
        helps: "kill -CONT PID continues it; the verdict names what stopped it, and how to thaw a \
                group.",
        see: "The STAT column of ps shows T for stopped and t for traced by a debugger. For a frozen group, read cgroup.freeze of the group in /proc/PID/cgroup.",
        fault: Some("stopped"),
    },
    KindWords {
        kind: CauseKind::Interrupt,
        name: "Interrupts took the CPU",
        of_process: Some("interrupts of {culprit} took the CPU that {waiter} needed"),
        of_device: Some("interrupts ({culprit}) took the CPU that {waiter} needed"),
        what: "Devices interrupt a CPU, and the kernel handles them first: network packets, disk \
               requests, timers. There were so many that programs could not run.",
        helps: "Spread or move the interrupts (irqbalance, /proc/irq/*/smp_affinity), update the \
                driver, and look for the source: traffic, a loose cable, a faulty device.",
        see: "watch -d cat /proc/interrupts and /proc/softirqs; the columns %irq and %soft of \
              mpstat -P ALL 1.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Stall,
        name: "The machine itself stood still",
        of_process: None,
        of_device: None,
        what: "A CPU made no progress although it had work, and no program on this machine \
               explains that: the hypervisor gave it to another machine, the firmware took it, or \
               a device did not respond.",
        helps: "On a virtual machine: fewer guests on the host, or a larger share. On a real one: \
                update the firmware, switch off its power saving, look for overheating.",
        see: "The column st of top or vmstat 1; hwlatdetector measures the time taken by firmware; \
              turbostat counts SMIs.",
        fault: None,
    },
    KindWords {
        kind: CauseKind::Unattributed,
        name: "Not explained",
        of_process: None,
        of_device: None,
        what: "Time that no record explains. It is shown as such, and never spread over the \
               causes.",
        helps: "Record more: tipme record --detail waits; tipme doctor --verbose lists what this \
                kernel lacks. Time taken by firmware shows up here too.",
        see: "tipme diagnose --verbose, and tipme diagnose --json with every step of the critical \
              path.",
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
    fn every_kind_is_explained_with_remedies_and_tools() {
        for kind in CauseKind::CAUSES.iter().chain([&CauseKind::Unattributed]) {
            let text = explanation(*kind, &Layout::default());
            let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            let [name, what, helps, helps_text, see, see_text] = lines[..] else {
                panic!("{kind}: {text}")
            };
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
        let all =
            CauseKind::CAUSES.iter().map(|kind| explanation(*kind, &layout)).collect::<String>();
        assert!(all.lines().all(|line| line.chars().count() <= 60), "{all}");
    }
}
