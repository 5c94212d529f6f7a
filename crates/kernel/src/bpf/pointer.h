/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Pointer moves over each client's windows, and the wheel, while recording goes on.
 *
 * Most moves need no answer, so a missing one means nothing. A client is late while its input lies
 * in its queue, or while the thread that read it works until it draws, except for the time that it
 * waits for others. Reading the next moves finishes the earlier ones. Of a move only its existence
 * is kept. */
#pragma once
#include "sends.h"
#include "told.h"

/* Minimum time in a queue, and of work before moves are answered, that is reported. */
#define QUEUED_NS 50000000

/* Moves that came together: time of the first, and their number. */
struct moves { __u64 since; __u32 class, count; };
/* `told`: moves sent but not read, the first sent at `untaken`; `taken`: the last moves read
 * without a drawing since; `slept`: time for which the thread that read them has waited for others
 * since. */
struct pointer { struct moves told, taken; __u64 untaken, slept; };

struct pointer pointers[ANSWER_SLOTS];

static __always_inline struct pointer *pointer_of(__u32 slot)
{
	return &pointers[slot & (ANSWER_SLOTS - 1)];
}

/* Notes a move among the events of a send; the wheel takes precedence. The time is that of the
 * first. */
static __always_inline void look_at_move(struct reading *reading, __u8 class, __u32 stamp_ms)
{
	if (!reading->moves)
		reading->moved_ms = stamp_ms;
	if (reading->moves != SCROLLS)
		reading->moves = class;
}

/* Adds moves sent to a client, the first one made at `at`. */
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

/* Reports moves with this latency: they count as one. */
static __always_inline void tell_moves(__u32 slot, __u32 client, __u64 latency, __u64 now, bool queued)
{
	struct drawing late = { .since = now - latency, .last = now - latency, .client = client, .presses = 1,
				.class = pointer_of(slot)->taken.class };

	if (latency >= QUEUED_NS)
		tell_answer(&late, POINTER_SLOT + slot, now, queued);
}

/* Handles a client's read of its moves. */
static __always_inline void take_moves(__u32 slot, __u32 client, __u64 now)
{
	struct pointer *pointer = pointer_of(slot);

	pointer->taken = pointer->told;
	pointer->slept = 0;
	pointer->told.count = 0;
	close_slot(POINTER_SLOT + slot);
	tell_moves(slot, client, now - pointer->untaken, now, 1);
}

/* Adds a wait for others by the thread that read the moves, from `start` until the input in its
 * queue was sent. */
static __always_inline void moves_slept(__u32 slot, __u64 start, __u64 now)
{
	struct pointer *pointer = pointer_of(slot);
	__u64 end = pointer->told.count ? pointer->untaken : now;

	if (start < pointer->taken.since)
		start = pointer->taken.since;
	if (pointer->taken.count && end > start)
		pointer->slept += end - start;
}

/* Relates a drawing to the moves. If another thread than their reader draws, the activity in
 * between is unknown. */
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
