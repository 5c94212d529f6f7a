/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The display tap: X11 traffic over AF_UNIX, seen when it is sent and when it is taken.
 *
 * A socket belongs to an X server when it is bound to /tmp/.X11-unix/X<n> (also in the abstract name
 * space); accepted sockets inherit the name. At the send the sender's memory still holds the bytes: the heads
 * of the messages are read there and reduced to opcodes, event codes and lengths. Where the call does not tell
 * where they lie (io_uring, sendmmsg, callers of 32 bits), they are looked for at the end of the receiver's
 * queue. Key codes and everything else stay where they are. */
#pragma once
#include "ring.h"
#include "answers.h"

#define OPERATIONS 24
/* Pieces of memory of one send that are looked at. */
#define SEGMENTS 8
/* Bytes of a message that are looked at. */
#define HEAD 20
/* Bytes that are brought at once: most messages are short, and the heads of several lie in them. */
#define WINDOW 256
#define CALL_WRITE 1
#define CALL_WRITEV 20
#define CALL_SENDTO 44
#define CALL_SENDMSG 46
#define X_REQUEST_SENT 0
#define X_REQUEST_TAKEN 1
#define X_EVENT_SENT 2
#define X_EVENT_TAKEN 3
#define FLAG_MORE 1
#define FLAG_UNREAD 2
#define FLAG_SWAPPED 4
#define MSG_PEEK 2

/* The only display that is recorded; -1 for all. Set by the loader. */
const volatile int only_display = -1;

/* Where in a message the next send on this socket begins; `lost`: that is not known. */
struct framing { __u32 skip; __u8 started, swapped, lost, unused; };

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct framing);
} framings SEC(".maps");

/* As programs give them to the kernel. */
struct segment { __u64 base, bytes; };
struct message_header { __u64 name; __u32 name_bytes, unused; __u64 segments, count; };

/* The reading of what one send carried: where it stands, and the words found so far. */
struct reading {
	struct segment segments[SEGMENTS];
	/* The segment that the offset lies in, and where it begins; `user`: the memory is the sender's. */
	__u32 segment, begin, user;
	__u32 linear, offset, count, flags;
	/* `press`, `stamp_ms`: the first press that the events tell of; `injects`, `draws`: what the requests do;
	 * `strange`: what was taken for the head of a message is none. */
	__u8 request, started, swapped, press, injects, draws, strange, unused;
	__u32 stamp_ms;
	__u32 words[OPERATIONS];
	/* Where in what was sent the bytes in the window begin, and how many they are. */
	__u32 window_begin, window_bytes;
	__u8 window[2 * WINDOW] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reading);
} reading_buffer SEC(".maps");

/* The number behind "/tmp/.X11-unix/X" in the socket's name; -1 where it has another name or none. */
static __noinline int display_number(struct unix_sock *unix)
{
	char name[24] __attribute__((aligned(8))) = {}, wanted[17] __attribute__((aligned(8))) = "/tmp/.X11-unix/X";
	int number = 0;

	if (!unix)
		return -1;
	struct unix_address *address = BPF_CORE_READ(unix, addr);
	if (!address || bpf_probe_read_kernel(name, sizeof(name) - 1, address->name[0].sun_path))
		return -1;
	if (!name[0])
		bpf_probe_read_kernel(name, sizeof(name) - 1, address->name[0].sun_path + 1);
	if (*(__u64 *)name != *(__u64 *)wanted || *(__u64 *)(name + 8) != *(__u64 *)(wanted + 8))
		return -1;
	for (int i = 16; i < 21; i++) {
		if (name[i] < '0' || name[i] > '9')
			return i == 16 ? -1 : number;
		number = number * 10 + name[i] - '0';
	}
	return number;
}

static __always_inline __u32 swap16(__u32 value, bool swapped)
{
	return swapped ? __builtin_bswap16(value) : value;
}

static __always_inline __u32 swap32(__u32 value, bool swapped)
{
	return swapped ? __builtin_bswap32(value) : value;
}

/* Whether the first message on a connection is the set-up, and how long it is. */
static __always_inline __u32 setup_length(struct reading *reading, __u8 *head)
{
	bool request = reading->request;

	if (request && (head[0] == 'l' || head[0] == 'B')) {
		bool swapped = reading->swapped = head[0] == 'B';
		if (swap16(*(__u16 *)(head + 2), swapped) != 11)
			return 0;
		__u32 name = swap16(*(__u16 *)(head + 6), swapped), data = swap16(*(__u16 *)(head + 8), swapped);
		return 12 + ((name + 3) & ~3) + ((data + 3) & ~3);
	}
	if (!request && head[0] == 1 && head[1] == 0 && *(__u16 *)(head + 2) == 11 && !*(__u16 *)(head + 4))
		return 8 + 4 * *(__u16 *)(head + 6);
	return 0;
}

static __always_inline __u32 request_word(__u8 *head, bool swapped, __u32 *length)
{
	__u32 units = swap16(*(__u16 *)(head + 2), swapped);
	__u32 fake = head[0] >= 128 && head[1] == 2 && units == 9 ? head[4] : 0;

	*length = 4 * (units ? units : swap32(*(__u32 *)(head + 4), swapped) & 0xffffff);
	if (fake && input_hidden)
		return 0xff;
	return head[0] | (head[1] << 8) | ((units > 255 ? 255 : units) << 16) | (fake << 24);
}

static __always_inline __u32 event_word(__u8 *head, bool swapped, __u32 *length)
{
	__u32 code = head[0] & 0x7f, generic = code == 35, scroll = 0;

	*length = 32;
	if (code == 1 || generic)
		*length += 4 * (swap32(*(__u32 *)(head + 4), swapped) & 0xffffff);
	if (input_hidden && ((code >= 2 && code <= 6) || (generic && head[8] >= 2 && head[8] <= 6)))
		return 0xff;
	if ((code == 4 || code == 5) && head[1] >= 4 && head[1] <= 7)
		scroll = 1;
	if (generic)
		return code | (head[1] << 8) | (head[8] << 16);
	return code | (scroll << 16) | ((__u32)(head[0] & 0x80) << 17);
}

/* Notes the first press among the events, of a modifier only where no other comes; the key's code is compared
 * with those of modifiers and forgotten.
 * Events of the input extension are told from others of that form by their length: twelve units at least. */
static __always_inline void look_for_press(struct reading *reading, __u8 *head, __u32 length)
{
	__u32 code = head[0], detail = head[1], stamp = *(__u32 *)(head + 4);

	if ((reading->press && reading->press != MODIFIER_PRESSED) || input_hidden)
		return;
	if (code == 35 && length >= 80 && !reading->swapped && (head[8] == 2 || head[8] == 4)) {
		code = head[8];
		stamp = *(__u32 *)(head + 12);
		detail = *(__u32 *)(head + 16);
	}
	if (code == 2)
		reading->press = is_modifier(detail) ? MODIFIER_PRESSED : KEY_PRESSED;
	else if (code == 4 && (detail < 4 || detail > 7))
		reading->press = BUTTON_PRESSED;
	else
		return;
	reading->stamp_ms = swap32(stamp, reading->swapped);
}

static __always_inline void look_for_drawing(struct reading *reading, __u8 *head, __u32 word)
{
	__u32 fake = word == 0xff ? 0 : word >> 24;

	if (fake == 2 || fake == 4)
		reading->injects = 1;
	if (is_drawing(head[0], fake))
		reading->draws = 1;
}

/* Whether these bytes may be the head of a request, or of an event, a reply or an error. */
static __always_inline bool is_head(struct reading *reading, __u8 *head)
{
	__u8 code = head[0] & 0x7f;

	if (!reading->request)
		return code <= 35 || code >= 64;
	if (!head[0] || (head[0] >= 120 && head[0] < 127))
		return 0;
	return *(__u16 *)(head + 2) || swap32(*(__u32 *)(head + 4), reading->swapped) > 1;
}

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
 * a head's length is zero. */
static __always_inline __u32 fill_window(struct reading *reading)
{
	__u32 at = reading->segment, inside = reading->offset - reading->begin, left = reading->linear - reading->offset;
	__u32 wanted = left < WINDOW ? left : WINDOW, have = 0;

	for (int i = 0; i < SEGMENTS && at < SEGMENTS && inside >= reading->segments[at].bytes; i++)
		inside -= reading->segments[at++].bytes;
	reading->segment = at;
	reading->begin = reading->offset - inside;
	for (int i = 0; i < SEGMENTS && at < SEGMENTS && have < wanted; i++, at++, inside = 0) {
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
	__builtin_memset(reading->window + have, 0, HEAD);
	reading->window_begin = reading->offset;
	return reading->window_bytes = have;
}

/* The head at the offset; NULL where its bytes are not all there. */
static __always_inline __u8 *find_head(struct reading *reading)
{
	__u32 left = reading->linear - reading->offset, wanted = left < HEAD ? left : HEAD;
	__u32 at = reading->offset - reading->window_begin;

	if (at + wanted > reading->window_bytes) {
		if (fill_window(reading) < wanted)
			return 0;
		at = 0;
	}
	barrier_var(at);
	return at < WINDOW ? reading->window + at : 0;
}

/* Reads the head of one message; 0 where there is another one behind it. A function of its own to the
 * verifier, which would else follow every path through every turn of the loop. */
__noinline int read_head(struct reading *reading)
{
	__u32 length = 0, word, at;
	__u8 *head;

	if (!reading || reading->offset + 4 > reading->linear)
		return 1;
	if (reading->count >= OPERATIONS) {
		reading->flags |= FLAG_MORE;
		reading->offset = 0;
		return 1;
	}
	head = find_head(reading);
	if (!head) {
		reading->flags |= FLAG_UNREAD;
		return 1;
	}
	if (!reading->started)
		length = setup_length(reading, head);
	reading->started = 1;
	if (!length && !is_head(reading, head)) {
		reading->strange = 1;
		return 1;
	}
	if (!length) {
		word = reading->request ? request_word(head, reading->swapped, &length)
					: event_word(head, reading->swapped, &length);
		if (reading->request)
			look_for_drawing(reading, head, word);
		else
			look_for_press(reading, head, length);
		at = reading->count++;
		if (at < OPERATIONS)
			reading->words[at] = word;
	}
	reading->offset += length < 4 ? 4 : length;
	return 0;
}

static __always_inline void read_heads(struct reading *reading, __u32 linear, bool user)
{
	reading->linear = linear;
	reading->user = user;
	reading->segment = reading->begin = reading->flags = 0;
	reading->window_begin = reading->window_bytes = 0;
	for (int i = 0; i <= OPERATIONS; i++)
		if (read_head(reading))
			break;
}

/* The segments that lie at an address in the sender's memory; how many bytes they have in all. */
static __always_inline __u64 read_vector(struct reading *reading, __u64 address, __u64 count)
{
	__u64 bytes = 0;

	if (count > SEGMENTS)
		count = SEGMENTS;
	if (bpf_probe_read_user(reading->segments, count * sizeof(struct segment), (void *)address))
		return 0;
	for (int i = 0; i < SEGMENTS; i++)
		bytes += reading->segments[i].bytes < (1 << 30) ? reading->segments[i].bytes : 1 << 30;
	return bytes;
}

/* Where the system call that sends says that the bytes lie; how many of them are known. */
static __always_inline __u64 find_segments(struct reading *reading)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct message_header header = {};

	__builtin_memset(reading->segments, 0, sizeof(reading->segments));
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

/* Reads the last buffer in the receiver's queue, if it is what was just sent. The receiver may take it meanwhile, and its
 * memory be given to others: what is not in the queue any more afterwards counts as unread. */
static __always_inline void read_queue(struct reading *reading, struct sock *receiver, __u32 bytes)
{
	struct sk_buff *tail = BPF_CORE_READ(receiver, sk_receive_queue.prev);
	__u32 offset = reading->offset;
	__u8 started = reading->started, swapped = reading->swapped;

	if (!BPF_CORE_READ(receiver, sk_receive_queue.qlen) || BPF_CORE_READ(tail, len) != bytes)
		return;
	reading->segments[0].base = (__u64)BPF_CORE_READ(tail, data);
	reading->segments[0].bytes = bytes - BPF_CORE_READ(tail, data_len);
	read_heads(reading, reading->segments[0].bytes, 0);
	if (BPF_CORE_READ(receiver, sk_receive_queue.prev) == tail)
		return;
	reading->offset = offset;
	reading->started = started;
	reading->swapped = swapped;
	reading->flags = FLAG_UNREAD;
	reading->count = reading->press = reading->injects = reading->draws = reading->strange = 0;
}

/* Reads what was just sent, and remembers where the next message on this socket begins. Where a head may have been
 * among bytes that cannot be read, nobody knows where messages begin until some fill what is sent exactly. */
static __always_inline void read_sent(struct reading *reading, struct sock *from, struct sock *receiver, __u32 bytes)
{
	struct framing *framing = bpf_sk_storage_get(&framings, from, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!framing)
		return;
	reading->offset = framing->lost ? 0 : framing->skip;
	reading->started = framing->started;
	reading->swapped = framing->swapped;
	__u64 known = find_segments(reading);
	if (known)
		read_heads(reading, known < bytes ? known : bytes, 1);
	else
		read_queue(reading, receiver, bytes);
	bool whole = (reading->flags & FLAG_MORE) || reading->offset == bytes;
	bool found = whole || (reading->offset > bytes && !framing->lost);
	if (framing->lost && !found)
		reading->count = reading->press = reading->injects = reading->draws = 0;
	framing->lost = !found || reading->strange;
	if (framing->lost)
		reading->flags |= FLAG_UNREAD;
	framing->skip = reading->offset > bytes ? reading->offset - bytes : 0;
	framing->started = reading->started;
	framing->swapped = reading->swapped;
	if (reading->swapped)
		reading->flags |= FLAG_SWAPPED;
}

struct side { struct unix_sock *own, *peer, *server; int display; };

/* Which end of which display's connection the socket is; false where it is none. */
static __always_inline bool find_side(struct side *side, struct sock *sock)
{
	if (sock->__sk_common.skc_family != 1)
		return 0;
	struct unix_sock *own = bpf_skc_to_unix_sock(sock);
	if (!own)
		return 0;
	struct unix_sock *peer = (struct unix_sock *)BPF_CORE_READ(own, peer);
	side->own = side->server = own;
	side->peer = peer;
	side->display = display_number(own);
	if (side->display < 0 && peer) {
		side->server = peer;
		side->display = display_number(peer);
	}
	return side->display >= 0 && (only_display < 0 || side->display == only_display);
}

static __always_inline void write_message(struct side *side, struct reading *reading, __u32 bytes, __u8 direction)
{
	__u64 now = bpf_ktime_get_ns(), who = bpf_get_current_pid_tgid();
	__u32 count = reading ? reading->count : 0, size;
	struct sock *server = (struct sock *)side->server;
	__u8 generation;

	if (count > OPERATIONS)
		count = OPERATIONS;
	size = sizeof(struct rec_message) + ((count * 4 + 7) & ~7);
	struct rec_message *record = reserve(RARE, size, now, &generation);
	if (!record)
		return;
	record->pid = who >> 32;
	record->connection = BPF_CORE_READ(server, sk_socket, file, f_inode, i_ino);
	record->client = BPF_CORE_READ(server, sk_peer_pid, numbers[0].nr);
	record->bytes = bytes;
	record->direction = direction;
	record->operations = count;
	record->flags = reading ? reading->flags : 0;
	record->display = side->display;
	/* Not a byte more than was reserved: what follows may belong to an interrupt's record. */
	if (reading)
		bpf_probe_read_kernel(record + 1, (count * 4) & 127, reading->words);
	commit(record, now, (__u32)who, size, REC_MESSAGE, generation);
}

/* What was read means something for how long clients take. What could not be read may well be a drawing. */
static __always_inline void note_sent(struct side *side, struct reading *reading, __u64 now)
{
	__u64 owner = number_of(side->server);
	struct sock *server = (struct sock *)side->server;

	if (reading->request) {
		if (reading->injects)
			note_injection(side->display, owner, now);
		if (reading->draws || (reading->flags & (FLAG_MORE | FLAG_UNREAD)))
			note_drawing(owner, now);
	} else if (reading->press) {
		__u64 at = press_time(side->display, reading->stamp_ms, now);
		if (reading->press != MODIFIER_PRESSED)
			note_press(owner, BPF_CORE_READ(server, sk_peer_pid, numbers[0].nr), reading->press, at, now);
	}
}

static __always_inline int record_sent(struct sock *sock, int bytes)
{
	struct side side = {};
	__u32 zero = 0;

	if (bytes <= 0 || !find_side(&side, sock))
		return 0;
	struct reading *reading = bpf_map_lookup_elem(&reading_buffer, &zero);
	if (!reading || !side.peer)
		return 0;
	reading->count = reading->linear = 0;
	reading->flags = FLAG_UNREAD;
	reading->request = side.server != side.own;
	reading->press = reading->injects = reading->draws = reading->strange = 0;
	read_sent(reading, sock, (struct sock *)side.peer, bytes);
	write_message(&side, reading, bytes, reading->request ? X_REQUEST_SENT : X_EVENT_SENT);
	note_sent(&side, reading, bpf_ktime_get_ns());
	return 0;
}

/* Bytes that are only looked at stay in the queue. */
static __always_inline int record_taken(struct sock *sock, int bytes, int flags)
{
	struct side side = {};

	if (bytes <= 0 || (flags & MSG_PEEK) || !find_side(&side, sock))
		return 0;
	write_message(&side, 0, bytes, side.server == side.own ? X_REQUEST_TAKEN : X_EVENT_TAKEN);
	if (side.server == side.own)
		note_injection_taken(side.display, number_of(side.server), bpf_ktime_get_ns());
	else
		note_taken(number_of(side.server), bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(message_sent, struct sock *sock, int bytes) { return record_sent(sock, bytes); }

SEC("tp_btf/sock_recv_length")
int BPF_PROG(message_taken, struct sock *sock, int bytes, int flags) { return record_taken(sock, bytes, flags); }

/* The same where a kernel lacks these tracepoints (before 6.3): what the functions behind them return. */
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
