/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Switches, wake-ups, migrations: the frequent class. */
#pragma once
#include "waits.h"

/* Kernel threads that wait for work: nothing depends on what they waited for, and they wake up often. */
#define TASK_NOLOAD 0x400

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	__u32 tid = prev->pid;
	__u16 state = 0;

	if (!(bool)ctx[0])
		state = task_state(prev, switch_has_state ? (__u32)ctx[3] : prev->__state);
	if (state)
		remember_switch_out(tid, now, state);
	struct rec_switch *record = reserve(SCHED, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->next = next->pid;
	record->prev_state = state;
	record->prev_prio = prev->prio;
	record->next_prio = next->prio;
	commit(record, now, tid, sizeof(*record), REC_SWITCH, generation);
	return 0;
}

static __noinline int write_wait(struct task_struct *task, __u64 now, __u64 start, __u8 context)
{
	__u8 generation;
	struct rec_wait *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record || !task)
		return 0;
	__builtin_memset((void *)record + sizeof(struct rec_head), 0, sizeof(*record) - sizeof(struct rec_head));
	describe_wait(record, task, start, WAKING_STACK);
	record->waker = (__u32)bpf_get_current_pid_tgid();
	record->context = context;
	commit(record, now, task->pid, sizeof(*record), REC_WAIT, generation);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 tid = task->pid;
	__u64 entry = switched_out[tid & (TABLE - 1)];
	__u8 context = interrupt_context(), generation;

	if (is_switched_out(entry, tid)) {
		__u64 start = blocked_since(tid, now);
		switched_out[tid & (TABLE - 1)] = 0;
		if (deserves_record(entry, now, now - start) && !(task->__state & TASK_NOLOAD))
			write_wait(task, now, start, context);
	}
	struct rec_waking *record = reserve(SCHED, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->waker = (__u32)bpf_get_current_pid_tgid();
	record->target_cpu = task->thread_info.cpu;
	record->context = context;
	record->prio = task->prio;
	commit(record, now, tid, sizeof(*record), REC_WAKING, generation);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int to)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	struct rec_migrate *record = reserve(SCHED, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->from = task->thread_info.cpu;
	record->to = to;
	record->by = (__u32)bpf_get_current_pid_tgid();
	commit(record, now, task->pid, sizeof(*record), REC_MIGRATE, generation);
	return 0;
}
