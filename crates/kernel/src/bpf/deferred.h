/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Functions of work items and timers, on demand: the cause of activity in kernel threads,
 * interrupts and softirqs. */
#pragma once
#include "devices.h"

#define WORK_SLOTS 4096
#define DEFERRED_MIN_NS 10000

enum deferred_kind { DEFERRED_WORK, DEFERRED_TIMER, DEFERRED_HRTIMER };

struct deferred { __u64 begin, function; __u32 tid, unused; };
/* Work items by thread, overwritten by another one with the same low bits. Timers by CPU and kind;
 * high-resolution timers also by context, since a hard interrupt may run them in the middle of a
 * softirq. */
struct deferred works[WORK_SLOTS], timers[4 * MAX_CPUS];

static __always_inline struct deferred *timer_slot(enum deferred_kind kind)
{
	__u32 slot = 4 * bpf_get_smp_processor_id() + (kind == DEFERRED_HRTIMER ? 1 + (interrupt_context() == 2) : 0);

	/* Masked last: the verifier of Linux 6.1 does not track the bounds of a sum. */
	barrier_var(slot);
	return &timers[slot & (4 * MAX_CPUS - 1)];
}

static __always_inline int begin_deferred(struct deferred *slot, const void *function)
{
	slot->function = number_of(function);
	slot->tid = current_tid();
	slot->begin = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int end_deferred(struct deferred *slot, enum deferred_kind kind, __u8 context)
{
	__u64 now = bpf_ktime_get_ns(), begin = slot->begin;
	__u8 generation;

	slot->begin = 0;
	if (!begin || now - begin < DEFERRED_MIN_NS)
		return 0;
	__u32 function = function_stack(slot->function, context);
	struct rec_deferred *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->nanos = now - begin;
	record->function = function;
	record->what = kind;
	commit(record, now, current_tid(), sizeof(*record), REC_DEFERRED, generation);
	return 0;
}

static __always_inline struct deferred *work_slot(void)
{
	return &works[current_tid() & (WORK_SLOTS - 1)];
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(work_begin, struct work_struct *work) { return begin_deferred(work_slot(), work->func); }

SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(work_end) { return end_deferred(work_slot(), DEFERRED_WORK, 0); }

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(expiry_begin, struct timer_list *timer)
{
	return begin_deferred(timer_slot(DEFERRED_TIMER), timer->function);
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(expiry_end) { return end_deferred(timer_slot(DEFERRED_TIMER), DEFERRED_TIMER, 1); }

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_begin, struct hrtimer *timer)
{
	return begin_deferred(timer_slot(DEFERRED_HRTIMER), timer->function);
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_end)
{
	return end_deferred(timer_slot(DEFERRED_HRTIMER), DEFERRED_HRTIMER, interrupt_context() == 2 ? 2 : 1);
}
