/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Answers, counted by class and reported one by one, each when the server is done with the drawing.
 *
 * A server is done when the thread that read the drawing waits again, reads another client's
 * requests, or sends this client an event; on Wayland, if the client asked for a frame callback,
 * when that fires. */
#pragma once
#include "ring.h"

/* Number of connections tracked, a power of two. */
#define ANSWER_SLOTS 256
/* Offset of a connection's slot for the pointer from that for presses. */
#define POINTER_SLOT ANSWER_SLOTS
/* Number of answers kept, a power of two. */
#define TOLD 1024
/* Number of threads that read presses, and drawings, by the low bits of the tid: a power of two. */
#define TAKERS 1024
/* Maximum time in which a compositor shows a frame; after that the window counts as hidden. */
#define FRAMES_NS 50000000
/* Buckets: below 2^16 ns, then eight per doubling up to 2^36 ns (69 s), then all above. */
#define ANSWER_BUCKETS 162
#define ANSWER_LEAST_BITS 16

/* Classes of input that are reported and counted separately. */
enum answer_class { KEYS, BUTTONS, SCROLLS, MOVES, ANSWER_CLASSES };

/* `turn` starts at 1, and is written last. */
struct told_answer {
	__u64 turn, at, first, last, slept;
	__u32 client, presses, slot, class, queued, silent;
};
/* An answer to presses. `since`, `last`: times of the first and last press; `silent`: number of
 * earlier presses without an answer; `handled`: time at which the server was done with it; `open`:
 * not reported yet; `framed`: the client gets a frame callback; `taken`: the server has read it. */
struct drawing {
	__u64 since, last, slept, drawn, handled;
	__u32 client, presses, class, open, silent;
	__u8 framed, taken, unused[2];
};
/* Last reader of a connection. */
struct taker { __u32 tid, slot; };

__u32 answer_counts[ANSWER_SLOTS][ANSWER_CLASSES][ANSWER_BUCKETS];
/* One bit per slot with an unanswered press, followed by one per slot with unread moves. */
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

/* Sets a bit, atomically only if it changes: slots share words, and most are already open or
 * closed. */
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

/* Reports the open drawing of a connection with this end. */
static __always_inline void finish_drawing(__u32 slot, __u64 end)
{
	struct drawing *drawing = drawing_of(slot);

	if (!drawing->open || __sync_val_compare_and_swap(&drawing->open, 1, 0) != 1)
		return;
	__sync_fetch_and_add(&drawings_open, -1);
	tell_answer(drawing, slot, end, 0);
}

/* Handles that the server is done with the requests of a connection. */
static __always_inline void drawing_handled(__u32 slot, __u64 now)
{
	struct drawing *drawing = drawing_of(slot);

	if (!drawing->open || !drawing->taken || drawing->handled)
		return;
	drawing->handled = now;
	if (!drawing->framed)
		finish_drawing(slot, now);
}

/* Handles a frame callback. After it had handled the drawing, the compositor waited for the
 * screen. */
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

/* Handles a wait of a thread while drawings are open. */
__noinline int server_waits(__u32 tid, __u64 now)
{
	struct taker *server = &servers[tid & (TAKERS - 1)];

	if (server->tid == tid)
		drawing_handled(server->slot, now);
	return 0;
}
