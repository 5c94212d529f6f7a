/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Stacks, stored once by content. */
#pragma once
#include "ring.h"

#define FRAMES 20
#define STACKS 16384

struct stack { __u32 frames; __u32 unused; __u64 ips[FRAMES]; };

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STACKS);
	__type(key, __u32);
	__type(value, struct stack);
} stacks SEC(".maps");

/* One buffer per user that may interrupt another: wakeups, samples, locks, and functions of
 * threads, softirqs and hard interrupts. */
enum stack_user { WAKING_STACK, SAMPLE_STACK, LOCK_STACK, WALK_STACK, FUNCTION_STACK, STACK_USERS = FUNCTION_STACK + 3 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_USERS);
	__type(key, __u32);
	__type(value, struct stack);
} stack_buffers SEC(".maps");

static __always_inline struct stack *stack_buffer(enum stack_user user)
{
	__u32 key = user;
	return bpf_map_lookup_elem(&stack_buffers, &key);
}

/* Returns the id of the stack in the buffer, `bytes` long; 0 if there is none. Static, so that the
 * verifier checks it with its callers: before Linux 6.2 a global function cannot store memory that
 * it was given in a map. */
static __noinline __u32 intern_stack(struct stack *stack, long bytes)
{
	__u32 hash = 2166136261u;

	if (!stack || bytes <= 0)
		return 0;
	__u32 frames = (__u32)bytes / 8;
	if (frames > FRAMES)
		frames = FRAMES;
	for (__u32 i = 0; i < FRAMES; i++) {
		if (i >= frames)
			stack->ips[i] = 0;
		__u64 ip = stack->ips[i];
		hash = (hash ^ (__u32)ip ^ (__u32)(ip >> 32)) * 16777619u;
	}
	hash |= !hash;
	stack->frames = frames;
	stack->unused = 0;
	if (!bpf_map_lookup_elem(&stacks, &hash))
		bpf_map_update_elem(&stacks, &hash, stack, BPF_ANY);
	return hash;
}

static __always_inline __u32 stack_of(struct task_struct *task, enum stack_user user)
{
	struct stack *stack = stack_buffer(user);

	if (!stack)
		return 0;
	return intern_stack(stack, bpf_get_task_stack(task, stack->ips, sizeof(stack->ips), 0));
}

/* Returns a stack of one frame: a function about to be called in this context (0 task, 1 softirq, 2
 * hard interrupt). */
static __always_inline __u32 function_stack(__u64 function, __u8 context)
{
	struct stack *stack = stack_buffer(FUNCTION_STACK + context);

	if (!stack)
		return 0;
	stack->ips[0] = function;
	return intern_stack(stack, sizeof(function));
}
