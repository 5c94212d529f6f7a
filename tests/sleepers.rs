// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of the running kernel that sleep under common system calls, checked against the
//! analysis's table of kernel functions. Needs root.
//!
//! `TIPME_BLESS=1 cargo test -p tipme-tests --test sleepers` writes
//! `docs/results/sleeping-functions.md`, which also states the limits of the method.

#[cfg(test)]
#[path = "sleepers/btf.rs"]
mod btf;
#[cfg(test)]
#[path = "sleepers/document.rs"]
mod document;
#[cfg(test)]
#[path = "sleepers/graph.rs"]
mod graph;
#[cfg(test)]
#[path = "sleepers/memory.rs"]
mod memory;

#[cfg(test)]
mod sleepers {
    use crate::btf::Types;
    use crate::document::{self, Sleepers};
    use crate::graph::{Address, Graph};
    use std::collections::BTreeSet;
    use tipme_analysis::kernel_function;

    /// System calls of files, mappings, sockets, event loops and futexes.
    const CALLS: &str = "open openat openat2 creat close read pread64 readv preadv preadv2 \
        write pwrite64 writev pwritev pwritev2 lseek stat lstat fstat newstat newlstat newfstat \
        newfstatat statx access faccessat getdents64 rename unlink unlinkat mkdir ftruncate \
        mmap mmap_pgoff munmap fsync fdatasync sync syncfs msync poll ppoll select pselect6 \
        epoll_wait epoll_pwait futex connect accept4 sendto sendmsg recvfrom recvmsg";

    /// Entry point of page faults.
    const FAULT: &str = "exc_page_fault";

    /// Operation tables through which these calls reach file systems, devices and sockets.
    const TABLES: [&str; 21] = [
        "file_operations",
        "inode_operations",
        "address_space_operations",
        "vm_operations_struct",
        "super_operations",
        "dentry_operations",
        "xattr_handler",
        "seq_operations",
        "kernfs_ops",
        "file_lock_operations",
        "lock_manager_operations",
        "fsnotify_ops",
        "pipe_buf_operations",
        "iomap_ops",
        "iomap_writeback_ops",
        "block_device_operations",
        "rq_qos_ops",
        "proto_ops",
        "proto",
        "tty_operations",
        "tty_ldisc_ops",
    ];

    /// Functions that are not followed: exits, panics and console output.
    const ENDS: &str = "do_exit do_group_exit get_signal make_task_dead panic vpanic oops_enter \
        emergency_restart kernel_restart handle_sysrq __handle_sysrq printk _printk vprintk";

    /// Generic sleeping functions outside the scheduler's section.
    const HELPERS: &str = "wait_woken msleep msleep_interruptible do_wait_intr do_wait_intr_irq";

    /// Functions in the scheduler's section with callers that need no row: contended locks and I/O
    /// waits are recorded as such, and a yield is no wait.
    const REPORTED: &str = "mutex_ __mutex_ ww_mutex_ __ww_mutex_ down __down rwsem_ percpu_down \
        __percpu_down rt_mutex_ io_schedule wait_for_completion_io preempt_schedule \
        __cond_resched __schedule schedule_idle yield up __up";

    /// Functions that call the scheduler to let another thread run.
    const YIELDS: &str = "exit_to_user_mode_loop irqentry_exit_to_user_mode xfer_to_guest_mode \
        do_sched_yield do_idle uprobe_notify_resume";

    fn is_in(name: &str, prefixes: &str) -> bool {
        prefixes.split_whitespace().any(|prefix| name.starts_with(prefix))
    }

    /// Finds the functions that sleep, and those among them without a row.
    fn sleepers(graph: &Graph, types: &Types) -> Sleepers {
        let scheduler = graph.between("__sched_text_start", "__sched_text_end");
        let helpers = HELPERS.split_whitespace().flat_map(|name| graph.places(name));
        let waits: BTreeSet<Address> = scheduler
            .iter()
            .filter(|at| !is_in(graph.name(**at), REPORTED))
            .chain(helpers)
            .copied()
            .collect();
        let inner =
            |at| scheduler.contains(&at) || waits.contains(&at) || is_in(graph.name(at), ENDS);
        let roots = roots(graph, types);
        let all = graph.reach(&roots, inner);
        let sleepers = all.keys().copied().filter(|at| {
            !inner(*at)
                && !is_in(graph.name(*at), YIELDS)
                && graph.calls(*at).any(|callee| waits.contains(&callee))
        });
        let decides =
            |at| kernel_function(graph.name(at)).is_some_and(|function| function.anywhere);
        let unnamed = graph.reach(&roots, |at| inner(at) || decides(at));
        let mut found =
            Sleepers { functions: graph.len(), reached: all.len(), ..Sleepers::default() };
        for at in sleepers {
            let name = graph.name(at).to_owned();
            match kernel_function(&name) {
                Some(function) => drop(
                    found.named.entry(format!("{:?}", function.waited)).or_default().insert(name),
                ),
                None if unnamed.contains_key(&at) => {
                    found.rest.push((name, graph.way(&unnamed, at)))
                }
                None => drop(found.by_callers.insert(name)),
            }
        }
        found
    }

    fn roots(graph: &Graph, types: &Types) -> BTreeSet<Address> {
        let calls = CALLS.split_whitespace().map(|call| format!("__x64_sys_{call}"));
        let named = calls.chain([FAULT.to_owned()]).flat_map(|name| graph.places(&name).to_vec());
        let callees = types.callees(&TABLES);
        let called = callees.keys().flat_map(|name| graph.places(name)).copied();
        named.chain(called).collect()
    }

    #[test]
    fn nearly_every_function_that_sleeps_has_a_row() {
        let graph = Graph::read().expect("root may read the kernel");
        let types = Types::read().expect("the kernel describes its types");
        let found = sleepers(&graph, &types);
        if std::env::var_os("TIPME_BLESS").is_some() {
            document::write(&found).expect("the document can be written");
        }
        let known = found.len() - found.rest.len();
        assert!(
            found.len() > 100,
            "the walk saw {} functions that sleep, and is blind",
            found.len()
        );
        assert!(
            known * 100 >= found.len() * 95,
            "{known} of {} have a row; these have none: {:#?}",
            found.len(),
            found.rest
        );
    }
}
