// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel programs, by class. One line here is all that a new program needs.

/// How a program is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hook {
    /// A BTF tracepoint of this name.
    Tracepoint(&'static str),
    /// A CPU clock event on every CPU.
    Clock,
    /// The walk over all tasks, run at a mark.
    Walk,
}

/// One kernel program.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) hook: Hook,
    /// Classes other than [`REQUIRED`] can be switched off, and may be missing on a kernel.
    pub(crate) class: &'static str,
}

/// The class without which nothing can be recorded.
pub(crate) const REQUIRED: &str = "tasks";

const fn tracepoint(name: &'static str, tracepoint: &'static str, class: &'static str) -> Program {
    Program { name, hook: Hook::Tracepoint(tracepoint), class }
}

/// All programs; identity first, so that no task is switched to before it is known.
pub(crate) const PROGRAMS: &[Program] = &[
    tracepoint("fork", "sched_process_fork", REQUIRED),
    tracepoint("exec", "sched_process_exec", REQUIRED),
    tracepoint("exit_task", "sched_process_exit", REQUIRED),
    tracepoint("rename", "task_rename", REQUIRED),
    Program { name: "walk_tasks", hook: Hook::Walk, class: REQUIRED },
    tracepoint("sched_switch", "sched_switch", REQUIRED),
    tracepoint("sched_waking", "sched_waking", REQUIRED),
    tracepoint("sched_migrate_task", "sched_migrate_task", REQUIRED),
    tracepoint("message_sent", "sock_send_length", "display"),
    tracepoint("message_taken", "sock_recv_length", "display"),
    tracepoint("tty_written", "workqueue_queue_work", "terminals"),
    tracepoint("tty_delivered", "workqueue_execute_start", "terminals"),
    tracepoint("irq_entry", "irq_handler_entry", "interrupts"),
    tracepoint("irq_exit", "irq_handler_exit", "interrupts"),
    tracepoint("softirq_entry", "softirq_entry", "interrupts"),
    tracepoint("softirq_exit", "softirq_exit", "interrupts"),
    tracepoint("timer_entry", "local_timer_entry", "timers"),
    tracepoint("timer_exit", "local_timer_exit", "timers"),
    tracepoint("call_entry", "call_function_single_entry", "timers"),
    tracepoint("call_exit", "call_function_single_exit", "timers"),
    tracepoint("block_insert", "block_rq_insert", "block"),
    tracepoint("block_issue", "block_rq_issue", "block"),
    tracepoint("block_complete", "block_rq_complete", "block"),
    tracepoint("reclaim_begin", "mm_vmscan_direct_reclaim_begin", "reclaim"),
    tracepoint("reclaim_end", "mm_vmscan_direct_reclaim_end", "reclaim"),
    tracepoint("compaction_begin", "mm_compaction_begin", "reclaim"),
    tracepoint("compaction_end", "mm_compaction_end", "reclaim"),
    tracepoint("group_reclaim_begin", "mm_vmscan_memcg_reclaim_begin", "group-reclaim"),
    tracepoint("group_reclaim_end", "mm_vmscan_memcg_reclaim_end", "group-reclaim"),
    tracepoint("dirty_throttled", "balance_dirty_pages", "dirty"),
    tracepoint("file_read", "mm_filemap_add_to_page_cache", "files"),
    tracepoint("lock_begin", "contention_begin", "locks"),
    tracepoint("lock_end", "contention_end", "locks"),
    tracepoint("folio_dirtied", "writeback_dirty_folio", "writers"),
    tracepoint("memory_taken", "rss_stat", "memory"),
    tracepoint("signal_sent", "signal_generate", "signals"),
    Program { name: "sample", hook: Hook::Clock, class: "samples" },
];

/// The names of all classes, [`REQUIRED`] first.
pub fn classes() -> Vec<&'static str> {
    let mut names = vec![REQUIRED];
    for program in PROGRAMS {
        if !names.contains(&program.class) {
            names.push(program.class);
        }
    }
    names
}
