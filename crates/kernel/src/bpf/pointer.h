/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The pointer over each client's windows, and the wheel, while recording goes on.
 *
 * Most moves need no answer, so that one has none tells nothing. A client is late where what it was told lies in its queue,
 * or where the thread that took it goes on until it draws: for as long as it did not wait for others meanwhile. Who takes the
 * next moves is done with those before. Nothing is kept of a move but that there was one. */
#pragma once
#include "sends.h"
#include "told.h"

/* Stays in a queue, and work before moves are answered, are told from this length on. */
#define QUEUED_NS 50000000

/* Moves that came together: when the first was made, and how many they are. */
struct moves { __u64 since; __u32 class, count; };
/* What a client was told of and has not taken, the first of which was sent at `untaken`; what it took last and has not drawn
 * after; and how long the thread that took that waited for others since. */
struct pointer { struct moves told, taken; __u64 untaken, slept; };

struct pointer pointers[ANSWER_SLOTS];

static __always_inline struct pointer *pointer_of(__u32 slot)
{
	return &pointers[slot & (ANSWER_SLOTS - 1)];
}

/* Among the events of a send is a move, or a turn of the wheel, which asks for more. The time is that of the first. */
static __always_inline void look_at_move(struct reading *reading, __u8 class, __u32 stamp_ms)
{
	if (!reading->moves)
		reading->moved_ms = stamp_ms;
	if (reading->moves != SCROLLS)
		reading->moves = class;
}

/* A client was told of moves, the first of which was made at `at`. */
static __always_inline void add_moves(__u32 slot, __u32 class, __u64 at, __u64 now)
{
	struct pointer *pointer = pointer_of(slot);
	struct moves *told = &pointer->told;

	if (!told->count) {
		told->since = at;
		told->class = class;
		pointer->untaken = now;
		open_slot(POINTER_SLOT + slot);
	}
	if (class == SCROLLS)
		told->class = class;
	told->count++;
}

/* Moves that somebody was late with by so much: they count as one. */
static __always_inline void tell_moves(__u32 slot, __u32 client, __u64 latency, __u64 now, bool queued)
{
	struct drawing late = { .since = now - latency, .last = now - latency, .client = client, .presses = 1,
				.class = pointer_of(slot)->taken.class };

	if (latency >= QUEUED_NS)
		tell_answer(&late, POINTER_SLOT + slot, now, queued);
}

/* A client took the moves that it was told of. */
static __always_inline void take_moves(__u32 slot, __u32 client, __u64 now)
{
	struct pointer *pointer = pointer_of(slot);

	pointer->taken = pointer->told;
	pointer->slept = 0;
	pointer->told.count = 0;
	close_slot(POINTER_SLOT + slot);
	tell_moves(slot, client, now - pointer->untaken, now, 1);
}

/* The thread that took moves waited for others from `start` on, until what lies in its queue was sent. */
static __always_inline void moves_slept(__u32 slot, __u64 start, __u64 now)
{
	struct pointer *pointer = pointer_of(slot);
	__u64 end = pointer->told.count ? pointer->untaken : now;

	if (start < pointer->taken.since)
		start = pointer->taken.since;
	if (pointer->taken.count && end > start)
		pointer->slept += end - start;
}

/* A client draws. Only where the thread does that took the moves is it known what that did meanwhile. */
static __always_inline void answer_moves(__u32 slot, __u32 client, bool by_taker, __u64 now)
{
	struct pointer *pointer = pointer_of(slot);
	__u64 idle = pointer->taken.since + pointer->slept, busy = now > idle ? now - idle : 0;

	if (!pointer->taken.count)
		return;
	pointer->taken.count = 0;
	if (!by_taker)
		return;
	count_answer(slot, pointer->taken.class, busy);
	tell_moves(slot, client, busy, now, 0);
}
