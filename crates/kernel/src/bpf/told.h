/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Answers, counted by class, and told one by one: each when the server is done with the drawing.
 *
 * A server is done when the thread that took the drawing waits again, takes what another client sent, or tells this one
 * of something; on Wayland, where the client asked for it, when it is told that its frame is done. */
#pragma once
#include "ring.h"

/* Connections that are watched at once, a power of two. */
#define ANSWER_SLOTS 256
/* Beside its slot for presses each of them has one for the pointer, so many further on. */
#define POINTER_SLOT ANSWER_SLOTS
/* Answers that are kept, a power of two. */
#define TOLD 1024
/* Threads that take presses, and drawings, by the low bits of their id: a power of two. */
#define TAKERS 1024
/* A compositor shows a frame within this time, or nobody sees it. */
#define FRAMES_NS 50000000
/* Counts: below 2^16 ns, then eight buckets to each doubling up to 2^36 ns (69 s), then all above. */
#define ANSWER_BUCKETS 162
#define ANSWER_LEAST_BITS 16

/* Input that is told, and counted, apart. */
enum answer_class { KEYS, BUTTONS, SCROLLS, MOVES, ANSWER_CLASSES };

/* `turn` counts from 1 on, and is written last. */
struct told_answer {
	__u64 turn, at, first, last, slept;
	__u32 client, presses, slot, class, queued, silent;
};
/* What answers presses. `since` and `last`: when the first of them was made, and the last; `silent`: how many before had no
 * answer. `handled`: when the server
 * was done with it; `open`: it is not told yet; `framed`: the client is told when its frame is done; `taken`: the
 * server has it. */
struct drawing {
	__u64 since, last, slept, drawn, handled;
	__u32 client, presses, class, open, silent;
	__u8 framed, taken, unused[2];
};
/* Who took something last, and of which connection. */
struct taker { __u32 tid, slot; };

__u32 answer_counts[ANSWER_SLOTS][ANSWER_CLASSES][ANSWER_BUCKETS];
/* A bit for each slot with a press that was not answered, and behind them for each with moves that were not taken. */
__u64 answers_open[2 * ANSWER_SLOTS / 64];
struct told_answer told_answers[TOLD];
__u64 answers_told;
struct drawing drawings[ANSWER_SLOTS];
__u32 drawings_open;
struct taker servers[TAKERS];

static __always_inline __u64 slot_bit(__u32 slot)
{
	return 1ull << (slot & 63);
}

static __always_inline __u64 *open_word(__u32 slot)
{
	return &answers_open[(slot & (2 * ANSWER_SLOTS - 1)) / 64];
}

/* Slots share words, and most are open or closed already. */
static __always_inline void open_slot(__u32 slot)
{
	if (!(*open_word(slot) & slot_bit(slot)))
		__sync_fetch_and_or(open_word(slot), slot_bit(slot));
}

static __always_inline void close_slot(__u32 slot)
{
	if (*open_word(slot) & slot_bit(slot))
		__sync_fetch_and_and(open_word(slot), ~slot_bit(slot));
}

static __always_inline __u32 latency_bucket(__u64 latency)
{
	__u32 bits = 0;

	for (__u64 rest = latency >> ANSWER_LEAST_BITS; rest && bits < 21; rest >>= 1)
		bits++;
	if (!bits)
		return 0;
	if (bits > 20)
		return ANSWER_BUCKETS - 1;
	return 1 + (bits - 1) * 8 + ((latency >> (bits + ANSWER_LEAST_BITS - 4)) & 7);
}

__noinline int count_answer(__u32 slot, __u32 class, __u64 latency)
{
	__u32 bucket = latency_bucket(latency);

	if (bucket < ANSWER_BUCKETS)
		answer_counts[slot & (ANSWER_SLOTS - 1)][class & (ANSWER_CLASSES - 1)][bucket]++;
	return 0;
}

static __always_inline void tell_answer(struct drawing *drawing, __u32 slot, __u64 end, bool queued)
{
	__u64 turn = __sync_fetch_and_add(&answers_told, 1);
	struct told_answer *told = &told_answers[turn & (TOLD - 1)];

	told->turn = 0;
	barrier();
	told->at = end;
	told->first = end > drawing->since ? end - drawing->since : 0;
	told->last = end > drawing->last ? end - drawing->last : 0;
	told->slept = drawing->slept;
	told->silent = drawing->silent;
	told->client = drawing->client;
	told->presses = drawing->presses;
	told->slot = slot;
	told->class = drawing->class;
	told->queued = queued;
	barrier();
	told->turn = turn + 1;
}

static __always_inline struct drawing *drawing_of(__u32 slot)
{
	return &drawings[slot & (ANSWER_SLOTS - 1)];
}

/* Tells what is open on a connection, with this end. */
static __always_inline void finish_drawing(__u32 slot, __u64 end)
{
	struct drawing *drawing = drawing_of(slot);

	if (!drawing->open || __sync_val_compare_and_swap(&drawing->open, 1, 0) != 1)
		return;
	__sync_fetch_and_add(&drawings_open, -1);
	tell_answer(drawing, slot, end, 0);
}

/* The server is done with what it took of a connection. */
static __always_inline void drawing_handled(__u32 slot, __u64 now)
{
	struct drawing *drawing = drawing_of(slot);

	if (!drawing->open || !drawing->taken || drawing->handled)
		return;
	drawing->handled = now;
	if (!drawing->framed)
		finish_drawing(slot, now);
}

/* The client was told that its frame is done. Until then a compositor that had handled it waited for the screen. */
static __always_inline void frame_done(__u32 slot, __u64 now)
{
	struct drawing *drawing = drawing_of(slot);
	__u64 handled = drawing->handled;

	if (!handled)
		return;
	if (now - handled > FRAMES_NS)
		return finish_drawing(slot, handled);
	drawing->slept += now - handled;
	finish_drawing(slot, now);
}

/* A thread waits, while drawings are open. */
__noinline int server_waits(__u32 tid, __u64 now)
{
	struct taker *server = &servers[tid & (TAKERS - 1)];

	if (server->tid == tid)
		drawing_handled(server->slot, now);
	return 0;
}
