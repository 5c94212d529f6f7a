// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each kind of cause is, what usually helps, and how anybody can see it without tipme.

use crate::layout::{Layout, Tone};
use tipme_analysis::model::Kind;

/// What is told of one kind.
struct About {
    kind: Kind,
    what: &'static str,
    helps: &'static str,
    see: &'static str,
}

/// A kind in a few sentences; those of [`Kind::Unattributed`] too, which is a share of a verdict but never a cause.
pub fn explanation(kind: Kind, layout: &Layout) -> String {
    let Some(about) = ABOUT.iter().find(|about| about.kind == kind) else { return String::new() };
    let parts = [("What helps", about.helps), ("See it yourself", about.see)];
    let head = layout.paint(Tone::Term, kind.name()) + "\n" + &layout.paragraph(about.what);
    let tell =
        |(name, text): (&str, &str)| format!("\n{}\n{}", layout.paint(Tone::Strong, name), layout.paragraph(text));
    parts.into_iter().fold(head, |told, part| told + &tell(part))
}

const ABOUT: [About; 20] = [
    About {
        kind: Kind::CpuCompetition,
        what: "The program was ready to go on, but other programs had the CPU. This happens when more threads want to \
               run than there are CPUs, or when others have a higher priority.",
        helps: "Give the work in the background a low priority (nice, systemd-run -p CPUWeight=10), let it use fewer \
                threads (make -j2), or run tipme manage, which puts what you use first.",
        see: "top sorts by CPU use; cat /proc/pressure/cpu tells how much of the time something waited for a CPU; perf \
              sched timehist has the column \"sch delay\".",
    },
    About {
        kind: Kind::CpuThrottled,
        what: "The program belongs to a control group (a container, a service, a slice) that may use only so much CPU \
               time in each period. It had used that up and was not let run until the next period, though a CPU may \
               have been free.",
        helps: "Raise or remove the limit: systemctl set-property UNIT CPUQuota=, docker update --cpus, or cpu.max of \
                the group. More CPUs do not help.",
        see: "nr_throttled and throttled_usec in cpu.stat of the group, which /proc/PID/cgroup names.",
    },
    About {
        kind: Kind::OwnComputation,
        what: "Nobody held the program up: it ran, and longer than it usually does.",
        helps: "Give it less to do (a smaller file, fewer plug-ins, a newer version), or report it to its authors with \
                the functions that the verdict names.",
        see: "perf top -p PID while it hangs; top shows it near 100 % of a CPU.",
    },
    About {
        kind: Kind::PageIn,
        what: "The program touched a part of a program file, a library or a mapped file that was not in memory, and had \
               to wait until it was read from the disk. Such parts are dropped when memory is short, and are read \
               slowly when others keep the disk busy.",
        helps: "Move heavy disk work to another time or to the idle class (ionice -c 3), and have less in memory at a \
                time. A faster disk makes it rarer.",
        see: "The column majflt of pidstat -r -p PID 1; cat /proc/pressure/memory and /proc/pressure/io.",
    },
    About {
        kind: Kind::SwapIn,
        what: "Memory of the program had been moved to the swap device, and had to be fetched back.",
        helps: "Close what you do not use, add memory, or limit what takes it: memory.high of its control group \
                (systemctl set-property UNIT MemoryHigh=2G). zram makes swap much faster.",
        see: "The column si of vmstat 1; VmSwap in /proc/PID/status.",
    },
    About {
        kind: Kind::Reclaim,
        what: "The program asked for memory when hardly any was free, and had to make room itself first: the kernel wrote \
               or dropped other pages while it waited.",
        helps: "Limit what takes the memory (memory.high of its control group), close what you do not use, or add \
                memory.",
        see: "The line \"some\" of /proc/pressure/memory; allocstall and pgscan_direct in /proc/vmstat.",
    },
    About {
        kind: Kind::DiskQueue,
        what: "The program waited for the disk, and requests of others were ahead of its own. A disk serves only so many \
               at a time, and large writes fill its queue.",
        helps: "Give the other program's disk work the idle class (ionice -c 3 -p PID), or limit it (systemd-run -p \
                IOWriteBandwidthMax=); a scheduler such as bfq in /sys/block/*/queue/scheduler shares a slow disk \
                fairly. Where nobody else used it, look at its health: smartctl -a.",
        see: "iostat -x 1: the queue (aqu-sz) and the waits (r_await, w_await); iotop names who.",
    },
    About {
        kind: Kind::Fsync,
        what: "The program asked that its data be safe on the disk before it went on (fsync, or a journal commit). That \
               takes as long as the disk needs for all that was written before.",
        helps: "Less writing meanwhile (ionice -c 3 for backups and copies), smaller vm.dirty_bytes so that less is held \
                back, a disk with a fast cache. An application should do it on another thread: report it.",
        see: "strace -f -T -e fsync,fdatasync -p PID shows how long each took; w_await of iostat -x 1.",
    },
    About {
        kind: Kind::LockWait,
        what: "Two threads or programs share something that only one may use at a time. The other one had it, and kept \
               it while it slept, computed or waited itself.",
        helps: "Report it to the authors of the program that held the lock, with what it did meanwhile. For lock files: \
                end or finish the other program.",
        see: "strace -f -T -e futex,flock,fcntl -p PID; lslocks for locks of files; gdb -p PID for who holds it.",
    },
    About {
        kind: Kind::KernelLock,
        what: "The kernel itself lets only one thread at a time change some things: the memory map of a process, a \
               folder, a file. Another thread was at it.",
        helps: "Less of what takes the lock: fewer threads that map and unmap memory, no folder with a great many files. \
                A newer kernel may have finer locks.",
        see: "perf lock contention -a -b while it happens; cat /proc/PID/stack of the one that waits.",
    },
    About {
        kind: Kind::ServerBusy,
        what: "Everything on the screen is drawn by one display server. It was busy with what another program had asked \
               it to draw, so that nobody else could be served.",
        helps: "Close or calm the other program (animations, very large pictures); give it a lower priority, so that its \
                requests come in smaller portions. A driver with acceleration draws faster.",
        see: "top shows Xorg or Xwayland near 100 %; xrestop has what each program keeps there.",
    },
    About {
        kind: Kind::ServerGrab,
        what: "A program may keep the display server for itself for a moment (a grab): nobody else is drawn meanwhile. It \
               kept it too long.",
        helps: "End the program, which releases the grab; report it to its authors.",
        see: "xtrace -n PROGRAM shows GrabServer and UngrabServer of a program that it starts.",
    },
    About {
        kind: Kind::PeerWait,
        what: "The program had asked another one on this machine for something (over a socket, a pipe, the message bus) \
               and did not go on before it had the answer.",
        helps: "See why the other program was slow: tipme diagnose --pid PID. The one that waits should not do so on the \
                thread that answers you: report it.",
        see: "strace -f -T -p PID; ss -xp has who is connected with whom; busctl monitor for the message bus.",
    },
    About {
        kind: Kind::NetworkWait,
        what: "The program waited for another machine, or for a name to be looked up.",
        helps: "Check the network and the server; for names /etc/resolv.conf. A program should not wait for the network \
                on the thread that answers you: report it.",
        see: "ping and mtr to the address; ss -tpi for the connection; resolvectl query NAME for names.",
    },
    About {
        kind: Kind::ChildWait,
        what: "The program had started another one and waited until that had ended.",
        helps: "Nothing is wrong where you started it. Else the program should run it in the background: report it.",
        see: "pstree -p PID while it hangs; strace -f -e execve,wait4 -p PID.",
    },
    About {
        kind: Kind::TimerSleep,
        what: "The program slept for a time that it had chosen itself, instead of waiting for the next event.",
        helps: "Report it to its authors, or look at the script, macro or plug-in that has the sleep in it.",
        see: "strace -f -T -e clock_nanosleep,nanosleep,poll -p PID.",
    },
    About {
        kind: Kind::Stopped,
        what: "The program was not allowed to run: a signal had stopped it (as Ctrl-Z does), its control group was \
               frozen, or a debugger held it.",
        helps: "kill -CONT PID lets it go on; the verdict says who stopped it, and how to thaw a group.",
        see: "The column STAT of ps has T for stopped, t for a debugger; cgroup.freeze of its group in /proc/PID/cgroup.",
    },
    About {
        kind: Kind::Interrupt,
        what: "Devices interrupt whatever a CPU does, and the kernel's work for them comes first: network packets, disk \
               requests, timers. There was so much of it that programs could not run.",
        helps: "Spread or move the interrupts (irqbalance, /proc/irq/*/smp_affinity), update the driver, and look for \
                what causes the flood: traffic, a loose cable, a faulty device.",
        see: "watch -d cat /proc/interrupts and /proc/softirqs; the columns %irq and %soft of mpstat -P ALL 1.",
    },
    About {
        kind: Kind::Stall,
        what: "A CPU did nothing, though there was work for it, and no program of this machine explains that: the \
               hypervisor gave it to another machine, or the firmware took it.",
        helps: "On a virtual machine: fewer guests on the host, or a larger share. On a real one: update the firmware, \
                switch off its power saving, look for overheating.",
        see: "The column st of top or vmstat 1; hwlatdetector measures what firmware takes; turbostat has the count SMI.",
    },
    About {
        kind: Kind::Unattributed,
        what: "Time for which nothing was recorded. It is shown, and never spread over the causes.",
        helps: "Have more recorded: tipme record --detail waits, and see in tipme doctor --verbose what this kernel \
                lacks. Time that firmware takes shows up here too.",
        see: "tipme diagnose --verbose, and tipme diagnose --json with every step of the way back.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Shorter texts explain nothing.
    const LETTERS_MIN: usize = 40;

    #[test]
    fn every_kind_tells_what_it_is_what_helps_and_how_to_see_it() {
        for kind in Kind::CAUSES.iter().chain([&Kind::Unattributed]) {
            let told = explanation(*kind, &Layout::default());
            let lines: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
            let [name, what, helps, helps_text, see, see_text] = lines[..] else { panic!("{kind}: {told}") };
            assert_eq!([name, helps, see], [kind.name(), "What helps", "See it yourself"]);
            for text in [what, helps_text, see_text] {
                assert!(text.len() > LETTERS_MIN && text.ends_with('.'), "{kind}: {text}");
            }
        }
        assert_eq!(ABOUT.len(), Kind::CAUSES.len() + 1, "a kind is told twice");
    }

    #[test]
    fn it_fits_the_terminal() {
        let layout = Layout { columns: Some(60), ..Layout::default() };
        let all = Kind::CAUSES.iter().map(|kind| explanation(*kind, &layout)).collect::<String>();
        assert!(all.lines().all(|line| line.chars().count() <= 60), "{all}");
    }
}
