/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Rings that overwrite their oldest chunk.
 *
 * Each class has a pool of chunks and a queue of the chunks that no CPU owns. A CPU fills the chunk
 * it owns; when it is full the chunk goes to the end of the queue and the CPU takes the one at the
 * front, which was filled longest ago. So memory follows the load, whichever CPU carries it, a CPU
 * that sleeps keeps what it wrote, and no CPU writes into another's chunk.
 *
 * A CPU's place is one word: chunk number + 1 (24 bits), generation (8), offset (32). Reserving is
 * one atomic addition, because an interrupt may reserve in the middle of a program that reserves. */
#pragma once
#include "kernel.h"
#include "records.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* Set while a user does not want input to be recorded. */
bool input_hidden;
/* Set while recording is paused: nothing is written then, and nothing counts as lost. */
bool paused;

#define MAX_CPUS 1024
#define QUEUE 16384 /* chunks per class at most, a power of two: 1 GiB */
#define RECORD_MAX 512

/* From which length on blocks deserve a description, and interrupts and waits for locks a record; set by the loader before
 * any program runs, and by the recorder whenever somebody asks for more or less detail. */
__u64 min_block_ns, long_interrupt_ns, long_lock_ns;

enum ring_class { SCHED, RARE, EXITS, CLASSES };

struct chunk { struct rec_chunk_head head; __u8 data[CHUNK_BYTES - sizeof(struct rec_chunk_head)]; };

#define POOL(name)                               \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1);          \
		__type(key, __u32);              \
		__type(value, struct chunk);     \
	} name SEC(".maps")
POOL(pool_sched);
POOL(pool_rare);
POOL(pool_exits);

/* Where a CPU writes; and for the scheduler's records what a reader of its chunk knows, see packed.h: the time of the last
 * whole record; in which chunk and generation, and who runs, in one word; the bits that all packed records have there;
 * and with which priority it runs. */
struct place { __u64 word, since, known, same; __u32 prio, unused[7]; } __attribute__((aligned(64)));
struct queue { __u64 head, unused[7], tail, unused2[7]; __u32 chunks[QUEUE]; };

/* Filled by the loader: queues hold every chunk before the first program runs. */
struct queue queues[CLASSES];
struct place places[CLASSES][MAX_CPUS];
/* Time of the newest record that was overwritten, per class. */
__u64 overwritten_until[CLASSES];
/* Records that found no chunk, per class. */
__u64 dropped[CLASSES];

static __always_inline struct chunk *chunk_at(enum ring_class class, __u32 index)
{
	if (class == SCHED)
		return bpf_map_lookup_elem(&pool_sched, &index);
	if (class == RARE)
		return bpf_map_lookup_elem(&pool_rare, &index);
	return bpf_map_lookup_elem(&pool_exits, &index);
}

/* Takes the chunk at the front of the queue and returns the place at its first record. */
static __always_inline __u64 take_chunk(enum ring_class class, __u32 cpu, __u64 now)
{
	__u64 turn = __sync_fetch_and_add(&queues[class].head, 1);
	__u32 index = queues[class].chunks[turn & (QUEUE - 1)];
	struct chunk *chunk = chunk_at(class, index);

	if (!chunk)
		return 0;
	if (chunk->head.taken && chunk->head.closed > overwritten_until[class])
		overwritten_until[class] = chunk->head.closed;
	__u64 taken = chunk->head.taken + 1;
	chunk->head.taken = taken;
	chunk->head.opened = now;
	chunk->head.cpu = cpu;
	chunk->head.class = class;
	chunk->head.closed = 0;
	return ((__u64)(index + 1) << 40) | ((taken & 0xff) << 32) | sizeof(struct rec_chunk_head);
}

static __always_inline void give_chunk(enum ring_class class, __u64 place, __u64 now)
{
	__u32 index = (place >> 40) - 1;
	struct chunk *chunk = chunk_at(class, index);

	if (!chunk)
		return;
	chunk->head.closed = now;
	__u64 turn = __sync_fetch_and_add(&queues[class].tail, 1);
	queues[class].chunks[turn & (QUEUE - 1)] = index;
}

/* The CPU's chunk is full, or it has none: exchange it. An interrupt may have done so meanwhile. */
static __always_inline void next_chunk(enum ring_class class, __u32 cpu, __u64 now)
{
	__u64 *word = &places[class][cpu & (MAX_CPUS - 1)].word;
	__u64 old = *word;

	if ((old >> 40) && (__u32)old <= CHUNK_BYTES - RECORD_MAX)
		return;
	/* The loader makes more chunks than CPUs, so the queue is never empty here. */
	__u64 fresh = take_chunk(class, cpu, now);
	if (!fresh)
		return;
	if (__sync_val_compare_and_swap(word, old, fresh) != old)
		give_chunk(class, fresh, now);
	else if (old >> 40)
		give_chunk(class, old, now);
}

__noinline int next_chunk_sched(__u32 cpu, __u64 now) { next_chunk(SCHED, cpu, now); return 0; }
__noinline int next_chunk_rare(__u32 cpu, __u64 now) { next_chunk(RARE, cpu, now); return 0; }
__noinline int next_chunk_exits(__u32 cpu, __u64 now) { next_chunk(EXITS, cpu, now); return 0; }

static __always_inline void renew(enum ring_class class, __u32 cpu, __u64 now)
{
	if (class == SCHED)
		next_chunk_sched(cpu, now);
	else if (class == RARE)
		next_chunk_rare(cpu, now);
	else
		next_chunk_exits(cpu, now);
}

/* Room for one record of `size` bytes (a multiple of eight, at most RECORD_MAX). */
static __always_inline void *reserve(enum ring_class class, __u32 size, __u64 now, __u8 *generation)
{
	__u32 cpu = bpf_get_smp_processor_id() & (MAX_CPUS - 1);
	__u64 *word = &places[class][cpu].word;

	if (paused)
		return 0;
	for (int attempt = 0; attempt < 2; attempt++) {
		__u64 place = __sync_fetch_and_add(word, size);
		__u64 offset = (__u32)place;
		if ((place >> 40) && offset <= CHUNK_BYTES - RECORD_MAX) {
			struct chunk *chunk = chunk_at(class, (place >> 40) - 1);
			if (!chunk)
				break;
			*generation = place >> 32;
			barrier_var(offset);
			if (offset > CHUNK_BYTES - RECORD_MAX)
				break;
			return (void *)chunk + offset;
		}
		renew(class, cpu, now);
	}
	__sync_fetch_and_add(&dropped[class], 1);
	return 0;
}

/* Makes the record valid; nothing may be written to it afterwards. */
static __always_inline void commit(void *record, __u64 now, __u32 tid, __u32 size, __u8 kind, __u8 generation)
{
	__u64 *words = record;

	words[0] = now;
	barrier();
	words[1] = tid | ((__u64)size << 32) | ((__u64)kind << 48) | ((__u64)generation << 56);
}
