// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel programs, by class. A new program needs only a line here.
//!
//! If a kernel lacks a tracepoint, a stand-in may write the same records from another hook. The
//! choice depends on the features of the kernel, never on its version.

use std::fmt;

/// Attachment point of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hook {
    /// A BTF tracepoint of this name.
    Tracepoint(&'static str),
    /// Return of the kernel function of this name (fexit). Some kernels refuse it.
    Return(&'static str),
    /// A CPU clock event on every online CPU.
    Clock,
    /// The iterator over all tasks, run at a mark.
    Walk,
}

pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) hook: Hook,
    /// Classes other than [`REQUIRED`] can be disabled, and may be missing on a kernel.
    pub(crate) class: &'static str,
    /// Program that this one replaces if the kernel lacks that one's hook.
    instead_of: Option<&'static str>,
}

/// The class without which nothing can be recorded.
pub(crate) const REQUIRED: &str = "tasks";

const fn hooked(name: &'static str, hook: Hook, class: &'static str) -> Program {
    Program { name, hook, class, instead_of: None }
}

const fn tracepoint(name: &'static str, tracepoint: &'static str, class: &'static str) -> Program {
    hooked(name, Hook::Tracepoint(tracepoint), class)
}

const fn stand_in(
    name: &'static str,
    hook: Hook,
    class: &'static str,
    of: &'static str,
) -> Program {
    Program { name, hook, class, instead_of: Some(of) }
}

/// All programs, those for task identity first, so that no task is switched to before it is known.
pub(crate) const PROGRAMS: &[Program] = &[
    tracepoint("fork", "sched_process_fork", REQUIRED),
    tracepoint("exec", "sched_process_exec", REQUIRED),
    tracepoint("exit_task", "sched_process_exit", REQUIRED),
    tracepoint("rename", "task_rename", REQUIRED),
    hooked("walk_tasks", Hook::Walk, REQUIRED),
    tracepoint("sched_switch", "sched_switch", REQUIRED),
    tracepoint("sched_waking", "sched_waking", REQUIRED),
    tracepoint("sched_migrate_task", "sched_migrate_task", REQUIRED),
    tracepoint("message_sent", "sock_send_length", "display"),
    stand_in("send_returned", Hook::Return("unix_stream_sendmsg"), "display", "message_sent"),
    tracepoint("message_taken", "sock_recv_length", "display"),
    stand_in("receive_returned", Hook::Return("unix_stream_recvmsg"), "display", "message_taken"),
    tracepoint("tty_written", "workqueue_queue_work", "terminals"),
    tracepoint("tty_delivered", "workqueue_execute_start", "terminals"),
    tracepoint("irq_entry", "irq_handler_entry", "interrupts"),
    tracepoint("irq_exit", "irq_handler_exit", "interrupts"),
    tracepoint("softirq_entry", "softirq_entry", "interrupts"),
    tracepoint("softirq_exit", "softirq_exit", "interrupts"),
    tracepoint("timer_entry", "local_timer_entry", "timers"),
    tracepoint("timer_exit", "local_timer_exit", "timers"),
    tracepoint("timer_overdue", "local_timer_entry", "overdue"),
    tracepoint("timer_known", "hrtimer_expire_entry", "overdue"),
    tracepoint("call_entry", "call_function_single_entry", "timers"),
    tracepoint("call_exit", "call_function_single_exit", "timers"),
    tracepoint("block_insert", "block_rq_insert", "block"),
    tracepoint("block_issue", "block_rq_issue", "block"),
    tracepoint("block_merge", "block_rq_merge", "block"),
    tracepoint("block_complete", "block_rq_complete", "block"),
    tracepoint("reclaim_begin", "mm_vmscan_direct_reclaim_begin", "reclaim"),
    tracepoint("reclaim_end", "mm_vmscan_direct_reclaim_end", "reclaim"),
    tracepoint("compaction_begin", "mm_compaction_begin", "reclaim"),
    tracepoint("compaction_end", "mm_compaction_end", "reclaim"),
    tracepoint("group_reclaim_begin", "mm_vmscan_memcg_reclaim_begin", "group-reclaim"),
    tracepoint("group_reclaim_end", "mm_vmscan_memcg_reclaim_end", "group-reclaim"),
    tracepoint("dirty_throttled", "balance_dirty_pages", "dirty"),
    tracepoint("file_read", "mm_filemap_add_to_page_cache", "files"),
    tracepoint("flock_tried", "flock_lock_inode", "file-locks"),
    tracepoint("range_tried", "posix_lock_inode", "file-locks"),
    tracepoint("lock_begin", "contention_begin", "locks"),
    tracepoint("lock_end", "contention_end", "locks"),
    tracepoint("work_begin", "workqueue_execute_start", "deferred"),
    tracepoint("work_end", "workqueue_execute_end", "deferred"),
    tracepoint("expiry_begin", "timer_expire_entry", "deferred"),
    tracepoint("expiry_end", "timer_expire_exit", "deferred"),
    tracepoint("hrtimer_begin", "hrtimer_expire_entry", "deferred"),
    tracepoint("hrtimer_end", "hrtimer_expire_exit", "deferred"),
    tracepoint("folio_dirtied", "writeback_dirty_folio", "writers"),
    tracepoint("memory_taken", "rss_stat", "memory"),
    tracepoint("signal_sent", "signal_generate", "signals"),
    tracepoint("cpu_step", "cpuhp_exit", "samples"),
    hooked("sample", Hook::Clock, "samples"),
];

/// Returns the names of all classes, [`REQUIRED`] first.
pub fn classes() -> Vec<&'static str> {
    let mut names = vec![REQUIRED];
    for program in PROGRAMS {
        if !names.contains(&program.class) {
            names.push(program.class);
        }
    }
    names
}

/// Returns the programs that record a class on a kernel with these hooks, in the order of the
/// table; or the first missing hook without a stand-in.
pub(crate) fn programs_of(
    class: &str,
    has: impl Fn(Hook) -> bool,
) -> Result<Vec<&'static Program>, Hook> {
    let own =
        PROGRAMS.iter().filter(|program| program.class == class && program.instead_of.is_none());
    own.map(|program| available(program, &has).ok_or(program.hook)).collect()
}

/// Returns a program, or its stand-in, by the available hooks.
fn available(program: &'static Program, has: &impl Fn(Hook) -> bool) -> Option<&'static Program> {
    let stand_ins = PROGRAMS.iter().filter(|other| other.instead_of == Some(program.name));
    std::iter::once(program).chain(stand_ins).find(|one| has(one.hook))
}

/// Returns the hooks of these programs for a class that has alternatives; otherwise `None`.
pub(crate) fn hooks_of(class: &str, programs: &[&Program]) -> Option<String> {
    let alternatives =
        PROGRAMS.iter().any(|program| program.class == class && program.instead_of.is_some());
    let hooks = programs
        .iter()
        .filter(|program| program.class == class)
        .map(|program| program.hook.to_string());
    alternatives.then(|| hooks.collect::<Vec<_>>().join(" and "))
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hook::Tracepoint(name) => write!(f, "tracepoint {name}"),
            Hook::Return(name) => write!(f, "return of {name}"),
            Hook::Clock => f.write_str("CPU clock"),
            Hook::Walk => f.write_str("task iterator"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(programs: &[&Program]) -> Vec<&'static str> {
        programs.iter().map(|program| program.name).collect()
    }

    fn without(missing: &'static [&'static str]) -> impl Fn(Hook) -> bool {
        move |hook| match hook {
            Hook::Tracepoint(name) | Hook::Return(name) => !missing.contains(&name),
            Hook::Clock | Hook::Walk => true,
        }
    }

    #[test]
    fn a_tracepoint_that_is_there_needs_no_stand_in() {
        let programs = programs_of("display", |_| true).unwrap();
        assert_eq!(names(&programs), ["message_sent", "message_taken"]);
        let hooks = hooks_of("display", &programs).unwrap();
        assert_eq!(hooks, "tracepoint sock_send_length and tracepoint sock_recv_length");
    }

    #[test]
    fn an_older_kernel_records_the_display_at_function_returns() {
        let programs =
            programs_of("display", without(&["sock_send_length", "sock_recv_length"])).unwrap();
        assert_eq!(names(&programs), ["send_returned", "receive_returned"]);
        let hooks = hooks_of("display", &programs).unwrap();
        assert_eq!(hooks, "return of unix_stream_sendmsg and return of unix_stream_recvmsg");
    }

    #[test]
    fn the_missing_hook_is_named_where_nothing_stands_in() {
        let lacking =
            programs_of("display", without(&["sock_recv_length", "unix_stream_recvmsg"])).err();
        assert_eq!(lacking, Some(Hook::Tracepoint("sock_recv_length")));
        let lacking = programs_of("locks", without(&["contention_end"])).err();
        assert_eq!(
            lacking.map(|hook| hook.to_string()).as_deref(),
            Some("tracepoint contention_end")
        );
    }

    #[test]
    fn stand_ins_write_the_class_of_what_they_replace() {
        for program in PROGRAMS {
            let Some(replaced) = program.instead_of else { continue };
            let replaced = PROGRAMS.iter().find(|other| other.name == replaced).unwrap();
            assert_eq!((program.class, replaced.instead_of), (replaced.class, None));
        }
        assert_eq!(hooks_of("tasks", &programs_of(REQUIRED, |_| true).unwrap()), None);
    }
}
