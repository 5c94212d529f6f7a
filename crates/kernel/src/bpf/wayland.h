/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Messages of Wayland: their heads, and few arguments.
 *
 * A head has the number of an object, and in its second word length and opcode: the shape. Which interface the object has is
 * only said when it is made. So what may be of interest is told by its shape (WL_KEY and others, which the record crate
 * declares with the messages that have them), and by whether a time stamp is of about now. Messages of other shapes are not
 * kept, and of those that are only the arguments that are listed here: never a key's code, a held key, a coordinate or
 * text. */
#pragma once
#include "answers.h"
#include "sends.h"

/* Messages of one send that are kept; each is so many of the reading's words. */
#define WAYLAND_MESSAGES 32
#define WAYLAND_WORDS (WL_WORD / 4)
/* Bytes of a message that are looked at: to the end of what binds a compositor. */
#define WAYLAND_HEAD 40
/* A time stamp counts as one within so much of now. */
#define NEAR_MS 5000
/* By how much TAI is ahead of UTC. */
#define LEAP_MS 37000
/* Bytes of a type's name, its end included. */
#define TYPE_LEAST 5
#define TYPE_MOST 255

/* Objects of clients are numbered from two on, and numbers are given again: what is larger is none, and may be text. */
#define OBJECTS (1 << 20)

/* What of a message is kept; `input`: it tells of input, which may not be recorded. */
struct kept { __u32 hint, argument; bool wanted, input; };

/* Kernels before 6.1 lack the clock. */
enum bpf_func_id { BPF_FUNC_ktime_get_tai_ns = 208 };

static __always_inline bool within(__u32 stamp_ms, __u64 now_ms)
{
	return stamp_ms - (__u32)now_ms + NEAR_MS < 2 * NEAR_MS;
}

/* Whether a time stamp tells of about now, by the clock of input devices or by that on the wall. */
static __always_inline bool is_near(struct reading *reading, __u32 stamp_ms)
{
	if (within(stamp_ms, reading->now / 1000000))
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
	bool near = is_near(reading, stamp), button = is_button(code);

	kept->input = 1;
	if (state > 2)
		return;
	kept->wanted = 1;
	kept->hint = (HINT_RELEASED + state) | (button ? HINT_BUTTON : 0) | (near ? HINT_NEAR : 0);
	kept->argument = near ? stamp : 0;
	if (input_hidden || state != 1 || !near)
		return;
	/* Codes of X are those of input devices plus eight. */
	look_at_press(reading, button ? BUTTON_PRESSED : is_modifier(code + 8) ? MODIFIER_PRESSED : KEY_PRESSED, stamp);
}

/* When what was committed was shown: two words of seconds and one of nanoseconds, about now. */
static __always_inline void look_at_presented(struct reading *reading, __u32 *head, struct kept *kept)
{
	__u32 stamp_ms = head[3] * 1000 + head[4] / 1000000;

	kept->wanted = !head[2] && head[4] < 1000000000 && within(stamp_ms, reading->now / 1000000);
	kept->hint = HINT_PRESENTED;
	kept->argument = head[3] * 1000000 + head[4] / 1000;
}

/* Whether an event has the shape of one by which something enters a surface: serial, surface, and a list that fills the
 * rest. */
static __always_inline bool is_enter(__u32 *head)
{
	__u32 held = head[4];

	return !(held & 3) && held < 0xf000 && head[1] == WL_ENTER + (held << 16);
}

/* Who has the focus: what enters is a keyboard where its modifiers are told in the same send, before (Mutter) or behind
 * (wlroots, KWin); and who is told of a key has it. While input is not to be recorded, a key says nothing here either. */
static __always_inline void look_at_focus(struct reading *reading, __u32 *head)
{
	bool enters = is_enter(head), modifies = head[1] == WL_MODIFIERS;
	bool presses = !input_hidden && head[1] == WL_KEY && head[5] == 1 && !is_button(head[4]);

	if (enters)
		reading->entering = head[0];
	if (modifies)
		reading->modified = head[0];
	if ((enters || modifies) && reading->entering == reading->modified) {
		reading->keyboard = head[0];
		reading->left = 0;
	} else if (presses && is_near(reading, head[3])) {
		reading->keyboard = head[0];
	} else if (head[1] == WL_LEAVE) {
		reading->left = head[0];
	}
}

/* What is copied is asked for by a type, and a pipe to write it to: of the compositor, and by it of who has it. The type's
 * name fills the message, which the offer of a type does as well, but without a file. Nothing of it is kept. */
static __always_inline bool asks_for_copied(__u32 *head)
{
	__u32 opcode = head[1] & 0xffff, size = head[1] >> 16, bytes = head[2], letter = (head[3] & 0xff) | 0x20;

	if (opcode > 1 || bytes < TYPE_LEAST || bytes > TYPE_MOST || size != 12 + ((bytes + 3) & ~3))
		return 0;
	return letter >= 'a' && letter <= 'z' && has_control();
}

/* An input method that has grabbed the keyboard is told of a key with the same arguments by another event. One by which a
 * keyboard enters may be as long: it has a surface where the time stamp is. */
static __always_inline bool is_grabbed_key(struct reading *reading, __u32 *head)
{
	return head[1] == WL_GRABBED_KEY && head[5] <= 1 && is_near(reading, head[3]);
}

static __always_inline void look_at_pointer(struct reading *reading, __u8 class, __u32 stamp_ms, struct kept *kept)
{
	kept->input = 1;
	if (kept->wanted && !input_hidden)
		look_at_move(reading, class, stamp_ms);
}

static __always_inline void look_at_event(struct reading *reading, __u32 *head, struct kept *kept)
{
	if (head[1] == WL_KEY || is_grabbed_key(reading, head)) {
		look_at_key(reading, head, kept);
	} else if (head[1] == WL_TEXT_DONE) {
		kept->wanted = kept->input = 1;
		kept->hint = HINT_TEXT;
	} else if (is_enter(head)) {
		kept->wanted = 1;
		kept->hint = HINT_ENTERED;
		kept->argument = as_object(head[3]);
	} else if (asks_for_copied(head)) {
		kept->wanted = 1;
		kept->hint = HINT_COPIED;
	} else if (head[1] == WL_PRESENTED) {
		look_at_presented(reading, head, kept);
	} else if (head[1] == WL_LEAVE || head[1] == WL_CALLBACK_DONE) {
		kept->wanted = 1;
		reading->frame_done |= head[1] == WL_CALLBACK_DONE;
	} else if (head[1] == WL_MOTION) {
		kept->wanted = is_near(reading, head[2]);
		kept->hint = HINT_MOVED;
		look_at_pointer(reading, MOVES, head[2], kept);
	} else if (head[1] == WL_AXIS) {
		kept->wanted = head[3] <= 1 && is_near(reading, head[2]);
		kept->hint = HINT_SCROLLED;
		look_at_pointer(reading, SCROLLS, head[2], kept);
	} else if (head[1] == WL_MODIFIERS) {
		kept->wanted = kept->input = 1;
		kept->hint = HINT_MODIFIERS;
	} else if (head[0] == 1 && head[1] == WL_DELETE_ID) {
		kept->wanted = 1;
		kept->argument = as_object(head[2]);
	}
}

/* The binding of an interface that others are made from: a name's number, its text, a version, the new object. */
static __always_inline void look_at_binding(__u32 *head, struct kept *kept)
{
	bool seat = head[1] == WL_BIND_SEAT && head[3] == 8 && head[4] == 0x735f6c77 && head[5] == 0x00746165;
	bool compositor = head[1] == WL_BIND_COMPOSITOR && head[3] == 14 && head[4] == 0x635f6c77 &&
			  head[5] == 0x6f706d6f && head[6] == 0x6f746973;

	kept->wanted = seat || compositor;
	kept->hint = seat ? HINT_SEAT : HINT_COMPOSITOR;
	kept->argument = as_object(seat ? head[7] : head[9]);
}

/* What stands for a person makes keys and buttons: time, code, state. What attaches a buffer has the same shape,
 * with the buffer's number where the time would be. */
static __always_inline bool makes_input(struct reading *reading, __u32 *head, struct kept *kept)
{
	bool key = head[1] == WL_VIRTUAL_KEY;

	if ((!key && head[1] != WL_VIRTUAL_BUTTON) || head[4] > 1 || !is_near(reading, head[2]) || (!key && !is_button(head[3])))
		return 0;
	kept->input = 1;
	kept->wanted = head[4] == 1;
	kept->hint = key ? HINT_MAKES_KEY : HINT_MAKES_BUTTON;
	return 1;
}

static __always_inline void look_at_request(struct reading *reading, __u32 *head, struct kept *kept)
{
	if (makes_input(reading, head, kept))
		return;
	if (head[1] == WL_ATTACH) {
		kept->wanted = reading->attaches = 1;
	} else if (head[1] == WL_MAKE_FIRST || head[1] == WL_MAKE_SECOND || head[1] == WL_FRAME) {
		kept->wanted = 1;
		kept->argument = as_object(head[2]);
		reading->attaches |= head[1] == WL_FRAME;
		reading->framed |= head[1] == WL_FRAME;
	} else if (head[1] == WL_FEEDBACK) {
		kept->wanted = 1;
		kept->argument = as_object(head[3]);
	} else if (head[1] == WL_COMMIT) {
		kept->wanted = 1;
		reading->draws |= reading->attaches;
	} else if (asks_for_copied(head)) {
		kept->wanted = 1;
		kept->hint = HINT_COPIED;
	} else {
		look_at_binding(head, kept);
	}
}

static __always_inline void keep(struct reading *reading, __u32 *head, __u32 opcode, __u32 size, struct kept *kept)
{
	__u32 hidden = kept->input && input_hidden, units = size > 1020 ? 255 : size / 4, at = WAYLAND_WORDS * reading->count;

	barrier_var(at);
	if (at > WORDS - WAYLAND_WORDS) {
		reading->flags |= FLAG_MORE;
		return;
	}
	reading->words[at] = hidden ? 0 : head[0];
	reading->words[at + 1] = hidden ? 0xff | (HINT_HIDDEN << 16) : opcode | (units << 8) | (kept->hint << 16);
	reading->words[at + 2] = hidden ? 0 : kept->argument;
	reading->count++;
}

/* Reads the head of one message, whose first bytes are there; 0 where it is one. */
__noinline int read_wayland_head(struct reading *reading)
{
	struct kept kept = {};
	__u32 *head, size, opcode;

	if (!reading)
		return 1;
	if (reading->heads >= HEADS)
		return stop_reading(reading);
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
	reading->foreign |= head[0] >= OBJECTS;
	if (reading->request)
		look_at_request(reading, head, &kept);
	else
		look_at_event(reading, head, &kept);
	if (!reading->request)
		look_at_focus(reading, head);
	if (kept.wanted)
		keep(reading, head, opcode, size, &kept);
	reading->heads++;
	reading->offset += size;
	return 0;
}
