/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Files polled by a thread, if they are few.
 *
 * poll and select keep a table on the stack of the waiting thread, with one entry per wait queue.
 * It is found by its pointer to the thread, and recognised by the pointer back to it in its first
 * entry. The sets of epoll are trees. */
#pragma once
#include "waits.h"

#define FILES_MAX 4
#define QUEUES_MAX 8 /* a file may have two wait queues */
#define NODES_MAX 8 /* a tree of four files has no node beyond these */
#define FRAME_WORDS 256 /* words from the scheduler's frame to the table, with a margin */
#define STACK_BYTES 16384 /* kernel stack size on x86-64 */

/* The files of a set; `overflow`: there are more. */
struct polled_set { __u64 files[FILES_MAX]; __u32 count, overflow; };

struct frame { __u64 words[FRAME_WORDS]; };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_USERS);
	__type(key, __u32);
	__type(value, struct frame);
} frames SEC(".maps");

static __always_inline bool is_poll(long number)
{
	return number == 7 || number == 23 || number == 270 || number == 271;
}

static __always_inline bool is_epoll(long number)
{
	return number == 232 || number == 281 || number == 441;
}

__noinline int add_file(struct polled_set *set, __u64 file)
{
	if (!set || !file)
		return 0;
	if (file == set->files[0] || file == set->files[1] || file == set->files[2] || file == set->files[3])
		return 0;
	if (set->count >= FILES_MAX) {
		set->overflow = 1;
		return 0;
	}
	set->files[set->count & (FILES_MAX - 1)] = file;
	set->count++;
	return 0;
}

static __always_inline __u64 entry_at(__u64 table, __u32 index)
{
	return table + bpf_core_field_offset(struct poll_wqueues, inline_entries) +
	       index * bpf_core_type_size(struct poll_table_entry);
}

/* Returns true if the first entry of a possible table points back to it. */
__noinline int is_table(__u64 table)
{
	struct poll_table_entry *first = (void *)entry_at(table, 0);

	return (__u64)BPF_CORE_READ(first, wait.private) == table;
}

/* Returns the table of the thread `wanted` points to in the part of the stack from `sp` on; 0 if
 * there is none. */
__noinline __u64 search_frame(struct frame *frame, __u64 sp, __u64 wanted, __u64 size)
{
	if (!frame)
		return 0;
	for (__u32 i = 0; i < FRAME_WORDS; i++) {
		if (8 * i >= size)
			break;
		__u64 table = sp + 8 * i - bpf_core_field_offset(struct poll_wqueues, polling_task);
		if (frame->words[i] == wanted && is_table(table))
			return table;
	}
	return 0;
}

/* Returns the table of a thread that sleeps in poll or select; 0 if it is not found. */
static __always_inline __u64 find_table(struct task_struct *task, enum stack_user user)
{
	__u32 key = user;
	struct frame *frame = bpf_map_lookup_elem(&frames, &key);

	if (!frame || !task)
		return 0;
	__u64 sp = BPF_CORE_READ(task, thread.sp), wanted = 0, pointer = (__u64)task;
	/* The stack depth is randomized; memory above the stack is not readable. */
	__u64 size = (__u64)BPF_CORE_READ(task, stack) + STACK_BYTES - sp;
	bpf_probe_read_kernel(&wanted, sizeof(wanted), &pointer);
	barrier_var(size);
	if (size > sizeof(*frame))
		size = sizeof(*frame);
	if (bpf_probe_read_kernel(frame, size, (void *)sp))
		return 0;
	return search_frame(frame, sp, wanted, size);
}

static __noinline int read_table(struct polled_set *set, struct task_struct *task, enum stack_user user)
{
	__u64 at = find_table(task, user);
	struct poll_wqueues *table = (void *)at;

	if (!at || !set)
		return 0;
	__u32 count = BPF_CORE_READ(table, inline_index);
	if (count > QUEUES_MAX) {
		set->overflow = 1;
		return 0;
	}
	for (__u32 i = 0; i < QUEUES_MAX; i++) {
		if (i >= count)
			break;
		struct poll_table_entry *entry = (void *)entry_at(at, i);
		add_file(set, (__u64)BPF_CORE_READ(entry, filp));
	}
	return 0;
}

static __always_inline void read_node(struct polled_set *set, struct eventpoll *epoll, __u64 *nodes, __u32 i)
{
	struct rb_node *node = (void *)nodes[i];

	if (!node)
		return;
	struct epitem *item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	if (BPF_CORE_READ(item, ep) != epoll)
		return;
	add_file(set, (__u64)BPF_CORE_READ(item, ffd.file));
	if (2 * i + 1 < NODES_MAX) {
		nodes[2 * i] = (__u64)BPF_CORE_READ(node, rb_left);
		nodes[2 * i + 1] = (__u64)BPF_CORE_READ(node, rb_right);
	} else if (BPF_CORE_READ(node, rb_left) || BPF_CORE_READ(node, rb_right)) {
		set->overflow = 1;
	}
}

/* Reads the nodes of a tree by number: 1 is the root, the children of n are 2n and 2n + 1. */
static __noinline int read_tree(struct polled_set *set, struct task_struct *task, __u64 descriptor)
{
	struct file *file = file_of(task, descriptor);
	__u64 nodes[NODES_MAX] = {};

	if (!file || !set)
		return 0;
	struct eventpoll *epoll = BPF_CORE_READ(file, private_data);
	nodes[1] = (__u64)BPF_CORE_READ(epoll, rbr.rb_root.rb_node);
	for (__u32 i = 1; i < NODES_MAX; i++)
		read_node(set, epoll, nodes, i);
	return 0;
}

static __always_inline bool read_set(struct polled_set *set, struct task_struct *task, struct rec_wait *wait,
				     enum stack_user user)
{
	__builtin_memset(set, 0, sizeof(*set));
	if (is_poll(wait->syscall) && bpf_core_type_exists(struct poll_wqueues))
		read_table(set, task, user);
	else if (is_epoll(wait->syscall) && bpf_core_type_exists(struct epitem))
		read_tree(set, task, (__u32)wait->args[0]);
	return !set->overflow && set->count;
}

static __always_inline __u8 socket_state(struct sock *sock, __u16 family)
{
	bool internet = family == AF_INET || family == AF_INET6;

	return internet && has_asked(sock) ? CONNECTED : BPF_CORE_READ(sock, __sk_common.skc_state);
}

static __always_inline void describe_polled(struct rec_polled *record, struct file *file, __u32 files)
{
	struct rec_wait as_wait = {};

	describe_inode(&as_wait, file);
	record->inode = as_wait.inode;
	record->peer = as_wait.peer;
	record->address = as_wait.address;
	record->mode = as_wait.mode;
	record->magic = as_wait.magic;
	record->port = as_wait.port;
	record->family = as_wait.family;
	record->socket = as_wait.socket;
	record->state = as_wait.mode == 0xc000 ? socket_state(socket_of(file), as_wait.family) : 0;
	record->files = files;
}

/* Returns true if the record has no room for the address of its socket. */
static __always_inline bool has_far_end(__u16 family, __u32 address, __u16 port)
{
	return family == AF_INET6 && !address && port;
}

static __always_inline void describe_far_end(struct rec_far_end *record, struct file *file)
{
	struct far_end end = far_end_of(socket_of(file), AF_INET6);

	__builtin_memcpy(&record->network, end.words, sizeof(end.words));
	record->port = end.port;
	record->unused = 0;
}

static __noinline int write_far_end(struct task_struct *task, __u64 now, __u64 file)
{
	__u8 generation;
	struct rec_far_end *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record || !task)
		return 0;
	describe_far_end(record, (struct file *)file);
	commit(record, now, task->pid, sizeof(*record), REC_FAR_END, generation);
	return 0;
}

/* Returns true if a far-end record is needed: the stack has no room to write it from here. */
static __noinline int write_polled(struct task_struct *task, __u64 now, __u64 file, __u32 files)
{
	__u8 generation;
	struct rec_polled *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record || !task)
		return 0;
	describe_polled(record, (struct file *)file, files);
	bool is_far = has_far_end(record->family, record->address, record->port);
	commit(record, now, task->pid, sizeof(*record), REC_POLLED, generation);
	return is_far;
}
