/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Interrupts, block requests, reclaim, lock contention, signals, samples, terminals, file reads. */
#pragma once
#include "waits.h"

#define LOCK_SLOTS 4096

/* Random number mixed into addresses before they leave the kernel; set by the loader. */
const volatile __u64 scramble;
/* Address of flush_to_ldisc, the work function that delivers terminal data; set by the loader. */
const volatile __u64 tty_work;
/* Nanoseconds per kernel tick; set by the loader. */
const volatile __u64 tick_ns = 4000000;
/* True if balance_dirty_pages passes its thresholds in one structure, as newer kernels do; set by
 * the loader. The pause is argument 6 then, else 10. */
const volatile bool dirty_in_structure = 1;

/* Numbers that the analysis uses for interrupts with their own vector and no number. */
#define LOCAL_TIMER 0xfffffff0
#define FUNCTION_CALL 0xfffffff1

/* Converts a pointer to a number through memory, since the verifier forbids arithmetic on it. */
static __always_inline __u64 number_of(const void *pointer)
{
	__u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

static __always_inline __u64 scrambled(const void *address)
{
	return (number_of(address) ^ scramble) * 0x9e3779b97f4a7c15ull;
}

static __always_inline __u32 current_tid(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

static __always_inline void end_interrupt(__u64 begin, __u32 number, __u32 soft)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;

	if (!begin || now - begin < long_interrupt_ns)
		return;
	struct rec_irq *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return;
	record->nanos = now - begin;
	record->number = number;
	record->soft = soft;
	commit(record, now, current_tid(), sizeof(*record), REC_IRQ, generation);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_entry, int irq)
{
	struct in_interrupt *mine = this_interrupt();

	mine->irq_begin = bpf_ktime_get_ns();
	mine->hard = 1;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_exit, int irq)
{
	struct in_interrupt *mine = this_interrupt();

	mine->hard = 0;
	end_interrupt(mine->irq_begin, irq, 0);
	return 0;
}

static __always_inline int begin_vector(void)
{
	struct in_interrupt *mine = this_interrupt();

	mine->vector_begin = bpf_ktime_get_ns();
	mine->hard = 1;
	return 0;
}

static __always_inline int end_vector(__u32 number)
{
	struct in_interrupt *mine = this_interrupt();

	mine->hard = 0;
	end_interrupt(mine->vector_begin, number, 0);
	return 0;
}

#define WITHDRAWN_MIN_NS 50000

/* Total time that the hypervisor had stolen from a CPU at its last tick, and time of the tick. */
struct withdrawal { __u64 taken, at; };
struct withdrawal withdrawals[MAX_CPUS];

/* Records stolen time. At each tick the scheduler queries the hypervisor before the interrupt ends,
 * and keeps the sum. */
static __always_inline void note_withdrawal(void)
{
	struct withdrawal *last = &withdrawals[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
	__u64 now = bpf_ktime_get_ns(), since = last->at;
	__u8 generation;

	if (!bpf_core_field_exists(struct rq, prev_steal_time_rq) || !bpf_core_field_exists(struct sched_entity, cfs_rq))
		return;
	__u64 taken = bpf_get_current_task_btf()->se.cfs_rq->rq->prev_steal_time_rq, grown = taken - last->taken;
	last->taken = taken;
	last->at = now;
	if (!since || grown < WITHDRAWN_MIN_NS)
		return;
	struct rec_withdrawn *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return;
	record->nanos = grown;
	record->since = since;
	commit(record, now, current_tid(), sizeof(*record), REC_WITHDRAWN, generation);
}

/* On x86 the local timer has no interrupt number and no irq_handler_entry. */
SEC("tp_btf/local_timer_entry")
int BPF_PROG(timer_entry)
{
	return begin_vector();
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(timer_exit)
{
	note_withdrawal();
	return end_vector(LOCAL_TIMER);
}

/* A request completed by another CPU's interrupt may end in a call to this one. */
SEC("tp_btf/call_function_single_entry")
int BPF_PROG(call_entry)
{
	return begin_vector();
}

SEC("tp_btf/call_function_single_exit")
int BPF_PROG(call_exit)
{
	return end_vector(FUNCTION_CALL);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vector)
{
	struct in_interrupt *mine = this_interrupt();

	mine->softirq_begin = bpf_ktime_get_ns();
	mine->soft = 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	struct in_interrupt *mine = this_interrupt();

	mine->soft = 0;
	end_interrupt(mine->softirq_begin, vector, 1);
	return 0;
}

/* Requests in flight, by address; each gets one record on completion. A request overwritten by
 * another one in the same slot is lost, and counted. */
#define REQUESTS 16384
struct in_flight { __u64 request, inserted, issued, sector; __u32 bytes, device, op, tid; };
struct in_flight in_flight[REQUESTS];

/* Returns one of the two possible slots of a request: with a few hundred in flight, both are rarely
 * taken. */
static __always_inline struct in_flight *place_of(__u64 request, __u32 way)
{
	return &in_flight[(((request * 0x9e3779b97f4a7c15ull) >> 40) ^ way) & (REQUESTS - 1)];
}

/* Returns the slot of a request, or the one to put it in: the first one if both are taken. */
static __always_inline struct in_flight *flight_of(__u64 request)
{
	struct in_flight *first = place_of(request, 0), *second = place_of(request, 1);

	if (first->request == request || second->request == request)
		return first->request == request ? first : second;
	return first->request && !second->request ? second : first;
}

static __always_inline void enter_flight(struct in_flight *slot, struct request *request, __u64 number)
{
	struct gendisk *disk = BPF_CORE_READ(request, q, disk);

	if (slot->request && slot->request != number)
		__sync_fetch_and_add(&dropped[RARE], 1);
	slot->request = number;
	slot->inserted = bpf_ktime_get_ns();
	slot->issued = 0;
	slot->sector = request->__sector;
	slot->bytes = request->__data_len;
	slot->device = disk ? ((__u32)BPF_CORE_READ(disk, major) << 20) | BPF_CORE_READ(disk, first_minor) : 0;
	slot->op = request->cmd_flags & 0xff;
	slot->tid = current_tid();
}

/* A request merged into another one never completes itself. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_merge, struct request *request)
{
	__u64 number = number_of(request);
	struct in_flight *slot = flight_of(number);

	if (slot->request == number)
		slot->request = 0;
	return 0;
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(block_insert, struct request *request)
{
	__u64 number = number_of(request);

	enter_flight(flight_of(number), request, number);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_issue, struct request *request)
{
	__u64 number = number_of(request);
	struct in_flight *slot = flight_of(number);

	if (slot->request != number)
		enter_flight(slot, request, number);
	slot->issued = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_complete, struct request *request)
{
	__u64 now = bpf_ktime_get_ns(), number = number_of(request);
	struct in_flight *slot = flight_of(number);
	__u8 generation;

	if (slot->request != number)
		return 0;
	slot->request = 0;
	struct rec_block *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->inserted = slot->inserted;
	record->issued = slot->issued;
	record->sector = slot->sector;
	record->bytes = slot->bytes;
	record->device = slot->device;
	record->op = slot->op;
	record->done = 1;
	commit(record, now, slot->tid, sizeof(*record), REC_BLOCK, generation);
	return 0;
}

static __always_inline int reclaim_phase(__u32 what, __u32 phase, __u64 amount)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	struct rec_reclaim *record = reserve(RARE, sizeof(*record), now, &generation);

	if (!record)
		return 0;
	record->what = what;
	record->phase = phase;
	record->amount = amount;
	commit(record, now, current_tid(), sizeof(*record), REC_RECLAIM, generation);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(reclaim_begin) { return reclaim_phase(0, 0, 0); }

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(reclaim_end, unsigned long pages) { return reclaim_phase(0, 1, pages); }

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(compaction_begin) { return reclaim_phase(1, 0, 0); }

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(compaction_end) { return reclaim_phase(1, 1, 0); }

/* Reclaim inside a control group at its limit. */
SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(group_reclaim_begin) { return reclaim_phase(4, 0, 0); }

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(group_reclaim_end, unsigned long pages) { return reclaim_phase(4, 1, pages); }

/* Records a writer that is about to be throttled because of too many dirty pages. The tracepoint
 * also fires for writers that may continue: their pause is not positive. */
SEC("tp_btf/balance_dirty_pages")
int dirty_throttled(__u64 *ctx)
{
	long ticks;

	/* Two loads that must not be merged into one at a variable offset, which the verifier
	 * rejects. */
	if (dirty_in_structure) {
		ticks = (long)ctx[6];
		barrier_var(ticks);
	} else {
		ticks = (long)ctx[10];
		barrier_var(ticks);
	}
	if (ticks <= 0)
		return 0;
	return reclaim_phase(2, 0, (__u64)ticks * tick_ns / 1000000);
}

/* Counts per thread, by the low bits of its tid; another one with the same bits starts over. */
#define TALLIES 4096
#define TALLY_FULL 64
struct tally { __u32 tid, count; };
struct tally dirtied[TALLIES], taken[TALLIES];

/* Writes one record per full tally, so that a busy thread does not fill the ring. */
static __always_inline int count_up(struct tally *tallies, __u32 what)
{
	__u64 now;
	__u8 generation;
	__u32 tid = current_tid();
	struct tally *tally = &tallies[tid & (TALLIES - 1)];

	if (tally->tid != tid) {
		tally->tid = tid;
		tally->count = 0;
	}
	if (!tid || ++tally->count < TALLY_FULL)
		return 0;
	tally->count = 0;
	now = bpf_ktime_get_ns();
	struct rec_tally *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->what = what;
	record->count = TALLY_FULL;
	commit(record, now, tid, sizeof(*record), REC_TALLY, generation);
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(folio_dirtied) { return count_up(dirtied, 0); }

SEC("tp_btf/rss_stat")
int BPF_PROG(memory_taken) { return count_up(taken, 1); }

struct contention { __u64 lock, begin; __u32 tid, owner, flags, unused; };
struct contention contentions[LOCK_SLOTS];

/* Returns the task in the owner field of a mutex, or of an rw-semaphore held for writing; its low
 * bits are flags. */
static __always_inline __u32 lock_owner(void *lock, __u32 flags)
{
	long owner = 0;

	if (flags & 32)
		owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
	else if (!(flags & 1) && !(flags & 16) && (flags & 6))
		owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	if (owner & 1)
		return 0;
	struct task_struct *task = (struct task_struct *)(owner & ~7l);
	return task ? BPF_CORE_READ(task, pid) : 0;
}

/* Returns true for locks that spin without sleeping: a spinlock, not a mutex that its owner is
 * about to release. */
static __always_inline bool is_spin_lock(__u32 flags)
{
	return (flags & 1) && !(flags & 32);
}

/* A thread blocked on a sleeping lock may also contend for the spinlock inside it: the outer wait
 * counts. */
SEC("tp_btf/contention_begin")
int BPF_PROG(lock_begin, void *lock, unsigned int flags)
{
	__u32 tid = current_tid();
	struct contention *slot = &contentions[tid & (LOCK_SLOTS - 1)];

	if (!tid || (slot->tid == tid && (slot->lock == (__u64)lock || is_spin_lock(flags))))
		return 0;
	slot->tid = tid;
	slot->lock = (__u64)lock;
	slot->flags = flags;
	slot->owner = lock_owner(lock, flags);
	slot->begin = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(lock_end, void *lock)
{
	__u32 tid = current_tid();
	struct contention *slot = &contentions[tid & (LOCK_SLOTS - 1)];
	__u64 now = bpf_ktime_get_ns(), begin = slot->begin;
	__u8 generation;

	if (!tid || slot->tid != tid || slot->lock != (__u64)lock)
		return 0;
	slot->tid = 0;
	if (now - begin < long_lock_ns)
		return 0;
	struct rec_lock *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->nanos = now - begin;
	record->lock = scrambled(lock);
	record->owner = slot->owner;
	record->flags = slot->flags;
	record->stack = stack_of(bpf_get_current_task_btf(), LOCK_STACK);
	record->unused = 0;
	commit(record, now, tid, sizeof(*record), REC_LOCK, generation);
	return 0;
}

/* Returns true for signals that terminate (hangup, interrupt, quit, terminate), kill, stop or
 * continue a process; others are not recorded. */
static __always_inline bool signal_matters(int number)
{
	return (number >= 1 && number <= 3) || number == 9 || number == 15 || (number >= 18 && number <= 22);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(signal_sent, int number, void *info, struct task_struct *task)
{
	__u64 now, who = bpf_get_current_pid_tgid();
	__u8 generation;

	if (!signal_matters(number))
		return 0;
	now = bpf_ktime_get_ns();
	struct rec_signal *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->sender = who >> 32;
	record->target = task->tgid;
	record->number = number;
	record->unused = 0;
	commit(record, now, (__u32)who, sizeof(*record), REC_SIGNAL, generation);
	return 0;
}

SEC("perf_event")
int sample(struct perf_context *context)
{
	__u64 now = bpf_ktime_get_ns(), who = bpf_get_current_pid_tgid();
	struct stack *stack = stack_buffer(SAMPLE_STACK);
	__u8 generation;

	if (!(__u32)who || !stack)
		return 0;
	__u32 kernel = intern_stack(stack, bpf_get_stack(context, stack->ips, sizeof(stack->ips), 0));
	__u32 user = intern_stack(stack, bpf_get_stack(context, stack->ips, sizeof(stack->ips), BPF_F_USER_STACK));
	struct rec_sample *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->pid = who >> 32;
	record->kernel_stack = kernel;
	record->user_stack = user;
	record->unused = 0;
	record->ip = context->regs[16];
	commit(record, now, (__u32)who, sizeof(*record), REC_SAMPLE, generation);
	return 0;
}

/* CPUs that went offline or came online since this program was attached: their sampling events are
 * dead. The reader resets the entry to 0. */
__u8 cpu_moved[MAX_CPUS];

SEC("tp_btf/cpuhp_exit")
int BPF_PROG(cpu_step, unsigned int cpu, int state, int step)
{
	__u8 *moved = &cpu_moved[cpu & (MAX_CPUS - 1)];

	if (step == bpf_core_enum_value(enum cpuhp_state, CPUHP_BRINGUP_CPU))
		*moved = 1;
	return 0;
}

/* Returns the session that the buffer's terminal controls. The master side of a pseudo-terminal has
 * none, so that of the slave counts. 0 if there is none, and before Linux 5.16. */
static __always_inline __u32 tty_session(struct work_struct *work)
{
	struct tty_port *port = (void *)work - bpf_core_field_offset(struct tty_port, buf.work);
	struct tty_struct *tty = BPF_CORE_READ(port, itty);

	if (!bpf_core_field_exists(struct tty_struct, ctrl))
		return 0;
	struct pid *session = BPF_CORE_READ(tty, ctrl.session);
	if (!session)
		session = BPF_CORE_READ(tty, link, ctrl.session);
	return BPF_CORE_READ(session, numbers[0].nr);
}

static __always_inline int tty_stage(struct work_struct *work, __u32 stage)
{
	__u64 now;
	__u8 generation;

	if (input_hidden || !tty_work || number_of(work->func) != tty_work)
		return 0;
	now = bpf_ktime_get_ns();
	struct rec_tty *record = reserve(RARE, sizeof(*record), now, &generation);
	if (!record)
		return 0;
	record->port = scrambled(work);
	record->stage = stage;
	record->session = tty_session(work);
	commit(record, now, current_tid(), sizeof(*record), REC_TTY, generation);
	return 0;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(tty_written, int cpu, void *pool, struct work_struct *work) { return tty_stage(work, 0); }

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(tty_delivered, struct work_struct *work) { return tty_stage(work, 1); }

/* Notes that a page of a file is not in memory and is about to be read. */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(file_read, struct folio *folio)
{
	__u32 tid = current_tid();
	struct read_file *slot = &read_files[tid & (READ_FILES - 1)];
	struct inode *inode = BPF_CORE_READ(folio, mapping, host);

	slot->tid = tid;
	slot->at = bpf_ktime_get_ns();
	slot->inode = BPF_CORE_READ(inode, i_ino);
	slot->device = BPF_CORE_READ(inode, i_sb, s_dev);
	return 0;
}
