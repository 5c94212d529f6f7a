/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Late timer interrupts of CPUs. Until one came, its CPU took no interrupt: the kernel had them
 * disabled, or nothing ran on it. */
#pragma once
#include "devices.h"

#define OVERDUE_MIN_NS 500000
/* Opcode of sti, which enables interrupts; one more instruction executes before the first
 * interrupt. */
#define ALLOW 0xfb
/* Maximum bytes of that next instruction, as compilers generate it. */
#define NEXT_MAX 8
/* Maximum bytes of an interrupt entry. */
#define ENTRY_BYTES 128

/* Address of asm_sysvec_apic_timer_interrupt, the entry of the timer interrupt; 0 if unknown. Set
 * by the loader. */
const volatile __u64 timer_interrupt;

/* Context that an interrupt hit, the values of a record's `found`; `UNTOLD`: the stack does not
 * show it, and no record is written. */
enum found { IN_KERNEL, JUST_ALLOWED, IN_PROGRAM, UNTOLD };

/* Timer queue of each CPU, found at the first timer that expires there; it never moves. */
struct hrtimer_cpu_base *timer_queues[MAX_CPUS];

static __always_inline struct hrtimer_cpu_base **timer_queue(void)
{
	return &timer_queues[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(timer_known, struct hrtimer *timer)
{
	struct hrtimer_cpu_base **queue = timer_queue();

	if (!*queue)
		*queue = (void *)number_of(timer->base->cpu_base);
	return 0;
}

static __always_inline __u32 found_at(__u64 ip)
{
	__u8 code[NEXT_MAX + 1];
	bool allowed = 0;

	if (!ip)
		return IN_PROGRAM;
	if (bpf_probe_read_kernel(code, sizeof(code), (void *)(ip - sizeof(code))))
		return IN_KERNEL;
	for (int at = 0; at < NEXT_MAX; at++)
		allowed |= code[at] == ALLOW;
	return allowed ? JUST_ALLOWED : IN_KERNEL;
}

/* Determines the interrupted context from the kernel stack: the frame after the interrupt entry is
 * where it hit the kernel. */
static __always_inline __u32 found_by(struct stack *stack, long bytes)
{
	__u64 entry = 0;

	for (__u32 i = 0; i < FRAMES; i++) {
		__u64 ip = i * 8 < bytes ? stack->ips[i] : 0;
		if (entry)
			return found_at(ip);
		entry = ip - timer_interrupt < ENTRY_BYTES;
	}
	return UNTOLD;
}

/* Checks the lateness at the start of the interrupt. */
SEC("tp_btf/local_timer_entry")
int timer_overdue(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns(), due = 0;
	__u8 generation;

	bpf_core_read(&due, sizeof(due), &(*timer_queue())->expires_next);
	if (!timer_interrupt || !due || due > now || now - due < OVERDUE_MIN_NS)
		return 0;
	struct stack *stack = stack_buffer(FUNCTION_STACK + 2);
	if (!stack)
		return 0;
	long bytes = bpf_get_stack(ctx, stack->ips, sizeof(stack->ips), 0);
	__u32 found = found_by(stack, bytes);
	if (found == UNTOLD)
		return 0;
	struct rec_overdue *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->nanos = now - due;
	record->found = found;
	record->stack = intern_stack(stack, bytes);
	commit(record, now, current_tid(), sizeof(*record), REC_OVERDUE, generation);
	return 0;
}
