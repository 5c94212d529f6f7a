/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Contents of one send, in the receiver's queue or in the sender's memory.
 *
 * They are copied in blocks, in which the heads of messages are read. The queue is several times
 * cheaper to read, but the receiver may have consumed the data; the sender's memory still holds it
 * then. */
#pragma once
#include "ring.h"

/* Maximum number of memory segments read per send. */
#define SEGMENTS 8
/* Bytes copied at once: most messages are short, so this covers several heads. */
#define WINDOW 256
/* Maximum bytes of a message that any protocol reads. */
#define HEAD_MAX 40
/* Maximum number of messages read per send; for X11, enough for a full output buffer of 16 KiB. */
#define HEADS 128
#define X_HEADS 1024
/* Space for results of one send, in units of four bytes. */
#define WORDS 96
#define CALL_WRITE 1
#define CALL_WRITEV 20
#define CALL_SENDTO 44
#define CALL_SENDMSG 46
#define FLAG_MORE 1
#define FLAG_UNREAD 2
#define FLAG_SWAPPED 4

/* Layouts that programs pass to the kernel. */
struct segment { __u64 base, bytes; };
struct message_header { __u64 name; __u32 name_bytes, unused; __u64 segments, count, control, control_bytes; };

/* State of a stream between two sends. `skip`: bytes of the next send that belong to a message
 * begun before; `lost`: that is unknown; `started`: the connection setup has passed; `swapped`:
 * byte order. */
struct framing { __u32 skip; __u8 started, swapped, lost, unused; };

/* State of reading one send, and its results. */
struct reading {
	struct segment segments[SEGMENTS];
	/* Time of the send. */
	__u64 now;
	/* Number of segments; the segment of the offset, and the offset of its begin; true for the
	 * sender's memory. */
	__u32 segment_count, segment, begin;
	bool user, wayland;
	/* Process that listens at the display's socket. */
	__u32 server;
	/* `linear`: readable bytes; `heads`: messages seen; `count`: messages kept. */
	__u32 linear, offset, heads, count, flags;
	/* `press`, `stamp_ms`, `presses`: the first press among the events, and the number of
	 * presses; `last_ms`: time stamp of the last; `moves`, `moved_ms`: the first move of the
	 * pointer or the wheel; `injects`, `draws`: effects of the requests; `attaches`: they
	 * prepare a drawing; `framed`: they ask for a frame callback; `frame_done`: the callback
	 * fired; `strange`: a supposed head is none; `foreign`: an object is none that a client
	 * creates; `stopped`: there are more messages than are read. */
	__u8 request, started, swapped, press, presses, moves, injects, draws, attaches, framed, frame_done, strange, foreign,
		stopped;
	__u32 stamp_ms, last_ms, moved_ms;
	/* Wayland only: a possible entering keyboard, and one that got modifiers; the keyboard that
	 * the client has from then on; the one that leaves. */
	__u32 entering, modified, keyboard, left;
	__u32 words[WORDS];
	/* Offset of the window in the send, and its length. */
	__u32 window_begin, window_bytes;
	__u8 window[2 * WINDOW] __attribute__((aligned(8)));
};

/* Discards the results, which may be wrong. */
static __always_inline void forget(struct reading *reading)
{
	reading->heads = reading->count = 0;
	reading->press = reading->presses = reading->moves = reading->injects = reading->draws = reading->attaches = 0;
	reading->strange = reading->foreign = reading->framed = reading->frame_done = reading->stopped = 0;
	reading->entering = reading->modified = reading->keyboard = reading->left = 0;
}

static __always_inline int stop_reading(struct reading *reading)
{
	reading->flags |= FLAG_MORE;
	reading->stopped = 1;
	return 1;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reading);
} reading_buffer SEC(".maps");

static __always_inline bool copy(struct reading *reading, __u32 at, __u32 bytes, __u64 from)
{
	barrier_var(at);
	barrier_var(bytes);
	if (at > WINDOW || bytes > WINDOW)
		return 0;
	return reading->user ? !bpf_probe_read_user(reading->window + at, bytes, (void *)from)
			     : !bpf_probe_read_kernel(reading->window + at, bytes, (void *)from);
}

/* Fills the window from the offset on, from as many segments as needed, and returns its length. A
 * head's length of zeros follows. This function and those that read a head are separate for the
 * verifier: it would otherwise follow every path through them in every iteration of the callers'
 * loops. */
__noinline int fill_window(struct reading *reading)
{
	if (!reading)
		return 0;
	__u32 at = reading->segment, inside = reading->offset - reading->begin, left = reading->linear - reading->offset;
	__u32 wanted = left < WINDOW ? left : WINDOW, have = 0;
	__u32 count = reading->segment_count < SEGMENTS ? reading->segment_count : SEGMENTS;

	/* The verifier of Linux 6.1 needs a constant bound. */
	for (int i = 0; i < SEGMENTS && at < count; i++, at++) {
		barrier_var(at);
		if (at >= SEGMENTS || inside < reading->segments[at].bytes)
			break;
		inside -= reading->segments[at].bytes;
	}
	reading->segment = at;
	reading->begin = reading->offset - inside;
	for (int i = 0; i < SEGMENTS && at < count && have < wanted; i++, at++, inside = 0) {
		barrier_var(at);
		if (at >= SEGMENTS)
			break;
		__u64 here = reading->segments[at].bytes - inside;
		if (here > wanted - have)
			here = wanted - have;
		if (!copy(reading, have, here, reading->segments[at].base + inside))
			break;
		have += here;
	}
	barrier_var(have);
	if (have > WINDOW)
		return 0;
	__builtin_memset(reading->window + have, 0, HEAD_MAX);
	reading->window_begin = reading->offset;
	return reading->window_bytes = have;
}

/* Returns the head at the offset, of at most `most` bytes; NULL if it is not fully available. */
static __always_inline __u8 *find_head(struct reading *reading, __u32 most)
{
	__u32 left = reading->linear - reading->offset, wanted = left < most ? left : most;
	__u32 at = reading->offset - reading->window_begin;

	if (at + wanted > reading->window_bytes) {
		if ((__u32)fill_window(reading) < wanted)
			return 0;
		at = 0;
	}
	barrier_var(at);
	return at < WINDOW ? reading->window + at : 0;
}

/* Reads the segments at an address in the sender's memory; returns their total bytes. */
__noinline __u64 read_vector(struct reading *reading, __u64 address, __u64 count)
{
	__u64 bytes = 0;

	if (!reading)
		return 0;
	if (count > SEGMENTS)
		count = SEGMENTS;
	if (bpf_probe_read_user(reading->segments, count * sizeof(struct segment), (void *)address))
		return 0;
	reading->segment_count = count;
	for (int i = 0; i < SEGMENTS && i < count; i++)
		bytes += reading->segments[i].bytes < (1 << 30) ? reading->segments[i].bytes : 1 << 30;
	return bytes;
}

/* Returns true if the sending system call carries ancillary data, such as file descriptors. */
static __always_inline bool has_control(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct message_header header = {};

	if (!regs || (task->flags & PF_KTHREAD) || regs->orig_ax != CALL_SENDMSG)
		return 0;
	return !bpf_probe_read_user(&header, sizeof(header), (void *)regs->si) && header.control && header.control_bytes;
}

/* Finds the data passed to the sending system call; returns the number of known bytes. */
static __always_inline __u64 find_segments(struct reading *reading)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct message_header header = {};

	reading->segment_count = 1;
	if (!regs || (task->flags & PF_KTHREAD))
		return 0;
	switch (regs->orig_ax) {
	case CALL_WRITE:
	case CALL_SENDTO:
		reading->segments[0].base = regs->si;
		return reading->segments[0].bytes = regs->dx;
	case CALL_WRITEV:
		return read_vector(reading, regs->si, regs->dx);
	case CALL_SENDMSG:
		if (bpf_probe_read_user(&header, sizeof(header), (void *)regs->si))
			return 0;
		return read_vector(reading, header.segments, header.count);
	default:
		return 0;
	}
}
