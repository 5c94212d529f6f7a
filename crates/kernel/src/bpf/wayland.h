/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Messages of Wayland: their heads, and few arguments.
 *
 * A head says which object and which opcode; what the object is nobody says on the wire but when it is made. So what
 * may be of interest is told by its shape: opcode, length, and whether a time stamp is one. Messages of other shapes
 * are not kept, and of those that are only the arguments that are listed here: never a key's code, a held key, a
 * coordinate or text. */
#pragma once
#include "answers.h"
#include "sends.h"

/* Messages of one send that are kept, and that are looked at; each is so many of the reading's words. */
#define WAYLAND_MESSAGES 32
#define WAYLAND_HEADS 128
#define WAYLAND_WORDS (WL_WORD / 4)
/* Bytes of a message that are looked at: to the end of what binds a compositor. */
#define WAYLAND_HEAD 40
/* A time stamp is one if it is so near. */
#define NEAR_MS 5000
/* Seconds by which the clock that never jumps may be ahead of what people read from the wall. */
#define LEAP_MS 37000

/* Objects of clients are numbered from two on, and numbers are given again: what is larger is none, and may be text. */
#define OBJECTS (1 << 20)

/* What of a message is kept. */
struct kept { __u32 hint, argument; bool wanted; };

/* Kernels before 6.1 lack the clock. */
enum bpf_func_id { BPF_FUNC_ktime_get_tai_ns = 208 };

static __always_inline bool within(__u32 stamp_ms, __u64 now_ms)
{
	return stamp_ms - (__u32)now_ms + NEAR_MS < 2 * NEAR_MS;
}

/* Whether a time stamp tells of about now, by the clock of input devices or by that on the wall. */
static __always_inline bool is_near(__u32 stamp_ms)
{
	if (within(stamp_ms, bpf_ktime_get_ns() / 1000000))
		return 1;
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_ktime_get_tai_ns))
		return 0;
	__u64 tai_ms = bpf_ktime_get_tai_ns() / 1000000;
	return within(stamp_ms, tai_ms) || within(stamp_ms, tai_ms - LEAP_MS);
}

static __always_inline __u32 as_object(__u32 argument)
{
	return argument < OBJECTS ? argument : 0;
}

static __always_inline bool is_button(__u32 code)
{
	return code >= 0x110 && code < 0x118;
}

/* A key or button: serial, time, code, state. The code is looked at, and forgotten. */
static __always_inline void look_at_key(struct reading *reading, __u32 *head, struct kept *kept)
{
	__u32 stamp = head[3], code = head[4], state = head[5];
	bool near = is_near(stamp), button = is_button(code);

	if (state > 2)
		return;
	kept->wanted = 1;
	kept->hint = (HINT_RELEASED + state) | (button ? HINT_BUTTON : 0) | (near ? HINT_NEAR : 0);
	kept->argument = near ? stamp : 0;
	if (state != 1 || !near || (reading->press && reading->press != MODIFIER_PRESSED))
		return;
	/* Codes of X are those of input devices plus eight. */
	reading->press = button ? BUTTON_PRESSED : is_modifier(code + 8) ? MODIFIER_PRESSED : KEY_PRESSED;
	reading->stamp_ms = stamp;
}

/* Whether an event has the shape of one by which something enters a surface: serial, surface, and a list that fills the rest. */
static __always_inline bool is_enter(__u32 *head, __u32 opcode, __u32 size)
{
	return opcode == 1 && size >= 20 && !(head[4] & 3) && size == 20 + head[4];
}

/* Who has the focus: what enters is a keyboard where its modifiers are told in the same send, before (Mutter) or behind (wlroots,
 * KWin); and who is told of a key has it. */
static __always_inline void look_at_focus(struct reading *reading, __u32 *head, __u32 opcode, __u32 size)
{
	bool enters = is_enter(head, opcode, size), modifies = opcode == 4 && size == 28;

	if (enters)
		reading->entering = head[0];
	if (modifies)
		reading->modified = head[0];
	if ((enters || modifies) && reading->entering == reading->modified) {
		reading->keyboard = head[0];
		reading->left = 0;
	} else if (opcode == 3 && size == 24 && head[5] == 1 && !is_button(head[4]) && is_near(head[3])) {
		reading->keyboard = head[0];
	} else if (opcode == 2 && size == 16) {
		reading->left = head[0];
	}
}

/* Whether an event has the shape of one that tells of input. */
static __always_inline bool is_input(__u32 opcode, __u32 size)
{
	return (opcode == 3 && size == 24) || (opcode == 2 && size == 20) || (opcode == 4 && (size == 20 || size == 28));
}

static __always_inline void look_at_event(struct reading *reading, __u32 *head, __u32 opcode, __u32 size,
					  struct kept *kept)
{
	if (input_hidden && is_input(opcode, size)) {
		kept->wanted = 1;
		kept->hint = HINT_HIDDEN;
	} else if (opcode == 3 && size == 24) {
		look_at_key(reading, head, kept);
	} else if (is_enter(head, opcode, size)) {
		kept->wanted = 1;
		kept->hint = HINT_ENTERED;
		kept->argument = as_object(head[3]);
	} else if (opcode == 2 && size == 16) {
		kept->wanted = 1;
	} else if (opcode == 2 && size == 20) {
		kept->wanted = is_near(head[2]);
		kept->hint = HINT_MOVED;
	} else if (opcode == 4 && size == 20) {
		kept->wanted = head[3] <= 1 && is_near(head[2]);
		kept->hint = HINT_SCROLLED;
	} else if (opcode == 4 && size == 28) {
		kept->wanted = 1;
		kept->hint = HINT_MODIFIERS;
	} else if (opcode == 0 && size == 12) {
		kept->wanted = 1;
	} else if (head[0] == 1 && opcode == 1 && size == 12) {
		kept->wanted = 1;
		kept->argument = as_object(head[2]);
	}
}

/* The binding of an interface that others are made from: a name's number, its text, a version, the new object. */
static __always_inline void look_at_binding(__u32 *head, __u32 size, struct kept *kept)
{
	bool seat = size == 32 && head[3] == 8 && head[4] == 0x735f6c77 && head[5] == 0x00746165;
	bool compositor = size == 40 && head[3] == 14 && head[4] == 0x635f6c77 && head[5] == 0x6f706d6f &&
			  head[6] == 0x6f746973;

	kept->wanted = seat || compositor;
	kept->hint = seat ? HINT_SEAT : HINT_COMPOSITOR;
	kept->argument = as_object(seat ? head[7] : head[9]);
}

/* What stands for a person makes keys and buttons: time, code, state. What attaches a buffer has the same shape,
 * with the buffer's number where the time would be. */
static __always_inline bool makes_input(struct reading *reading, __u32 *head, __u32 opcode, struct kept *kept)
{
	bool key = opcode == 1;

	if (head[4] > 1 || !is_near(head[2]) || (!key && !is_button(head[3])))
		return 0;
	kept->wanted = head[4] == 1 || input_hidden;
	kept->hint = input_hidden ? HINT_HIDDEN : key ? HINT_MAKES_KEY : HINT_MAKES_BUTTON;
	return 1;
}

static __always_inline void look_at_request(struct reading *reading, __u32 *head, __u32 opcode, __u32 size,
					    struct kept *kept)
{
	if (size == 20 && (opcode == 1 || opcode == 2) && makes_input(reading, head, opcode, kept))
		return;
	if (opcode == 1 && size == 20) {
		kept->wanted = reading->attaches = 1;
	} else if (size == 12 && (opcode == 0 || opcode == 1 || opcode == 3)) {
		kept->wanted = 1;
		kept->argument = as_object(head[2]);
		reading->attaches |= opcode == 3;
	} else if (opcode == 6 && size == 8) {
		kept->wanted = 1;
		reading->draws |= reading->attaches;
	} else if (opcode == 0) {
		look_at_binding(head, size, kept);
	}
}

static __always_inline void keep(struct reading *reading, __u32 *head, __u32 opcode, __u32 size, struct kept *kept)
{
	__u32 hidden = kept->hint == HINT_HIDDEN, units = size > 1020 ? 255 : size / 4, at = WAYLAND_WORDS * reading->count;

	barrier_var(at);
	if (at > WORDS - WAYLAND_WORDS)
		return;
	reading->words[at] = hidden ? 0 : head[0];
	reading->words[at + 1] = (hidden ? 0xff : opcode | (units << 8)) | (kept->hint << 16);
	reading->words[at + 2] = hidden ? 0 : kept->argument;
	reading->count++;
}

/* Reads the head of one message; 0 where there is another one behind it. A function of its own to the verifier. */
__noinline int read_wayland_head(struct reading *reading)
{
	struct kept kept = {};
	__u32 *head, size, opcode;

	if (!reading || reading->offset + 8 > reading->linear)
		return 1;
	if (reading->count >= WAYLAND_MESSAGES || reading->heads >= WAYLAND_HEADS) {
		reading->flags |= FLAG_MORE;
		reading->offset = 0;
		return 1;
	}
	head = (__u32 *)find_head(reading, WAYLAND_HEAD);
	if (!head) {
		reading->flags |= FLAG_UNREAD;
		return 1;
	}
	size = head[1] >> 16;
	opcode = head[1] & 0xffff;
	if (!head[0] || size < 8 || (size & 3) || opcode > 254) {
		reading->strange = 1;
		return 1;
	}
	if (reading->request)
		look_at_request(reading, head, opcode, size, &kept);
	else
		look_at_event(reading, head, opcode, size, &kept);
	if (!reading->request)
		look_at_focus(reading, head, opcode, size);
	if (kept.wanted)
		keep(reading, head, opcode, size, &kept);
	reading->heads++;
	reading->offset += size;
	return 0;
}
