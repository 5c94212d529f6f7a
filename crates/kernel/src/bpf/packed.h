/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Scheduler records in one word, without the parts that the reader of the chunk already knows; the
 * record crate declares and documents the fields.
 *
 * The state known to the reader is stored beside the CPU's place. It is only accessed with
 * interrupts disabled, as they are while the scheduler switches, migrates or wakes threads. So a
 * CPU does it without atomics. */
#pragma once
#include "ring.h"

#define PRIO_UNKNOWN 256
#define PUT(field, value) ((__u64)(value) << PACKED_##field)
/* Bits of a value that do not fit. */
#define EXCESS(field, value) ((__u64)(value) >> PACKED_##field##_BITS)
#define MASK(field) ((1ull << PACKED_##field##_BITS) - 1)
#define STEP_NS (1ull << PACKED_STEP_BITS)

/* Returns the time in steps, as nanoseconds: all records of one event have the same time, in any
 * ring. */
static __always_inline __u64 sched_now(void)
{
	return bpf_ktime_get_ns() & ~(STEP_NS - 1);
}

static __always_inline struct place *sched_place(void)
{
	return &places[SCHED][bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
}

/* Combines chunk and generation of a place with the running thread. */
static __always_inline __u64 life_and(__u64 place, __u32 running)
{
	return (place >> 32 << 32) | running;
}

/* Writes a word if the reader knows the running thread and the approximate time; otherwise a full
 * record is needed. */
static __always_inline bool write_word(struct place *mine, __u64 now, __u32 running, __u64 word)
{
	__u64 place = mine->word, offset = (__u32)place;

	if (paused || life_and(place, running) != mine->known || now - mine->since >= STEP_NS << PACKED_TIME_BITS)
		return 0;
	if (offset > CHUNK_BYTES - RECORD_MAX)
		return 0;
	struct chunk *chunk = chunk_at((place >> 40) - 1);
	if (!chunk)
		return 0;
	mine->word = place + sizeof(word);
	/* Bounds check again for Linux 6.1: its verifier loses the bound when the offset is spilled
	 * for the call. */
	barrier_var(offset);
	offset &= CHUNK_BYTES - sizeof(word);
	*(__u64 *)((void *)chunk + offset) =
		word | mine->same | ((now << (PACKED_TIME - PACKED_STEP_BITS)) & PUT(TIME, MASK(TIME)));
	return 1;
}

static __always_inline bool pack_switch(struct place *mine, __u64 now, __u32 tid, __u8 prio, __u32 next, __u8 next_prio,
					__u16 state)
{
	__u32 above = (__u32)next_prio - PACKED_PRIO_LEAST;

	if (prio != mine->prio || (EXCESS(TID, next) | EXCESS(PRIO, above) | (state & ~PACKED_STATES)))
		return 0;
	return write_word(mine, now, tid,
			  PUT(KIND, REC_SWITCH) | PUT(TID, next) | PUT(PRIO, above) | PUT(STATE, PACK_STATE(state)));
}

static __always_inline bool pack_waking(struct place *mine, __u64 now, __u32 waker, __u32 tid, __u8 prio, __u32 target,
					__u8 context)
{
	__u32 above = (__u32)prio - PACKED_PRIO_LEAST;

	if (EXCESS(TID, tid) | EXCESS(PRIO, above) | EXCESS(TARGET, target))
		return 0;
	return write_word(mine, now, waker,
			  PUT(KIND, REC_WAKING) | PUT(TID, tid) | PUT(PRIO, above) | PUT(CONTEXT, context) | PUT(TARGET, target));
}

static __always_inline bool pack_migrate(struct place *mine, __u64 now, __u32 by, __u32 tid, __u32 from, __u32 to)
{
	if (EXCESS(TID, tid) | EXCESS(FROM, from) | EXCESS(TO, to))
		return 0;
	return write_word(mine, now, by, PUT(KIND, REC_MIGRATE) | PUT(TID, tid) | PUT(FROM, from) | PUT(TO, to));
}

/* Records the reader's knowledge after a full record: the time, the running thread, and its
 * priority if known. */
static __always_inline void note_known(struct place *mine, __u64 now, __u32 running)
{
	__u64 known = life_and(mine->word, running);

	if (known != mine->known)
		mine->prio = PRIO_UNKNOWN;
	mine->known = known;
	mine->same = PUT(PACKED, 1) | PUT(GENERATION, (known >> 32) & MASK(GENERATION));
	mine->since = now;
}
