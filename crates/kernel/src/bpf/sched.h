/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Switches, wakeups, migrations: the frequent class. */
#pragma once
#include "answers.h"
#include "packed.h"
#include "polls.h"

/* State of kernel threads that wait for work: nothing depends on their waits, and they wake up
 * often. */
#define TASK_NOLOAD 0x400

static __always_inline bool write_switch(__u64 now, __u32 tid, __u8 prio, __u32 next, __u8 next_prio, __u16 state)
{
	__u8 generation;
	struct rec_switch *record = reserve(SCHED, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->next = next;
	record->prev_state = state;
	record->prev_prio = prio;
	record->next_prio = next_prio;
	commit(record, now, tid, sizeof(*record), REC_SWITCH, generation);
	return 1;
}

/* Number of real-time priorities, which no quota throttles. */
#define REALTIME_PRIOS 100

/* Maximum number of enclosing groups examined, from the innermost. */
#define GROUPS_AROUND 16

/* Returns true if an enclosing group has used up its quota on this CPU. The kernel counts such
 * groups at each level. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	return bpf_core_field_exists(struct cfs_rq, throttle_count) && task->prio >= REALTIME_PRIOS &&
	       task->se.cfs_rq->throttle_count;
}

/* Returns the innermost enclosing group with an exhausted quota of its own: the count drops at the
 * next level. */
static __always_inline struct task_group *throttled_group(struct task_struct *task)
{
	struct sched_entity *entity = BPF_CORE_READ(task, se.parent);
	struct cfs_rq *queue = BPF_CORE_READ(task, se.cfs_rq);
	int count = BPF_CORE_READ(queue, throttle_count);

	for (__u32 i = 0; i < GROUPS_AROUND && entity; i++) {
		struct cfs_rq *around = BPF_CORE_READ(entity, cfs_rq);
		if (BPF_CORE_READ(around, throttle_count) < count)
			break;
		queue = around;
		entity = BPF_CORE_READ(entity, parent);
	}
	return BPF_CORE_READ(queue, tg);
}

static __noinline int write_throttled(struct task_struct *task, __u64 now)
{
	__u8 generation;
	struct rec_throttled *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record || !task)
		return 0;
	struct task_group *group = throttled_group(task);
	record->group = BPF_CORE_READ(group, css.cgroup, kn, id);
	record->quota = BPF_CORE_READ(group, cfs_bandwidth.quota);
	record->period = BPF_CORE_READ(group, cfs_bandwidth.period);
	record->pid = task->tgid;
	record->unused = 0;
	commit(record, now, task->pid, sizeof(*record), REC_THROTTLED, generation);
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct place *mine = sched_place();
	__u64 now = sched_now();
	__u32 tid = prev->pid, next_tid = next->pid;
	__u8 prio = prev->prio, next_prio = next->prio;
	__u16 state = 0;

	if (!(bool)ctx[0])
		state = task_state(prev, switch_has_state ? (__u32)ctx[3] : prev->__state);
	if (state) {
		remember_switch_out(tid, now, state);
		if (drawings_open)
			server_waits(tid, now);
	}
	if (pack_switch(mine, now, tid, prio, next_tid, next_prio, state))
		mine->known = life_and(mine->known, next_tid);
	else if (write_switch(now, tid, prio, next_tid, next_prio, state))
		note_known(mine, now, next_tid);
	else
		mine->known = 0;
	mine->prio = next_prio;
	if (!state && is_throttled(prev))
		write_throttled(prev, now);
	return 0;
}

static __always_inline void write_polled_set(struct polled_set *set, struct task_struct *task, __u64 now)
{
	for (__u32 i = 0; i < FILES_MAX; i++)
		if (i < set->count && write_polled(task, now, set->files[i], set->count))
			write_far_end(task, now, set->files[i]);
}

static __noinline int write_wait(struct task_struct *task, __u64 now, __u64 start, __u8 context)
{
	__u8 generation;
	struct polled_set set;
	struct rec_wait *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record || !task)
		return 0;
	__builtin_memset((void *)record + sizeof(struct rec_head), 0, sizeof(*record) - sizeof(struct rec_head));
	describe_wait(record, task, start, WAKING_STACK);
	record->waker = (__u32)bpf_get_current_pid_tgid();
	record->context = context;
	bool polls = read_set(&set, task, record, WAKING_STACK);
	__u64 file = has_far_end(record->family, record->address, record->port)
			     ? (__u64)file_of(task, (__u32)record->args[0]) : 0;
	commit(record, now, task->pid, sizeof(*record), REC_WAIT, generation);
	if (file)
		write_far_end(task, now, file);
	if (polls)
		write_polled_set(&set, task, now);
	return 0;
}

static __always_inline bool write_waking(__u64 now, __u32 waker, __u32 tid, __u8 prio, __u32 target, __u8 context)
{
	__u8 generation;
	struct rec_waking *record = reserve(SCHED, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->waker = waker;
	record->target_cpu = target;
	record->context = context;
	record->prio = prio;
	commit(record, now, tid, sizeof(*record), REC_WAKING, generation);
	return 1;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	struct place *mine = sched_place();
	__u64 now = sched_now(), me = bpf_get_current_pid_tgid();
	__u32 tid = task->pid, waker = (__u32)me, target = task->thread_info.cpu;
	__u64 entry = switched_out[tid & (TABLE - 1)];
	__u8 context = interrupt_context(), prio = task->prio;

	if (is_switched_out(entry, tid)) {
		__u64 start = stamped(entry, now);
		switched_out[tid & (TABLE - 1)] = 0;
		/* A thread that waits for its own threads or a disk is busy. */
		if (took_presses(tid) && !(entry & 1) && (context || me >> 32 != task->tgid))
			note_slept(tid, start, now, context ? 0 : waker);
		if (deserves_record(entry, now, now - start) && !(task->__state & TASK_NOLOAD))
			write_wait(task, now, start, context);
	}
	/* Self-wakeups are not packed: an interrupt may have caused them. */
	bool alone = tid != waker;
	if (alone && pack_waking(mine, now, waker, tid, prio, target, context))
		return 0;
	if (write_waking(now, waker, tid, prio, target, context) && alone)
		note_known(mine, now, waker);
	return 0;
}

static __always_inline bool write_migrate(__u64 now, __u32 by, __u32 tid, __u32 from, __u32 to)
{
	__u8 generation;
	struct rec_migrate *record = reserve(SCHED, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->from = from;
	record->to = to;
	record->by = by;
	commit(record, now, tid, sizeof(*record), REC_MIGRATE, generation);
	return 1;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int to)
{
	struct place *mine = sched_place();
	__u64 now = sched_now();
	__u32 tid = task->pid, by = (__u32)bpf_get_current_pid_tgid(), from = task->thread_info.cpu;

	if (pack_migrate(mine, now, by, tid, from, to))
		return 0;
	if (write_migrate(now, by, tid, from, to))
		note_known(mine, now, by);
	return 0;
}
