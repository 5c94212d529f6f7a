/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Coarse latency of each client from a press to its next drawing, measured while recording goes on;
 * pointer.h handles the pointer.
 *
 * The recorder learns baselines from it and notices outliers by it; exact times come from the
 * records, after a mark. Of a key only the fact of its press is kept. Modifiers, which get no
 * answer, are excluded by their codes, which are then discarded. */
#pragma once
#include "pointer.h"

/* Probes per connection, and time without input after which its slot may be reused. */
#define ANSWER_PROBES 4
#define ANSWER_IDLE_NS 300000000000ull
/* Minimum sleep that ends a wait. */
#define SLEPT_NS 1000000
/* Maximum time from a wakeup by a send to the return of that send: a slower send is not recognised
 * as the waker. */
#define WOKEN_NS 1000000
/* Minimum time between two presses that a wait in between can separate. */
#define APART_NS 20000000
/* Maximum number of attempts to take a slot that another CPU modifies. */
#define HOLD_TRIES 64
/* Maximum time from the server's read of an injected press to the event that it causes. */
#define INJECTED_NS 100000000
#define DISPLAYS 64

enum press { NO_PRESS, KEY_PRESSED, BUTTON_PRESSED, MODIFIER_PRESSED };

/* A connection. Times are 0 if unset. `used`: last input sent to its client; `slept`: time since
 * the first press for which the thread that reads presses waited for something other than its own
 * process or a disk; `woken`, `woken_by`: end of its last such wait, and the waker; `silent`:
 * presses that it finished without a drawing; `drawn`, `drawer`, `framed`: time and thread of the
 * last drawing, true if the client asked for a frame callback; `held`: a CPU modifies the slot. */
struct answer {
	__u64 used, since, last, untaken, slept, woken, drawn;
	__u32 client, presses, fresh, class, drawer, framed, held, silent, woken_by, unused;
};
/* The oldest press that a client injected into a display and that no client has been sent. */
struct injected { __u64 at, taken, connection; };

struct answer answers[ANSWER_SLOTS];
/* Server's end of each connection, 0 for a free slot. Most connections looked up have no slot, so
 * the owners are stored apart: all probes of one lie in one or two cache lines. */
__u64 owners[ANSWER_SLOTS];
/* Threads that read presses or moves. */
struct taker takers[TAKERS];
/* Presses on connections without a slot, and updates lost while another CPU held a slot for too
 * long. */
__u64 answers_unwatched;
struct injected injected[DISPLAYS];

/* X keycodes of modifiers: shift, control, alt, super and locks. */
static __always_inline bool is_modifier(__u8 code)
{
	return code == 37 || code == 50 || code == 62 || code == 64 || code == 66 || code == 77 || code == 78 ||
	       code == 92 || code == 105 || code == 108 || code == 133 || code == 134;
}

/* Drawing requests of X server extensions, by the pid that listens at the server's socket, as
 * learned by the recorder: a bit per minor opcode, indexed by the major opcode from 128 on. */
struct drawing_requests { __u64 minors[128]; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DISPLAYS);
	__type(key, __u32);
	__type(value, struct drawing_requests);
} drawing_requests SEC(".maps");
/* The last unknown server on which something was pressed: display number and listening pid. */
struct unknown_server { __u32 display, server; };
struct unknown_server unknown_server;

/* Returns true for requests that change the screen; for an unknown server, every extension request
 * counts. */
static __always_inline bool is_drawing(struct reading *reading, __u8 major, __u8 minor, __u32 fake)
{
	__u32 server = reading->server;

	if (major < 128)
		return major >= 61 && major <= 77 && major != 73;
	struct drawing_requests *known = bpf_map_lookup_elem(&drawing_requests, &server);
	if (!known)
		return !fake;
	return minor < 64 && (known->minors[major & 127] >> (minor & 63) & 1);
}

static __always_inline void note_server(__u32 display, __u32 server)
{
	if (paused || bpf_map_lookup_elem(&drawing_requests, &server))
		return;
	unknown_server.display = display;
	unknown_server.server = server;
}

static __always_inline __u32 answer_place(__u64 owner, __u32 probe)
{
	return (((owner * 0x9e3779b97f4a7c15ull) >> 40) + probe) & (ANSWER_SLOTS - 1);
}

/* Returns the slot of a connection, or `ANSWER_SLOTS` if it has none. */
static __always_inline __u32 find_answer(__u64 owner)
{
	for (int probe = 0; probe < ANSWER_PROBES; probe++) {
		__u32 place = answer_place(owner, probe);
		if (owners[place] == owner)
			return place;
	}
	return ANSWER_SLOTS;
}

/* Returns the slot of a connection, reusing one that is free or has been idle for long. */
static __always_inline __u32 take_answer(__u64 owner, __u32 client, __u64 now)
{
	__u32 known = find_answer(owner);

	for (int probe = 0; probe < ANSWER_PROBES && known >= ANSWER_SLOTS; probe++) {
		__u32 place = answer_place(owner, probe);
		if (!owners[place] || answers[place].used + ANSWER_IDLE_NS < now)
			known = place;
	}
	if (known >= ANSWER_SLOTS)
		return known;
	struct answer *answer = &answers[known & (ANSWER_SLOTS - 1)];
	if (owners[known] != owner || answer->client != client) {
		answer->presses = answer->fresh = answer->silent = 0;
		answer->untaken = answer->drawn = 0;
		__builtin_memset(pointer_of(known), 0, sizeof(struct pointer));
		answer->client = client;
		owners[known] = owner;
	}
	return known;
}

/* Excludes other CPUs from a slot for less than a microsecond. Returns false if one of them held it
 * for too long; the update then counts as lost. */
__noinline int hold(__u32 slot)
{
	struct answer *answer = &answers[slot & (ANSWER_SLOTS - 1)];

	for (int i = 0; i < HOLD_TRIES; i++)
		if (!__sync_val_compare_and_swap(&answer->held, 0, 1))
			return 1;
	__sync_fetch_and_add(&answers_unwatched, 1);
	return 0;
}

static __always_inline void release(struct answer *answer)
{
	__sync_fetch_and_and(&answer->held, 0);
}

/* Returns true if the thread that reads presses waited for its next event until the current thread
 * sent it another press: it had finished the earlier ones. */
static __always_inline bool is_done(struct answer *answer, __u64 at, __u64 now)
{
	if (answer->fresh || now - answer->woken >= WOKEN_NS || at <= answer->last || at - answer->last < APART_NS)
		return 0;
	return answer->woken_by == (__u32)bpf_get_current_pid_tgid();
}

static __always_inline void add_presses(struct answer *answer, __u32 press, __u32 count, __u64 at, __u64 now)
{
	if (is_done(answer, at, now)) {
		answer->silent += answer->presses;
		answer->presses = 0;
	}
	if (!answer->presses) {
		answer->since = at;
		answer->slept = 0;
		answer->class = press == BUTTON_PRESSED ? BUTTONS : KEYS;
	}
	if (!answer->fresh)
		answer->untaken = now;
	answer->fresh += count;
	answer->presses += count;
	answer->last = at;
	answer->used = now;
}

/* Notes the first press among the events of a send, and their number. A modifier counts only until
 * another press follows. */
static __always_inline void look_at_press(struct reading *reading, __u8 press, __u32 stamp_ms)
{
	bool other = press != MODIFIER_PRESSED, known = reading->press && reading->press != MODIFIER_PRESSED;

	reading->last_ms = stamp_ms;
	if (other && reading->presses < 255)
		reading->presses++;
	if (known)
		return;
	reading->press = press;
	reading->stamp_ms = stamp_ms;
}

/* Notes presses sent to a client, the first one made at `at`; `told` holds their kind and
 * number. */
__noinline int note_presses(__u64 owner, __u32 client, __u32 told, __u64 at, __u64 now)
{
	if (paused)
		return 0;
	__u32 slot = take_answer(owner, client, now);

	if (slot >= ANSWER_SLOTS) {
		__sync_fetch_and_add(&answers_unwatched, 1);
		return 0;
	}
	if (!hold(slot))
		return 0;
	add_presses(&answers[slot], told & 0xff, told >> 8, at, now);
	open_slot(slot);
	release(&answers[slot]);
	return 0;
}

/* Notes moves of the pointer or the wheel sent to a client, the first one made at `at`. */
__noinline int note_moves(__u64 owner, __u32 client, __u32 class, __u64 at, __u64 now)
{
	if (paused)
		return 0;
	__u32 slot = take_answer(owner, client, now);

	if (slot >= ANSWER_SLOTS || !hold(slot))
		return 0;
	answers[slot].used = now;
	add_moves(slot, class, at, now);
	release(&answers[slot]);
	return 0;
}

static __always_inline void take_presses(struct answer *answer, __u32 slot, __u64 now)
{
	if (now - answer->untaken >= QUEUED_NS) {
		struct drawing none = { .since = answer->untaken, .last = answer->untaken, .client = answer->client,
					.presses = answer->presses, .class = answer->class };
		tell_answer(&none, slot, now, 1);
	}
	answer->fresh = 0;
	answer->untaken = 0;
}

/* Handles a read of presses and moves by a thread of their client. */
static __always_inline void take_input(struct answer *answer, __u32 slot, __u32 tid, __u64 now)
{
	bool moves = pointer_of(slot)->told.count;
	struct taker *taker = &takers[tid & (TAKERS - 1)];

	if (!answer->fresh && !moves)
		return;
	taker->slot = slot;
	taker->tid = tid;
	if (answer->fresh)
		take_presses(answer, slot, now);
	if (moves)
		take_moves(slot, answer->client, now);
}

/* Notes a client's read of its input; the time in its queue is known without a drawing. */
__noinline int note_taken(__u64 owner, __u64 now)
{
	__u32 slot = find_answer(owner);

	if (slot >= ANSWER_SLOTS)
		return 0;
	struct answer *answer = &answers[slot];
	if ((!answer->fresh && !pointer_of(slot)->told.count) || !hold(slot))
		return 0;
	take_input(answer, slot, (__u32)bpf_get_current_pid_tgid(), now);
	release(answer);
	return 0;
}

/* Returns true if the thread reads presses or moves; most never do. */
static __always_inline bool took_presses(__u32 tid)
{
	return takers[tid & (TAKERS - 1)].tid == tid;
}

/* Notes a sleep of a thread that reads presses or moves, from `start` on, for something other than
 * its own process or a disk. The arrival of input in its queue ended its idle time. `waker`: thread
 * that woke it, 0 if none did. */
static __noinline void note_slept(__u32 tid, __u64 start, __u64 now, __u32 waker)
{
	struct taker *taker = &takers[tid & (TAKERS - 1)];

	if (now - start < SLEPT_NS)
		return;
	struct answer *answer = &answers[taker->slot & (ANSWER_SLOTS - 1)];
	answer->woken = now;
	answer->woken_by = waker;
	moves_slept(taker->slot, start, now);
	if (answer->presses <= answer->fresh)
		return;
	__u64 end = answer->fresh ? answer->untaken : now;
	if (start < answer->since)
		start = answer->since;
	if (end > start)
		answer->slept += end - start;
}

/* Opens a drawing, which is reported once the server is done with it; an earlier open one ends here
 * at the latest. One drawing may answer presses that are noted one after the other. */
static __always_inline void open_drawing(struct answer *answer, __u32 slot, bool framed, __u64 now)
{
	struct drawing *drawing = drawing_of(slot);

	if (drawing->open && drawing->drawn == now) {
		drawing->presses += answer->presses - answer->fresh;
		drawing->last = answer->last;
		return;
	}
	finish_drawing(slot, drawing->handled ? drawing->handled : drawing->drawn);
	drawing->since = answer->since;
	drawing->last = answer->fresh ? answer->since : answer->last;
	drawing->slept = answer->slept;
	drawing->silent = answer->silent;
	drawing->drawn = now;
	drawing->handled = 0;
	drawing->client = answer->client;
	drawing->presses = answer->presses - answer->fresh;
	drawing->class = answer->class;
	drawing->framed = framed;
	drawing->taken = 0;
	barrier();
	drawing->open = 1;
	__sync_fetch_and_add(&drawings_open, 1);
}

/* Returns true if the current thread last read the input of this connection. */
static __always_inline bool is_taker(__u32 slot)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct taker *taker = &takers[tid & (TAKERS - 1)];

	return taker->tid == tid && taker->slot == slot;
}

/* Relates a client's last drawing to the input that it has read; input in its queue stays open. */
static __always_inline void answer_taken(struct answer *answer, __u32 slot, bool by_taker)
{
	__u32 fresh = answer->fresh, presses = answer->presses;
	__u64 drawn = answer->drawn;

	answer_moves(slot, answer->client, by_taker, drawn);
	if (presses <= fresh)
		return;
	if (presses - fresh == 1)
		count_answer(slot, answer->class, drawn > answer->since ? drawn - answer->since : 0);
	open_drawing(answer, slot, answer->framed, drawn);
	answer->presses = fresh;
	answer->since = answer->untaken;
	answer->slept = answer->silent = 0;
	if (!fresh)
		close_slot(slot);
}

/* Notes a drawing of a client. */
__noinline int note_drawing(__u64 owner, bool framed, __u64 now)
{
	__u32 slot = find_answer(owner);

	if (slot >= ANSWER_SLOTS || !hold(slot))
		return 0;
	struct answer *answer = &answers[slot];
	answer->drawer = (__u32)bpf_get_current_pid_tgid();
	answer->framed = framed;
	answer->drawn = now;
	answer_taken(answer, slot, is_taker(slot));
	release(answer);
	return 0;
}

/* Notes a read of input at `at`, before its send returned. The client may have drawn since. */
__noinline int note_already_taken(__u64 owner, __u32 tid, __u64 at, __u64 now)
{
	__u32 slot = find_answer(owner);

	if (slot >= ANSWER_SLOTS || !hold(slot))
		return 0;
	struct answer *answer = &answers[slot];
	take_input(answer, slot, tid, now);
	if (answer->drawn > at)
		answer_taken(answer, slot, answer->drawer == tid);
	release(answer);
	return 0;
}

/* Notes a server's read of a client's request: the server is done with other clients' drawings. */
__noinline int note_request_taken(__u64 owner, __u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct taker *server = &servers[tid & (TAKERS - 1)];

	if (!drawings_open)
		return 0;
	__u32 slot = find_answer(owner);
	if (server->tid == tid && server->slot != slot)
		drawing_handled(server->slot, now);
	if (slot >= ANSWER_SLOTS || !drawing_of(slot)->open)
		return 0;
	drawing_of(slot)->taken = 1;
	server->slot = slot;
	server->tid = tid;
	return 0;
}

/* Notes a server thread's read of a drawing before its send returned. If it has since read that of
 * another client, it is done with this one. */
__noinline int note_drawing_already_taken(__u64 owner, __u32 tid, __u64 now)
{
	struct taker *server = &servers[tid & (TAKERS - 1)];
	__u32 slot = find_answer(owner);

	if (slot >= ANSWER_SLOTS || !drawing_of(slot)->open)
		return 0;
	struct drawing *other = drawing_of(server->slot);
	drawing_of(slot)->taken = 1;
	if (server->tid == tid && server->slot != slot && other->open && other->taken && !other->handled) {
		drawing_handled(slot, now);
		return 0;
	}
	server->slot = slot;
	server->tid = tid;
	return 0;
}

/* Notes an event that a server sent to a client. */
__noinline int note_told(__u64 owner, bool frame, __u64 now)
{
	if (!drawings_open)
		return 0;
	__u32 slot = find_answer(owner);
	if (slot >= ANSWER_SLOTS)
		return 0;
	drawing_handled(slot, now);
	if (frame)
		frame_done(slot, now);
	return 0;
}

/* Notes a press injected by a client: the first one that the server has not read is remembered. */
static __always_inline void note_injection(__u32 display, __u64 connection, __u64 now)
{
	struct injected *open = &injected[display & (DISPLAYS - 1)];

	if (open->at && !open->taken && open->connection == connection)
		return;
	open->at = now;
	open->taken = 0;
	open->connection = connection;
}

static __always_inline void note_injection_taken(__u32 display, __u64 connection, __u64 now)
{
	struct injected *open = &injected[display & (DISPLAYS - 1)];

	if (open->at && !open->taken && open->connection == connection)
		open->taken = now;
}

/* Forgets a press injected at `at`: the server read it before its send returned and may have
 * delivered it, so its time is that of the delivery. */
static __always_inline void forget_injection(__u32 display, __u64 at)
{
	struct injected *open = &injected[display & (DISPLAYS - 1)];

	if (open->at == at)
		open->at = 0;
}

/* Returns the time of a press from its time stamp. */
static __always_inline __u64 stamp_time(__u32 stamp_ms, __u64 now)
{
	__u32 age_ms = (__u32)(now / 1000000) - stamp_ms;

	return age_ms >= 20 && age_ms < 10000 ? now - age_ms * 1000000ull : now;
}

/* Returns the time of a press that a server delivers now: that of its injection or time stamp. */
static __always_inline __u64 press_time(__u32 display, __u32 stamp_ms, __u64 now)
{
	struct injected *open = &injected[display & (DISPLAYS - 1)];
	__u64 at = open->at, taken = open->taken;

	open->at = 0;
	if (at && at < now && (!taken || now - taken < INJECTED_NS))
		return at;
	return stamp_time(stamp_ms, now);
}
