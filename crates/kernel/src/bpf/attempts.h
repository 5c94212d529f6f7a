/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Failed attempts to lock files without waiting; a program retries again and again.
 *
 * The kernel has tracepoints for the locking only. So the holder is read from the file's list of
 * locks at once, since another process may hold the lock at the mark. */
#pragma once
#include "waits.h"

#define EAGAIN 11
#define UNLOCK 2
#define READ_LOCK 0
#define ATTEMPTS 4096 /* threads remembered, by the low bits of their tid */
#define REFUSED 1024 /* files remembered, by inode number */
#define AGAIN_NS 10000000ull
#define REMEMBERED_NS 10000000000ull
#define LOCKS_MAX 8 /* maximum number of a file's locks examined */

/* Failures of a thread since its last record. Another one with the same low bits starts over. */
struct attempts { __u64 at, inode; __u32 tid, failures; };
struct attempts attempts[ATTEMPTS];

/* Files with failed attempts, so that the next lock gets a record. */
struct refused { __u64 at, inode; };
struct refused refused[REFUSED];

static __always_inline struct refused *refused_slot(__u64 inode)
{
	return &refused[((inode * 0x9e3779b97f4a7c15ull) >> 40) & (REFUSED - 1)];
}

/* Linux 6.9 changed the layout of a lock. Each accessor is a separate function: otherwise the
 * compiler hoists a field offset out of a loop, before the check that the kernel has the field. */
static __noinline __u32 lock_type(struct file_lock *lock)
{
	if (bpf_core_field_exists(struct file_lock, c))
		return BPF_CORE_READ(lock, c.flc_type);
	return BPF_CORE_READ((struct file_lock___old *)lock, fl_type);
}

static __noinline __u64 lock_whose(struct file_lock *lock)
{
	if (bpf_core_field_exists(struct file_lock, c))
		return (__u64)BPF_CORE_READ(lock, c.flc_owner);
	return (__u64)BPF_CORE_READ((struct file_lock___old *)lock, fl_owner);
}

static __noinline __u32 lock_pid(struct file_lock *lock)
{
	int pid = bpf_core_field_exists(struct file_lock, c) ? BPF_CORE_READ(lock, c.flc_pid)
							      : BPF_CORE_READ((struct file_lock___old *)lock, fl_pid);

	return pid > 0 ? pid : 0;
}

static __noinline __u64 lock_in(__u64 link)
{
	__u64 offset;

	if (bpf_core_field_exists(struct file_lock, c)) {
		offset = bpf_core_field_offset(struct file_lock, c) + bpf_core_field_offset(struct file_lock_core, flc_list);
		barrier_var(offset);
	} else {
		offset = bpf_core_field_offset(struct file_lock___old, fl_list);
		barrier_var(offset);
	}
	return link - offset;
}

/* Returns true if a held lock conflicts with a wanted one. */
static __always_inline bool conflicts(struct file_lock *held, struct file_lock *wanted, bool ranges)
{
	if (lock_whose(held) == lock_whose(wanted))
		return 0;
	if (lock_type(held) == READ_LOCK && lock_type(wanted) == READ_LOCK)
		return 0;
	return !ranges || (BPF_CORE_READ(held, fl_start) <= BPF_CORE_READ(wanted, fl_end) &&
			   BPF_CORE_READ(wanted, fl_start) <= BPF_CORE_READ(held, fl_end));
}

/* Returns the pid that took the first conflicting lock; 0 if there is none or it belongs to no
 * process. */
static __noinline __u32 lock_holder(struct inode *inode, struct file_lock *wanted, bool ranges)
{
	struct file_lock_context *locks = BPF_CORE_READ(inode, i_flctx);

	if (!locks)
		return 0;
	__u64 head = (__u64)locks + (ranges ? bpf_core_field_offset(struct file_lock_context, flc_posix)
					    : bpf_core_field_offset(struct file_lock_context, flc_flock));
	struct list_head *link = BPF_CORE_READ((struct list_head *)head, next);
	for (int i = 0; i < LOCKS_MAX && link && (__u64)link != head; i++) {
		struct file_lock *held = (struct file_lock *)lock_in((__u64)link);
		if (conflicts(held, wanted, ranges))
			return lock_pid(held);
		link = BPF_CORE_READ(link, next);
	}
	return 0;
}

static __always_inline int write_attempt(struct inode *inode, __u64 now, __u32 holder, __u32 failures)
{
	__u64 who = bpf_get_current_pid_tgid();
	__u8 generation;
	struct rec_attempt *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->pid = who >> 32;
	record->holder = holder;
	record->failures = failures;
	commit(record, now, (__u32)who, sizeof(*record), REC_ATTEMPT, generation);
	return 0;
}

static __always_inline int attempt_failed(struct inode *inode, struct file_lock *lock, bool ranges)
{
	__u64 now = bpf_ktime_get_ns(), number = BPF_CORE_READ(inode, i_ino);
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct attempts *slot = &attempts[tid & (ATTEMPTS - 1)];
	struct refused *file = refused_slot(number);

	file->inode = number;
	file->at = now;
	if (slot->tid != tid || slot->inode != number) {
		slot->tid = tid;
		slot->inode = number;
		slot->failures = 0;
		slot->at = 0;
	}
	__u32 failures = slot->failures + 1;
	slot->failures = failures;
	if (now - slot->at < AGAIN_NS)
		return 0;
	slot->at = now;
	slot->failures = 0;
	return write_attempt(inode, now, lock_holder(inode, lock, ranges), failures);
}

static __always_inline int attempt_succeeded(struct inode *inode, struct file_lock *lock)
{
	__u64 number = BPF_CORE_READ(inode, i_ino);
	struct refused *file = refused_slot(number);

	if (file->inode != number || lock_type(lock) == UNLOCK)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	file->inode = 0;
	return now - file->at < REMEMBERED_NS ? write_attempt(inode, now, 0, 0) : 0;
}

static __always_inline int attempted(struct inode *inode, struct file_lock *lock, int result, bool ranges)
{
	if (!inode || !lock)
		return 0;
	if (result == -EAGAIN)
		return attempt_failed(inode, lock, ranges);
	return result ? 0 : attempt_succeeded(inode, lock);
}

SEC("tp_btf/flock_lock_inode")
int BPF_PROG(flock_tried, struct inode *inode, struct file_lock *lock, int result)
{
	return attempted(inode, lock, result, 0);
}

SEC("tp_btf/posix_lock_inode")
int BPF_PROG(range_tried, struct inode *inode, struct file_lock *lock, int result)
{
	return attempted(inode, lock, result, 1);
}
