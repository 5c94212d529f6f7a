// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for devices: the owner of the requests, and the cause of their delay.

#[path = "support/stall.rs"]
mod stall;
mod support;

use stall::{NEIGHBOUR, culprit, first, stall};
use support::{APP, Machinery, VDA};
use tipme_analysis::model::{CauseKind, Culprit, Verdict};
use tipme_record::incident::{FileName, IoLimit, Loss};

fn kinds(verdict: &Verdict) -> Vec<CauseKind> {
    verdict.findings.iter().map(|finding| finding.kind).collect()
}

/// The editor waits for one page from 3.005 to 3.995 s, and no other process uses the disk.
fn page_in(machine: &mut Machinery) {
    page_in_from(machine, 3_004_900);
}

/// The same, but the disk gets the request only at `reached`.
fn page_in_from(machine: &mut Machinery, reached: u64) {
    page_in_of(machine, reached, 4_096);
}

/// The same, with a read of `bytes`.
fn page_in_of(machine: &mut Machinery, reached: u64, bytes: u32) {
    machine.block(3_994_990, APP, reached, bytes, 0);
    page_wait(machine);
}

/// The same without a block request, as for a file of a remote file system.
fn page_wait(machine: &mut Machinery) {
    let stack = machine.stack(&[
        "__schedule",
        "io_schedule",
        "folio_wait_bit_common",
        "filemap_fault",
        "__do_fault",
    ]);
    machine.switch(3_005_000, 1, 0, 0x8002);
    machine.wake_from(3_995_000, APP, 0, 2, 1).wait(3_995_002, APP, 3_005_000, |wait| {
        (wait.stack, wait.syscall, wait.state, wait.context) = (stack, -1, 0x8002, 2);
        (wait.device, wait.inode, wait.mode) = (VDA, 77, 0x8000);
    });
    machine.switch(3_995_050, 1, APP, 0);
    machine.files =
        vec![FileName { device: VDA.0, inode: 77, path: "/usr/lib/x/libfoo.so".to_owned() }];
}

#[test]
fn a_page_in_names_its_file_and_the_process_that_evicted_it() {
    let verdict = stall(|machine| {
        page_in(machine);
        machine.reclaim(1_500_000, NEIGHBOUR, 0, 0, 0).reclaim(1_550_000, NEIGHBOUR, 0, 1, 4_000);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::PageIn, NEIGHBOUR));
    assert!(
        finding.evidence[0].contains("neighbour (pid 500) took memory"),
        "{:?}",
        finding.evidence
    );
    let detail = &verdict.partition[0].detail;
    assert_eq!(detail, "waited for the page-in of /usr/lib/x/libfoo.so");
}

/// The editor reads one page after the other: each wait takes half a millisecond, and so does the
/// work in between, which is sampled in a kernel function.
fn many_page_ins(function: &str) -> Verdict {
    stall(|machine| {
        let faults =
            ["__schedule", "io_schedule", "folio_wait_bit_common", "filemap_fault", "__do_fault"];
        let (stack, sampled) =
            (machine.stack(&faults), machine.stack(&["iowrite16", function, "filemap_fault"]));
        for out in (3_005_000..3_995_000).step_by(1_000) {
            machine.switch(out, 1, 0, 0x8002).block(out + 490, APP, out + 10, 4_096, 0);
            machine.wake_from(out + 500, APP, 0, 2, 1).wait(out + 502, APP, out, |wait| {
                (wait.stack, wait.syscall, wait.state, wait.context) = (stack, -1, 0x8002, 2);
                (wait.device, wait.inode, wait.mode) = (VDA, 77, 0x8000);
            });
            machine.switch(out + 505, 1, APP, 0).kernel_sample(out + 800, APP, sampled);
        }
    })
}

#[test]
fn many_quick_requests_make_no_slow_device() {
    let verdict = many_page_ins("blk_mq_flush_plug_list");
    assert_eq!(kinds(&verdict), [CauseKind::PageIn], "making a request belongs to it");
    let finding = first(&verdict);
    assert!(
        finding.ms > 900.0 && finding.remedy.contains("one request after the other"),
        "{finding:?}"
    );
    assert!(first(&stall(page_in)).remedy.contains("device itself is slow"));
    let verdict = many_page_ins("copy_page");
    assert!(kinds(&verdict).contains(&CauseKind::OwnComputation), "{:?}", kinds(&verdict));
}

#[test]
fn what_no_disk_had_got_was_held_back_before_it() {
    let verdict = stall(|machine| {
        page_in_from(machine, 3_904_900);
        machine.block(3_150_000, NEIGHBOUR, 3_100_000, 4_096, 1);
        machine.block(3_160_000, NEIGHBOUR, 3_140_000, 4_096, 1);
    });
    let finding = first(&verdict);
    assert_eq!(
        (finding.kind, culprit(finding).0, kinds(&verdict).len()),
        (CauseKind::IoHeldBack, APP, 1)
    );
    let held = "I/O of editor (pid 200) was held back before it reached vda, which was idle \
                for 840 ms of 990 ms";
    let waited = "editor (pid 200) waited for the page-in of /usr/lib/x/libfoo.so, at most 990 ms";
    assert_eq!(finding.evidence, [held, waited]);
    assert!(finding.remedy.contains("/proc/200/cgroup (io.max"), "{}", finding.remedy);
    let busy = stall(|machine| {
        page_in_from(machine, 3_904_900);
        machine.block(3_700_000, NEIGHBOUR, 3_100_000, 4_096, 1);
    });
    assert_eq!((first(&busy).kind, culprit(first(&busy)).0), (CauseKind::PageIn, NEIGHBOUR));
    let lost = stall(|machine| {
        page_in_from(machine, 3_904_900);
        let loss =
            Loss { until_ns: support::BEGIN + 3_500_000_000, class: "rare".to_owned(), count: 9 };
        machine.losses.per_second.push(loss);
    });
    assert_eq!(
        first(&lost).kind,
        CauseKind::PageIn,
        "the request may be one of those that were lost"
    );
    let elsewhere = stall(|machine| {
        page_wait(machine);
        machine.block(3_160_000, NEIGHBOUR, 3_140_000, 4_096, 1);
    });
    assert_eq!(first(&elsewhere).kind, CauseKind::PageIn, "no disk was asked");
}

/// A process provides the page, like a file system in user space, while a disk completes an
/// unrelated request.
#[test]
fn a_page_from_a_process_is_not_blamed_on_a_disk() {
    const DAEMON: u32 = 600;
    let verdict = stall(|machine| {
        let stack =
            machine.stack(&["io_schedule", "folio_wait_bit_common", "filemap_fault", "__do_fault"]);
        machine.task(DAEMON, DAEMON, 1, "cloudfs", 1).wake_from(3_004_000, DAEMON, APP, 0, 0);
        machine.switch(3_004_500, 0, DAEMON, 0).switch(3_005_000, 1, 0, 0x8002);
        machine.block(3_994_990, NEIGHBOUR, 3_990_000, 4_096, 1);
        machine.wake_from(3_995_000, APP, DAEMON, 0, 1).wait(3_995_002, APP, 3_005_000, |wait| {
            (wait.stack, wait.syscall, wait.state) = (stack, -1, 0x8002);
        });
        machine.switch(3_995_010, 0, 0, 1).switch(3_995_050, 1, APP, 0);
    });
    assert_eq!((first(&verdict).kind, culprit(first(&verdict)).0), (CauseKind::PeerWait, DAEMON));
}

/// The kernel throttles the editor in a write to the disk, as it did with the neighbour before,
/// since there are too many dirty pages.
fn throttled(machine: &mut Machinery) {
    let stack = machine.stack(&[
        "balance_dirty_pages",
        "generic_perform_write",
        "ext4_buffered_write_iter",
    ]);
    for at in 0..50 {
        machine.reclaim(1_500_000 + at * 30_000, NEIGHBOUR, 2, 0, 30);
    }
    machine.reclaim(3_004_990, APP, 2, 0, 990).switch(3_005_000, 1, 0, 0x8002);
    machine.wake_from(3_995_000, APP, 0, 2, 1).wait(3_995_002, APP, 3_005_000, |wait| {
        (wait.stack, wait.syscall, wait.state, wait.device) = (stack, 1, 0x8002, VDA);
    });
    machine.switch(3_995_050, 1, APP, 0);
}

#[test]
fn a_throttled_writer_waits_for_the_disk_not_for_memory() {
    const WRITEBACK: u32 = 60;
    let busy = stall(|machine| {
        throttled(machine);
        machine.task(WRITEBACK, WRITEBACK, 2, "kworker/u8:2", 1);
        machine.block(3_990_000, WRITEBACK, 3_010_000, 4_000_000, 1);
    });
    assert_eq!((first(&busy).kind, culprit(first(&busy)).0), (CauseKind::DiskQueue, NEIGHBOUR));
    assert!(
        first(&busy).evidence[0].contains("1 write (3.8 MiB) queued on vda"),
        "{:?}",
        first(&busy).evidence
    );
    let idle = stall(|machine| {
        throttled(machine);
        machine.block(3_500_000, NEIGHBOUR, 3_490_000, 4_096, 1);
        let limit = IoLimit { write: true, per_second: 4_096, ..read_limit(1) };
        machine.io_limited(LOWER, &[limit], &[NEIGHBOUR]);
    });
    assert_eq!((first(&idle).kind, culprit(first(&idle)).0), (CauseKind::IoHeldBack, NEIGHBOUR));
    assert_eq!(first(&idle).evidence[1], format!("{LOWER}: at most 4.0 KiB/s written to vda"));
    assert!(first(&idle).confidence >= tipme_analysis::SURE);
}

/// A page is read beside this number of writers, each a job of its own, that write `bytes` each
/// while it waits.
fn page_in_beside(writers: u32, bytes: u32) -> Verdict {
    stall(|machine| {
        page_in_of(machine, 3_006_000, 4_000_000);
        for pid in 501..501 + writers {
            machine.task(pid, pid, 1, "writer", 1).block(3_900_000, pid, 3_010_000, bytes, 1);
        }
    })
}

#[test]
fn many_writers_that_fill_a_disk_only_together_are_the_cause() {
    let verdict = page_in_beside(6, 2_000_000);
    let finding = first(&verdict);
    assert!(
        finding.kind == CauseKind::PageIn && (501..507).contains(&culprit(finding).0),
        "{finding:?}"
    );
    assert!(
        finding.evidence[0].ends_with("; 5 other jobs had 5 writes (9.5 MiB)"),
        "{:?}",
        finding.evidence
    );
    assert!(
        finding.remedy.ends_with("; the same for the other 5 jobs, or run fewer at a time"),
        "{}",
        finding.remedy
    );
    let hardly = page_in_beside(6, 100_000);
    assert!(
        matches!(first(&hardly).culprit, Culprit::Device { .. }),
        "{:?}",
        first(&hardly).culprit
    );
}

const MIB: u64 = 1 << 20;
const LOWER: &str = "/sys/fs/cgroup/user.slice/box";

/// A limit on reads from the disk.
fn read_limit(per_second: u64) -> IoLimit {
    IoLimit { device: VDA.0, per_second, ..IoLimit::default() }
}

/// A read of 1 MiB is delayed by the given groups.
fn held_back_in(groups: impl Fn(&mut Machinery)) -> Verdict {
    stall(|machine| {
        page_in_of(machine, 3_904_900, MIB as u32);
        groups(machine);
    })
}

#[test]
fn a_limit_on_io_that_was_reached_is_named_and_how_it_is_lifted() {
    let verdict = held_back_in(|machine| {
        machine.io_limited("/sys/fs/cgroup/user.slice", &[read_limit(MIB)], &[APP]);
        let operations = IoLimit { operations: true, ..read_limit(2) };
        machine.io_limited(LOWER, &[operations], &[APP]);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::IoHeldBack, APP));
    let limits = [
        "/sys/fs/cgroup/user.slice: at most 1.0 MiB/s read from vda",
        "/sys/fs/cgroup/user.slice/box: at most 2 reads/s from vda",
    ];
    assert_eq!(finding.evidence[1..3], limits);
    let lift = "lift the limit: systemctl set-property user.slice IOReadBandwidthMax= (or, where \
                systemd did not set it, raise the value in /sys/fs/cgroup/user.slice/io.max)";
    assert_eq!(finding.remedy, lift);
}

#[test]
fn the_limit_of_a_group_that_is_no_unit_is_raised_in_its_file() {
    let verdict = held_back_in(|machine| {
        machine.io_limited(LOWER, &[read_limit(MIB)], &[APP]);
    });
    let raise =
        "raise /sys/fs/cgroup/user.slice/box/io.max: it allows at most 1.0 MiB/s read from vda";
    assert_eq!(first(&verdict).remedy, raise);
}

#[test]
fn a_limit_that_cannot_have_held_it_back_is_not_named() {
    let none = held_back_in(|_| {});
    let elsewhere = IoLimit { device: VDA.0 + 16, ..read_limit(MIB) };
    let writes = IoLimit { write: true, ..read_limit(1) };
    let cases = [
        ("it was not reached", read_limit(64 * MIB), APP),
        ("of another device", elsewhere, APP),
        ("of writes", writes, APP),
        ("of another program's group", read_limit(MIB), NEIGHBOUR),
    ];
    for (why, limit, tid) in cases {
        let verdict = held_back_in(|machine| {
            machine.io_limited(LOWER, std::slice::from_ref(&limit), &[tid]);
        });
        let (found, usual) = (first(&verdict), first(&none));
        assert_eq!(
            (found.kind, &found.evidence, &found.remedy),
            (usual.kind, &usual.evidence, &usual.remedy),
            "{why}"
        );
    }
    assert!(first(&none).remedy.contains("/proc/200/cgroup (io.max"), "{}", first(&none).remedy);
}

#[test]
fn memory_that_nobody_lacked_evicts_nothing() {
    let usual = stall(page_in);
    assert!(matches!(first(&usual).culprit, Culprit::Device { .. }));
    let verdict = stall(|machine| {
        page_in(machine);
        let stack = machine.stack(&["clear_page_erms", "do_anonymous_page"]);
        for sample in 0..50 {
            machine.kernel_sample(1_000_000 + sample * 10_000, NEIGHBOUR, stack);
        }
    });
    let culprit = &first(&verdict).culprit;
    assert!(matches!(culprit, Culprit::Device { .. }), "allocating alone takes nothing away");
}
