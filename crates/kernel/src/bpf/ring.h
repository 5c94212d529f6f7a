/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Rings that overwrite their oldest chunk.
 *
 * Each class has a share of the pool of chunks, and a queue of those not owned by a CPU. A CPU
 * fills the chunk that it owns; a full one goes to the end of the queue, and the CPU takes the one
 * at the front, which was filled longest ago. So memory follows the load on any CPU, an idle CPU
 * keeps its records, and no CPU writes to another's chunk.
 *
 * Memory also follows the load between scheduler and rare records: if the oldest chunk of one class
 * is older than any mark copies, the other class takes it before a younger one of its own. The
 * share comes back as soon as it is needed.
 *
 * A CPU's place is one word: chunk number + 1 (24 bits), generation (8), offset (32). Reserving is
 * one atomic addition, since an interrupt may reserve in the middle of a program that reserves. */
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
#define QUEUE 16384 /* maximum number of chunks, a power of two: 1 GiB */
#define TRIES 16 /* maximum number of CPUs that may take or give a chunk at the same time */
#define RECORD_MAX 512

/* Minimum lengths of blocks to be described, and of interrupts and lock waits to be recorded; set
 * by the loader before any program runs, and by the recorder when the level of detail changes. */
__u64 min_block_ns, long_interrupt_ns, long_lock_ns;

enum ring_class { SCHED, RARE, EXITS, CLASSES };

struct chunk { struct rec_chunk_head head; __u8 data[CHUNK_BYTES - sizeof(struct rec_chunk_head)]; };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chunk);
} pool SEC(".maps");

/* Zeros to clear chunks with. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chunk);
} blank_chunk SEC(".maps");

/* Age beyond which no mark copies records. Set by the loader, as the two below are. */
const volatile __u64 kept_ns = 40000000000ull;
/* Initial number of chunks per class, and the minimum that each class keeps. */
const volatile __u32 shares[CLASSES], least_share;

/* A CPU's place. For scheduler records also the state known to a reader of its chunk, see packed.h:
 * time of the last full record; chunk, generation and running thread in one word; the bits common
 * to all packed records there; and the priority of the running thread. */
struct place { __u64 word, since, known, same; __u32 prio, unused[7]; } __attribute__((aligned(64)));
/* A slot holds its turn and, once filled, the number + 1 of a chunk. So a preempted CPU blocks no
 * other: its operation is either complete or can be completed by others. */
struct queue { __u64 head, unused[7], tail, unused2[7]; __u64 slots[QUEUE]; };
#define NUMBER_BITS 24
#define NUMBER ((1ull << NUMBER_BITS) - 1)

/* Filled by the loader: queues hold every chunk before the first program runs. */
struct queue queues[CLASSES];
/* Current number of chunks per class. */
__u32 owned[CLASSES];
struct place places[CLASSES][MAX_CPUS];
/* Time of the newest overwritten record, per class. */
__u64 overwritten_until[CLASSES];
/* Number of records without a chunk, per class. */
__u64 dropped[CLASSES];

static __always_inline struct chunk *chunk_at(__u32 index)
{
	return bpf_map_lookup_elem(&pool, &index);
}

/* Reads a word that another CPU may have changed. */
static __always_inline __u64 fresh(__u64 *word)
{
	return *(volatile __u64 *)word;
}

/* Takes the chunk at the front of a queue and returns its number + 1; 0 if every chunk is owned by
 * a CPU or being exchanged. */
static __always_inline __u32 take_first(enum ring_class class)
{
	struct queue *queue = &queues[class];

	for (int tries = 0; tries < TRIES; tries++) {
		__u64 turn = fresh(&queue->head), *slot = &queue->slots[turn & (QUEUE - 1)], seen = fresh(slot);
		if (seen == turn << NUMBER_BITS)
			return 0;
		if (seen >> NUMBER_BITS != turn || __sync_val_compare_and_swap(&queue->head, turn, turn + 1) != turn)
			continue;
		*slot = (turn + QUEUE) << NUMBER_BITS;
		return seen & NUMBER;
	}
	return 0;
}

/* Puts a chunk at the end of a queue. After too many failures the chunk is no longer written to,
 * but a mark still copies its contents. */
static __always_inline void give_last(enum ring_class class, __u32 number)
{
	struct queue *queue = &queues[class];

	for (int tries = 0; tries < TRIES; tries++) {
		__u64 turn = fresh(&queue->tail), empty = turn << NUMBER_BITS;
		__u64 seen = __sync_val_compare_and_swap(&queue->slots[turn & (QUEUE - 1)], empty, empty | number);
		__sync_val_compare_and_swap(&queue->tail, turn, turn + 1);
		if (seen == empty)
			return;
	}
}

/* Returns true if no mark would copy the chunk at the front of a queue. */
static __always_inline bool is_spent(enum ring_class class, __u64 now)
{
	__u64 slot = queues[class].slots[queues[class].head & (QUEUE - 1)];
	struct chunk *chunk = chunk_at((__u32)(slot & NUMBER) - 1);

	return chunk && (!chunk->head.taken || chunk->head.closed + kept_ns < now);
}

/* Returns true if a class takes its next chunk from the queue of the other one. */
static __always_inline bool takes_from(enum ring_class class, enum ring_class other, __u64 now)
{
	if (is_spent(class, now))
		return 0;
	return owned[class] < shares[class] || (owned[other] > least_share && is_spent(other, now));
}

/* Returns the number + 1 of the next chunk of a class; 0 if there is none. Classes are constants
 * here, since older verifiers cannot track computed ones. */
static __always_inline __u32 next_number(enum ring_class class, __u64 now)
{
	enum ring_class other = class == SCHED ? RARE : SCHED;

	if (class != EXITS && takes_from(class, other, now)) {
		__u32 number = take_first(other);
		if (number) {
			__sync_fetch_and_add(&owned[class], 1);
			__sync_fetch_and_add(&owned[other], -1);
			return number;
		}
	}
	return take_first(class);
}

/* Clears a chunk: records of one class may look like valid ones of another, which not every user
 * may see. */
static __always_inline void clear(struct chunk *chunk)
{
	__u32 zero = 0;
	struct chunk *blank = bpf_map_lookup_elem(&blank_chunk, &zero);

	if (blank)
		bpf_probe_read_kernel(chunk->data, sizeof(chunk->data), blank->data);
}

/* Updates the time of overwritten records if the chunk belonged to this class. */
static __always_inline void overwrite(enum ring_class class, struct chunk *chunk)
{
	if (chunk->head.class == class && chunk->head.closed > overwritten_until[class])
		overwritten_until[class] = chunk->head.closed;
}

/* Takes a chunk and returns the place of its first record. */
static __always_inline __u64 take_chunk(enum ring_class class, __u32 cpu, __u64 now)
{
	__u32 number = next_number(class, now);
	struct chunk *chunk = chunk_at(number - 1);

	if (!chunk)
		return 0;
	if (chunk->head.taken) {
		overwrite(SCHED, chunk);
		overwrite(RARE, chunk);
		overwrite(EXITS, chunk);
		if (chunk->head.class != class)
			clear(chunk);
	}
	__u64 taken = chunk->head.taken + 1;
	chunk->head.taken = taken;
	chunk->head.opened = now;
	chunk->head.cpu = cpu;
	chunk->head.class = class;
	chunk->head.closed = 0;
	return ((__u64)number << 40) | ((taken & 0xff) << 32) | sizeof(struct rec_chunk_head);
}

static __always_inline void give_chunk(enum ring_class class, __u64 place, __u64 now)
{
	__u32 number = place >> 40;
	struct chunk *chunk = chunk_at(number - 1);

	if (!chunk)
		return;
	chunk->head.closed = now;
	give_last(class, number);
}

/* Exchanges the CPU's chunk if it is full or missing. An interrupt may have done so meanwhile. */
static __always_inline void next_chunk(enum ring_class class, __u32 cpu, __u64 now)
{
	__u64 *word = &places[class][cpu & (MAX_CPUS - 1)].word;
	__u64 old = *word;

	if ((old >> 40) && (__u32)old <= CHUNK_BYTES - RECORD_MAX)
		return;
	/* The loader makes more chunks than CPUs: none is left only while many CPUs exchange
	 * theirs. */
	__u64 taken = take_chunk(class, cpu, now);
	if (!taken)
		return;
	if (__sync_val_compare_and_swap(word, old, taken) != old)
		give_chunk(class, taken, now);
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

/* Reserves `size` bytes for a record (a multiple of eight, at most RECORD_MAX). */
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
			struct chunk *chunk = chunk_at((place >> 40) - 1);
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
