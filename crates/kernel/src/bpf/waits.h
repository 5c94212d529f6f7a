/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Description of a blocked thread's wait: kernel stack, system call, file. */
#pragma once
#include "inet.h"
#include "stacks.h"

#define TABLE 65536 /* threads remembered, by the low bits of their tid */
#define AF_UNIX 1

/* Thread switched out, time, and a bit for I/O waits, so that a wakeup need not examine the
 * sleeping thread; see STAMP_BITS for the layout. A thread overwritten by another one with the same
 * low bits loses the description of one wait. */
__u64 switched_out[TABLE];

/* File from which a thread last read a page from disk, by the low bits of its tid: a page fault
 * names no file, but the read precedes its wait. */
#define READ_FILES 4096
#define READ_BEFORE_NS 20000000
struct read_file { __u64 at, inode; __u32 tid, device; };
struct read_file read_files[READ_FILES];

/* Kernels from 5.18 on pass the state to the switch tracepoint; set by the loader. */
const volatile bool switch_has_state = 1;

/* Time of the last description of a thread's I/O wait, in units of 2^20 ns, by the low bits of its
 * tid: short waits are described at this interval only. Threads with the same low bits share the
 * interval. */
#define DESCRIBED 4096
#define DESCRIBE_AGAIN 10
__u32 described[DESCRIBED];

/* Set by the programs in devices.h while a CPU handles an interrupt or a softirq, with the start of
 * each. One cache line per CPU, since interrupts are frequent on all of them. */
struct in_interrupt { __u64 irq_begin, softirq_begin, vector_begin; __u8 hard, soft; } __attribute__((aligned(64)));
struct in_interrupt in_interrupts[MAX_CPUS];

static __always_inline struct in_interrupt *this_interrupt(void)
{
	return &in_interrupts[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
}

/* Returns 0 for a task, 1 for a softirq, 2 for a hard interrupt. */
static __always_inline __u8 interrupt_context(void)
{
	struct in_interrupt *now = this_interrupt();

	return now->hard ? 2 : now->soft;
}

#define TASK_INTERRUPTIBLE 1
#define TASK_FREEZABLE 0x2000
#define TASK_FROZEN 0x8000

/* Returns true if a freezer holds the thread. The freezer of version 1 sets a separate state. That
 * of version 2 leaves the thread in a shared state and sets a bit, which a parent in vfork has as
 * well, but that one is not interruptible. */
static __always_inline bool is_frozen(struct task_struct *task, __u32 state)
{
	if (!(state & TASK_FREEZABLE) || !bpf_core_field_exists(task->frozen))
		return (state & TASK_FROZEN) != 0;
	return (state & TASK_INTERRUPTIBLE) && BPF_CORE_READ_BITFIELD(task, frozen);
}

static __always_inline __u16 task_state(struct task_struct *task, __u32 state)
{
	__u16 frozen = is_frozen(task, state) ? 0x4000 : 0;
	__u16 waiting = BPF_CORE_READ_BITFIELD(task, in_iowait) ? 0x8000 : 0;

	if (!(state & 0xffff))
		return 0;
	return (state & 0x3fff) | frozen | waiting;
}

/* Layout of an off-CPU start in one word: a tid is below 2^22; the rest is the time in units of 2
 * µs, which wraps after 52 days, and a bit for I/O waits. */
#define STAMP_BITS 42
#define STAMP_STEP 2048
#define STAMP (((1ull << STAMP_BITS) - 1) & ~1ull)

static __always_inline __u64 stamp(__u64 now)
{
	return (now >> 10) & STAMP;
}

static __always_inline void remember_switch_out(__u32 tid, __u64 now, __u16 state)
{
	switched_out[tid & (TABLE - 1)] = ((__u64)tid << STAMP_BITS) | stamp(now) | (state >> 15);
}

static __always_inline bool is_switched_out(__u64 entry, __u32 tid)
{
	return (entry >> STAMP_BITS) == tid;
}

/* Returns the time of an entry, to about 2 µs. */
static __always_inline __u64 stamped(__u64 entry, __u64 now)
{
	return now - (((stamp(now) - (entry & STAMP)) & STAMP) << 10);
}

/* Returns the time at which the thread blocked; `now` if unknown. */
static __always_inline __u64 blocked_since(__u32 tid, __u64 now)
{
	__u64 entry = switched_out[tid & (TABLE - 1)];

	return is_switched_out(entry, tid) ? stamped(entry, now) : now;
}

/* Returns the start of a wait that may have just begun on another CPU; 0 if the thread does not
 * wait. */
static __always_inline __u64 waits_since(__u32 tid)
{
	__u64 entry = *(volatile __u64 *)&switched_out[tid & (TABLE - 1)];

	return tid && is_switched_out(entry, tid) ? stamped(entry, bpf_ktime_get_ns()) : 0;
}

/* Returns true if a wait of this length gets a record: always if long, now and then if for I/O. */
static __always_inline bool deserves_record(__u64 entry, __u64 now, __u64 length)
{
	__u32 *last = &described[(entry >> STAMP_BITS) & (DESCRIBED - 1)];
	__u32 at = now >> 20;

	if (length < min_block_ns && (!(entry & 1) || at - *last < DESCRIBE_AGAIN))
		return 0;
	*last = at;
	return 1;
}

/* Returns true if the first argument of this x86-64 system call is a file descriptor. */
static __always_inline bool takes_file(long number)
{
	if (number <= 1 || (number >= 16 && number <= 20) || (number >= 42 && number <= 51))
		return 1;
	if (number >= 72 && number <= 75)
		return 1;
	return number == 40 || number == 232 || number == 281 || number == 288 || number == 295 || number == 296 ||
	       number == 299 || number == 307 || number == 275 || number == 277 || number == 285;
}

static __always_inline struct sock *socket_of(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(socket, sk);
}

static __always_inline void describe_socket(struct rec_wait *wait, struct file *file)
{
	struct sock *sock = socket_of(file);

	wait->family = BPF_CORE_READ(sock, __sk_common.skc_family);
	wait->socket = BPF_CORE_READ(sock, sk_type);
	if (wait->family == AF_UNIX) {
		wait->peer = BPF_CORE_READ(sock, sk_peer_pid, numbers[0].nr);
	} else if (wait->family == AF_INET || wait->family == AF_INET6) {
		struct far_end end = far_end_of(sock, wait->family);
		wait->address = end.address;
		wait->port = end.port;
	}
}

static __always_inline struct file *file_of(struct task_struct *task, __u64 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;

	if (descriptor >= BPF_CORE_READ(table, max_fds))
		return 0;
	struct file **slots = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), slots + descriptor);
	return file;
}

static __always_inline void describe_inode(struct rec_wait *wait, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	wait->inode = BPF_CORE_READ(inode, i_ino);
	wait->mode = BPF_CORE_READ(inode, i_mode) & 0xf000;
	wait->device = BPF_CORE_READ(inode, i_sb, s_dev);
	wait->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	if (wait->mode == 0xc000)
		describe_socket(wait, file);
}

static __always_inline void describe_file(struct rec_wait *wait, struct task_struct *task, __u64 descriptor)
{
	struct file *file = file_of(task, descriptor);

	if (file)
		describe_inode(wait, file);
}

static __always_inline void describe_fault(struct rec_wait *wait, __u32 tid)
{
	struct read_file *slot = &read_files[tid & (READ_FILES - 1)];

	if (slot->tid != tid || slot->at + READ_BEFORE_NS < wait->start)
		return;
	wait->inode = slot->inode;
	wait->device = slot->device;
	wait->mode = 0x8000;
}

#define UNLIMITED 1
#define LIMITED 2

/* Returns the time limit of a poll, select or epoll_wait; 0 for other calls. A negative timeout in
 * milliseconds and a missing time stand for none. */
static __always_inline __u16 limit_of(struct pt_regs *regs)
{
	switch (regs->orig_ax) {
	case 7: /* poll */
		return (__s32)regs->dx < 0 ? UNLIMITED : LIMITED;
	case 232: /* epoll_wait */
	case 281: /* epoll_pwait */
		return (__s32)regs->r10 < 0 ? UNLIMITED : LIMITED;
	case 23: /* select */
	case 270: /* pselect6 */
		return regs->r8 ? LIMITED : UNLIMITED;
	case 271: /* ppoll */
		return regs->dx ? LIMITED : UNLIMITED;
	case 441: /* epoll_pwait2 */
		return regs->r10 ? LIMITED : UNLIMITED;
	default:
		return 0;
	}
}

static __always_inline void describe_call(struct rec_wait *wait, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	wait->syscall = -1;
	if (!regs || (task->flags & PF_KTHREAD))
		return;
	wait->syscall = (__s32)regs->orig_ax;
	if (wait->syscall < 0)
		return describe_fault(wait, task->pid);
	wait->args[0] = regs->di;
	wait->args[1] = regs->si;
	wait->args[2] = regs->dx;
	wait->limit = limit_of(regs);
	if (takes_file(wait->syscall))
		describe_file(wait, task, (__u32)wait->args[0]);
}

/* Fills in all fields but the waker; `wait` is zeroed. */
static __always_inline void describe_wait(struct rec_wait *wait, struct task_struct *task, __u64 start,
					  enum stack_user user)
{
	wait->start = start;
	wait->pid = task->tgid;
	wait->state = task_state(task, task->__state);
	wait->stack = stack_of(task, user);
	describe_call(wait, task);
}
