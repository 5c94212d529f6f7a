/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The display tap: X11 and Wayland over AF_UNIX, recorded on send and on receive.
 *
 * The contents of a send are read in place (sends.h), and parsed by the protocol (x11.h, wayland.h)
 * of the socket (sockets.h). */
#pragma once
#include "answers.h"
#include "focus.h"
#include "sockets.h"
#include "streams.h"
#include "waits.h"

#define REQUEST_SENT 0
#define REQUEST_TAKEN 1
#define EVENT_SENT 2
#define EVENT_TAKEN 3
#define MSG_PEEK 2

/* Both kinds of records have the same fixed part except for the last field. */
_Static_assert(sizeof(struct rec_message) == sizeof(struct rec_wl_message), "one record in two forms");
_Static_assert(__builtin_offsetof(struct rec_message, display) == __builtin_offsetof(struct rec_wl_message, server),
	       "one record in two forms");

/* Reads the last buffer in the receiver's queue if it is the one just sent, complete and linear.
 * The receiver may consume it meanwhile, and its memory may be reused: a buffer that has left the
 * queue afterwards counts as unread. */
static __always_inline bool read_queue(struct reading *reading, struct framing *framing, struct sock *receiver,
				       __u32 bytes)
{
	struct sk_buff *tail = receiver->sk_receive_queue.prev;

	if (!receiver->sk_receive_queue.qlen || tail->len != bytes || tail->data_len)
		return 0;
	reading->segments[0].base = (__u64)tail->data;
	reading->segments[0].bytes = bytes;
	reading->segment_count = 1;
	read_heads(reading, bytes, 0);
	if (receiver->sk_receive_queue.prev == tail && receiver->sk_receive_queue.qlen)
		return 1;
	continue_stream(reading, framing);
	reading->flags = FLAG_UNREAD;
	forget(reading);
	return 0;
}

/* Reads the data just sent. */
static __always_inline void read_sent(struct reading *reading, struct side *side, struct sock *receiver, __u32 bytes)
{
	struct endpoint *endpoint = side->endpoint;

	if (!endpoint)
		return;
	continue_stream(reading, &endpoint->framing);
	if (!read_queue(reading, &endpoint->framing, receiver, bytes)) {
		__u64 known = find_segments(reading);
		if (known)
			read_heads(reading, known < bytes ? known : bytes, 1);
	}
	keep_framing(reading, &endpoint->framing, bytes);
	if (reading->swapped)
		reading->flags |= FLAG_SWAPPED;
}

/* Writes no byte beyond the reservation: an interrupt's record may follow. */
static __always_inline void write_words(__u64 *tail, struct reading *reading, __u32 bytes)
{
	__u64 *words = (__u64 *)reading->words;

	for (__u32 i = 0; i < WORDS / 2 && 8 * i < bytes; i++) {
		tail[i] = words[i];
		barrier();
	}
}

static __always_inline void write_message(struct side *side, struct reading *reading, __u64 now, __u32 bytes, __u8 direction)
{
	__u64 who = bpf_get_current_pid_tgid();
	__u32 count = reading ? reading->count : 0, most = side->wayland ? WAYLAND_MESSAGES : OPERATIONS, size;
	__u8 generation;

	if (count > most)
		count = most;
	size = (count * (side->wayland ? WL_WORD : 4) + 7) & ~7;
	struct rec_message *record = reserve(RARE, sizeof(struct rec_message) + size, now, &generation);
	if (!record)
		return;
	record->pid = who >> 32;
	record->connection = side->parties.connection;
	record->client = side->parties.client;
	record->bytes = bytes;
	record->direction = direction;
	record->operations = count;
	record->flags = reading ? reading->flags : 0;
	record->display = side->wayland ? side->parties.server : side->display;
	if (reading)
		write_words((void *)(record + 1), reading, size);
	commit(record, now, (__u32)who, sizeof(struct rec_message) + size, side->wayland ? REC_WL_MESSAGE : REC_MESSAGE,
	       generation);
}

static __always_inline void note_input(struct side *side, struct reading *reading)
{
	__u64 owner = side->owner, now = reading->now;

	if (reading->moves)
		note_moves(owner, side->parties.client, reading->moves, stamp_time(reading->moved_ms, now), now);
	if (!reading->press)
		return;
	__u64 at = side->wayland ? stamp_time(reading->stamp_ms, now) : press_time(side->display, reading->stamp_ms, now);
	if (!side->wayland)
		note_server(side->display, side->parties.server);
	if (reading->press != MODIFIER_PRESSED)
		note_presses(owner, side->parties.client, reading->press | reading->presses << 8, at, now);
}

/* Notes that the server has already read a drawing: it may be done with it and wait again. */
static __always_inline void note_handled(struct side *side, struct receipt *receipt, __u64 now)
{
	__u32 server = receipt->by;
	__u64 at = receipt->at;

	note_drawing_already_taken(side->owner, server, now);
	__u64 waits = waits_since(server);
	if (waits + STAMP_STEP > at)
		server_waits(server, waits);
}

/* Updates latencies from a request. An unreadable one may well be a drawing. The receipt is checked
 * after it is noted: a later reader notes its own. */
static __always_inline void note_request(struct side *side, struct reading *reading, struct sock *receiver)
{
	bool draws = reading->draws || reading->stopped || (reading->flags & FLAG_UNREAD);

	if (reading->injects)
		note_injection(side->display, side->owner, reading->now);
	if (draws)
		note_drawing(side->owner, reading->framed, reading->now);
	if (!reading->injects && !draws)
		return;
	struct receipt *receipt = receipt_of(side->endpoint, receiver);
	if (!receipt)
		return;
	if (reading->injects)
		forget_injection(side->display, reading->now);
	if (draws)
		note_handled(side, receipt, reading->now);
}

static __always_inline void note_event(struct side *side, struct reading *reading, struct sock *receiver)
{
	note_told(side->owner, reading->frame_done, reading->now);
	note_input(side, reading);
	if (!reading->press && !reading->moves)
		return;
	struct receipt *receipt = receipt_of(side->endpoint, receiver);
	if (receipt)
		note_already_taken(side->owner, receipt->by, receipt->at, reading->now);
}

/* Returns true if the data consists of Wayland messages from its first to its last byte. */
static __always_inline bool fills_exactly(struct reading *reading, __u32 bytes)
{
	return reading->heads && !reading->strange && !reading->foreign && reading->offset == bytes;
}

static __always_inline int record_sent(struct sock *sock, int bytes)
{
	struct side side = {};
	__u32 zero = 0;

	if (bytes <= 0 || !find_side(&side, sock))
		return 0;
	struct reading *reading = bpf_map_lookup_elem(&reading_buffer, &zero);
	struct sock *receiver = (struct sock *)peer_of(sock);
	if (!reading || !receiver)
		return 0;
	if (side.endpoint)
		side.endpoint->sent += bytes;
	forget(reading);
	reading->now = bpf_ktime_get_ns();
	reading->linear = 0;
	reading->flags = FLAG_UNREAD;
	reading->request = !side.is_server;
	reading->wayland = side.wayland;
	reading->server = side.parties.server;
	read_sent(reading, &side, receiver, bytes);
	if (side.nested && !settle_nested(&side, fills_exactly(reading, bytes)))
		return 0;
	write_message(&side, reading, reading->now, bytes, reading->request ? REQUEST_SENT : EVENT_SENT);
	if (reading->request)
		note_request(&side, reading, receiver);
	else
		note_event(&side, reading, receiver);
	if (side.wayland && !reading->request && (reading->keyboard || reading->left))
		note_focus(&side.parties, reading);
	return 0;
}

/* MSG_PEEK leaves the bytes in the queue. */
static __always_inline int record_taken(struct sock *sock, int bytes, int flags)
{
	struct side side = {};

	if (bytes <= 0 || (flags & MSG_PEEK) || !find_side(&side, sock))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (side.endpoint)
		add_receipt(&side.endpoint->taken, bytes, now);
	if (side.nested)
		return 0;
	write_message(&side, 0, now, bytes, side.is_server ? REQUEST_TAKEN : EVENT_TAKEN);
	if (!side.is_server)
		note_taken(side.owner, now);
	else
		note_request_taken(side.owner, now);
	if (side.is_server && !side.wayland)
		note_injection_taken(side.display, side.owner, now);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(message_sent, struct sock *sock, int bytes)
{
	note_asked(sock);
	return record_sent(sock, bytes);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(message_taken, struct sock *sock, int bytes, int flags) { return record_taken(sock, bytes, flags); }

/* Fallback for kernels without these tracepoints (before 6.3): return values of the functions
 * behind them. */
SEC("fexit/unix_stream_sendmsg")
int BPF_PROG(send_returned, struct socket *socket, void *message, unsigned long size, int bytes)
{
	return record_sent(socket->sk, bytes);
}

SEC("fexit/unix_stream_recvmsg")
int BPF_PROG(receive_returned, struct socket *socket, void *message, unsigned long size, int flags, int bytes)
{
	return record_taken(socket->sk, bytes, flags);
}
