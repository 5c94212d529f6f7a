/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What one send carries: its bytes, in the receiver's queue or in the memory of who sends.
 *
 * They are brought in blocks, and the heads of the messages are read there. The queue is several times cheaper to look at,
 * but the receiver may have taken what was sent; the sender's memory still holds it then. */
#pragma once
#include "ring.h"

/* Pieces of memory of one send that are looked at. */
#define SEGMENTS 8
/* Bytes that are brought at once: most messages are short, and the heads of several lie in them. */
#define WINDOW 256
/* Bytes of a message that any protocol looks at, at most. */
#define HEAD_MAX 40
/* Messages of one send that are looked at; of X11 so many that a whole output buffer of 16 KiB is read. */
#define HEADS 128
#define X_HEADS 1024
/* What is kept of one send, in units of four bytes. */
#define WORDS 96
#define CALL_WRITE 1
#define CALL_WRITEV 20
#define CALL_SENDTO 44
#define CALL_SENDMSG 46
#define FLAG_MORE 1
#define FLAG_UNREAD 2
#define FLAG_SWAPPED 4

/* As programs give them to the kernel. */
struct segment { __u64 base, bytes; };
struct message_header { __u64 name; __u32 name_bytes, unused; __u64 segments, count, control, control_bytes; };

/* State of a stream between two sends. `skip`: bytes of the next send that belong to a message begun before; `lost`: that is
 * not known; `started`: the set-up has passed; `swapped`: byte order. */
struct framing { __u32 skip; __u8 started, swapped, lost, unused; };

/* The reading of what one send carried: where it stands, and what was found so far. */
struct reading {
	struct segment segments[SEGMENTS];
	/* The time of the send. */
	__u64 now;
	/* How many segments there are; the one that the offset lies in, and where it begins; whether the memory is the sender's. */
	__u32 segment_count, segment, begin;
	bool user, wayland;
	/* Who listens at the display's socket. */
	__u32 server;
	/* `linear`: bytes that can be read; `heads`: messages seen; `count`: those that are kept. */
	__u32 linear, offset, heads, count, flags;
	/* `press`, `stamp_ms`, `presses`: the first press that the events tell of, and how many they are; `last_ms`: the stamp of
	 * the last; `moves`, `moved_ms`: the first move of the pointer or the wheel; `injects`, `draws`: what the requests do;
	 * `attaches`: they prepare a drawing; `framed`: they ask when its frame is done; `frame_done`: that is told; `strange`:
	 * what was taken for the head of a message is none; `foreign`: an object is none that a client makes; `stopped`: there
	 * are more messages than are looked at. */
	__u8 request, started, swapped, press, presses, moves, injects, draws, attaches, framed, frame_done, strange, foreign,
		stopped;
	__u32 stamp_ms, last_ms, moved_ms;
	/* Of Wayland: what may be a keyboard that enters, and one whose modifiers were told; the keyboard that the client has from
	 * then on; what leaves it. */
	__u32 entering, modified, keyboard, left;
	__u32 words[WORDS];
	/* Where in what was sent the bytes in the window begin, and how many they are. */
	__u32 window_begin, window_bytes;
	__u8 window[2 * WINDOW] __attribute__((aligned(8)));
};

/* Forgets what was found, where it may be wrong. */
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

/* Fills the window from the offset on, from as many segments as its bytes lie in; how many they are. Behind them
 * a head's length is zero. A function of its own to the verifier, as are those that read a head: it would else
 * follow every path through each of them through every turn of the loops around it. */
__noinline int fill_window(struct reading *reading)
{
	if (!reading)
		return 0;
	__u32 at = reading->segment, inside = reading->offset - reading->begin, left = reading->linear - reading->offset;
	__u32 wanted = left < WINDOW ? left : WINDOW, have = 0;
	__u32 count = reading->segment_count < SEGMENTS ? reading->segment_count : SEGMENTS;

	/* A bound that is a constant is all that the check of Linux 6.1 knows. */
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

/* The head at the offset, of at most so many bytes; NULL where its bytes are not all there. */
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

/* The segments that lie at an address in the sender's memory; how many bytes they have in all. */
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

/* Whether the system call that sends has something beside bytes, as files. */
static __always_inline bool has_control(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct message_header header = {};

	if (!regs || (task->flags & PF_KTHREAD) || regs->orig_ax != CALL_SENDMSG)
		return 0;
	return !bpf_probe_read_user(&header, sizeof(header), (void *)regs->si) && header.control && header.control_bytes;
}

/* Where the system call that sends says that the bytes lie; how many of them are known. */
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
