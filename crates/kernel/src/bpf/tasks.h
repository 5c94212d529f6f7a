/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Identity of tasks: fork, exec, rename, exit, and the walk over all tasks at the mark. */
#pragma once
#include "deferred.h"
#include "polls.h"

#define CMDLINE 248
#define CMDLINES 8192

struct cmdline { __u32 length; __u32 unused; char text[CMDLINE]; };

/* Command lines of live processes; the loader adds those of processes started earlier. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CMDLINES);
	__type(key, __u32);
	__type(value, struct cmdline);
} cmdlines SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cmdline);
} cmdline_buffer SEC(".maps");

static __always_inline __u32 pid_number(struct task_struct *task, int type)
{
	return BPF_CORE_READ(task, signal, pids[type], numbers[0].nr);
}

/* Fills in the common first fields of exec, exit and task records. */
static __always_inline void identify(struct rec_exec *to, struct task_struct *task)
{
	to->pid = task->tgid;
	to->parent = BPF_CORE_READ(task, real_parent, tgid);
	to->group = pid_number(task, 2);
	to->session = pid_number(task, 3);
	to->start = BPF_CORE_READ(task, group_leader, start_time);
	to->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	bpf_probe_read_kernel(to->comm, sizeof(to->comm), task->comm);
}

static __always_inline void write_identity(enum ring_class class, __u8 kind, struct task_struct *task,
					   struct cmdline *cmdline)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	__u32 tail = cmdline ? (cmdline->length + 7) & ~7 : 0;

	if (tail > CMDLINE)
		tail = CMDLINE;
	struct rec_exec *record = reserve(class, sizeof(*record) + tail, now, &generation);
	if (!record)
		return;
	identify(record, task);
	if (cmdline && tail)
		bpf_probe_read_kernel(record + 1, tail & 255, cmdline->text);
	commit(record, now, task->pid, sizeof(*record) + tail, kind, generation);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(fork, struct task_struct *parent, struct task_struct *child)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	struct rec_fork *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->parent = parent->tgid;
	record->child_tid = child->pid;
	record->child_pid = child->tgid;
	record->unused = 0;
	commit(record, now, parent->pid, sizeof(*record), REC_FORK, generation);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(exec, struct task_struct *task)
{
	__u32 zero = 0, pid = task->tgid;
	struct cmdline *cmdline = bpf_map_lookup_elem(&cmdline_buffer, &zero);
	struct mm_struct *mm = task->mm;

	if (!cmdline || !mm)
		return 0;
	__u64 length = mm->arg_end - mm->arg_start;
	if (length > CMDLINE - 8)
		length = CMDLINE - 8;
	__builtin_memset(cmdline, 0, sizeof(*cmdline));
	cmdline->length = bpf_probe_read_user(cmdline->text, length, (void *)mm->arg_start) ? 0 : length;
	bpf_map_update_elem(&cmdlines, &pid, cmdline, BPF_ANY);
	write_identity(RARE, REC_EXEC, task, cmdline);
	return 0;
}

static __always_inline void own(struct rec_owner *record, struct task_struct *task)
{
	record->pid = task->tgid;
	record->uid = BPF_CORE_READ(task, real_cred, uid.val);
}

/* Records the user of an ending process: this is the last opportunity. */
static __always_inline void write_owner(struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	struct rec_owner *record = reserve(EXITS, sizeof(*record), now, &generation);

	if (!record)
		return;
	own(record, task);
	commit(record, now, task->pid, sizeof(*record), REC_OWNER, generation);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exit_task, struct task_struct *task)
{
	__u32 pid = task->tgid;
	struct cmdline *cmdline = 0;

	if (task->pid == task->tgid) {
		cmdline = bpf_map_lookup_elem(&cmdlines, &pid);
		write_identity(EXITS, REC_EXIT, task, cmdline);
		write_owner(task);
		bpf_map_delete_elem(&cmdlines, &pid);
	} else {
		write_identity(EXITS, REC_EXIT, task, 0);
	}
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(rename, struct task_struct *task, const char *comm)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	struct rec_rename *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	/* The bytes after the name must not be leftovers of an older record. */
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), comm);
	commit(record, now, task->pid, sizeof(*record), REC_RENAME, generation);
	return 0;
}

static __noinline int walk_far_end(struct seq_file *seq, struct task_struct *task, __u64 now, __u64 file)
{
	struct rec_far_end record = {};

	describe_far_end(&record, (struct file *)file);
	commit(&record, now, task->pid, sizeof(record), REC_FAR_END, 0);
	bpf_seq_write(seq, &record, sizeof(record));
	return 0;
}

static __noinline int walk_polled(struct seq_file *seq, struct task_struct *task, __u64 now, __u64 file, __u32 files)
{
	struct rec_polled record = {};

	describe_polled(&record, (struct file *)file, files);
	commit(&record, now, task->pid, sizeof(record), REC_POLLED, 0);
	bpf_seq_write(seq, &record, sizeof(record));
	return has_far_end(record.family, record.address, record.port);
}

static __always_inline void walk_wait(struct seq_file *seq, struct task_struct *task, __u64 now)
{
	struct rec_wait wait;
	struct polled_set set;

	__builtin_memset(&wait, 0, sizeof(wait));
	describe_wait(&wait, task, blocked_since(task->pid, now), WALK_STACK);
	commit(&wait, now, task->pid, sizeof(wait), REC_WAIT, 0);
	bpf_seq_write(seq, &wait, sizeof(wait));
	if (has_far_end(wait.family, wait.address, wait.port))
		walk_far_end(seq, task, now, (__u64)file_of(task, (__u32)wait.args[0]));
	if (!read_set(&set, task, &wait, WALK_STACK))
		return;
	for (__u32 i = 0; i < FILES_MAX; i++)
		if (i < set.count && walk_polled(seq, task, now, set.files[i], set.count))
			walk_far_end(seq, task, now, set.files[i]);
}

static __always_inline void walk_owner(struct seq_file *seq, struct task_struct *task, __u64 now)
{
	struct rec_owner record;

	__builtin_memset(&record, 0, sizeof(record));
	own(&record, task);
	commit(&record, now, task->pid, sizeof(record), REC_OWNER, 0);
	bpf_seq_write(seq, &record, sizeof(record));
}

/* Number of threads that the next walk has room for, set before it, and number left out by all
 * walks. */
__u32 walk_room;
__u64 walk_left_out;
/* Writes the work item that a thread executes. */
static __noinline int walk_work(struct seq_file *seq, struct task_struct *task, __u64 now)
{
	struct rec_deferred record = {};
	struct deferred *slot = &works[task->pid & (WORK_SLOTS - 1)];
	__u64 begin = slot->begin;

	if (!begin || begin > now || slot->tid != task->pid)
		return 0;
	record.nanos = now - begin;
	record.function = function_stack(slot->function, 0);
	commit(&record, now, task->pid, sizeof(record), REC_DEFERRED, 0);
	bpf_seq_write(seq, &record, sizeof(record));
	return 0;
}

/* Writes every live task, its user, and its wait if it is blocked. */
SEC("iter/task")
int walk_tasks(struct bpf_iter__task *context)
{
	struct seq_file *seq = context->meta->seq;
	struct task_struct *task = context->task;
	struct rec_task record;
	__u64 now = bpf_ktime_get_ns();

	if (!task)
		return 0;
	if (!walk_room) {
		walk_left_out++;
		return 0;
	}
	walk_room--;
	__builtin_memset(&record, 0, sizeof(record));
	identify((struct rec_exec *)&record, task);
	record.state = task_state(task, task->__state);
	record.cpu = task->thread_info.cpu;
	record.affinity = BPF_CORE_READ(task, cpus_ptr, bits[0]);
	record.prio = task->prio;
	record.policy = task->policy;
	commit(&record, now, task->pid, sizeof(record), REC_TASK, 0);
	bpf_seq_write(seq, &record, sizeof(record));
	if (task->pid == task->tgid)
		walk_owner(seq, task, now);
	walk_work(seq, task, now);
	if (record.state)
		walk_wait(seq, task, now);
	return 0;
}
