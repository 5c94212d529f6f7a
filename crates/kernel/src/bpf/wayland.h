/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Wayland messages: their heads, and a few arguments.
 *
 * A head holds an object number, and a second word with length and opcode: the shape. The interface
 * of an object is only named when it is created. So messages of interest are recognised by their
 * shape (WL_KEY and others, which the record crate declares with the messages that have them), and
 * by a time stamp close to now. Messages of other shapes are not kept, and of the rest only the
 * arguments listed here: never a key's code, a held key, a coordinate or text. */
#pragma once
#include "answers.h"
#include "sends.h"

/* Maximum number of messages kept per send, and the size of each in words of the results. */
#define WAYLAND_MESSAGES 32
#define WAYLAND_WORDS (WL_WORD / 4)
/* Bytes read of a message: up to the end of a compositor's bind request. */
#define WAYLAND_HEAD 40
/* Maximum distance of a time stamp from now. */
#define NEAR_MS 5000
/* Offset of TAI from UTC. */
#define LEAP_MS 37000
/* Limits of the bytes of a MIME type's name, including its terminator. */
#define TYPE_LEAST 5
#define TYPE_MOST 255

/* Objects of clients are numbered from two on, and numbers are reused: a larger one is no object,
 * and may be text. */
#define OBJECTS (1 << 20)

/* Part of a message to keep; `input`: it reveals input, which may not be recorded. */
struct kept { __u32 hint, argument; bool wanted, input; };

/* Kernels before 6.1 lack this clock. */
enum bpf_func_id { BPF_FUNC_ktime_get_tai_ns = 208 };

static __always_inline bool within(__u32 stamp_ms, __u64 now_ms)
{
	return stamp_ms - (__u32)now_ms + NEAR_MS < 2 * NEAR_MS;
}

/* Returns true if a time stamp is close to now, by the clock of input devices or by wall-clock
 * time. */
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

/* Examines a key or button: serial, time, code, state. The code is discarded afterwards. */
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
	/* X keycodes are those of input devices plus eight. */
	look_at_press(reading, button ? BUTTON_PRESSED : is_modifier(code + 8) ? MODIFIER_PRESSED : KEY_PRESSED, stamp);
}

/* Examines the presentation time of a commit: two words of seconds and one of nanoseconds, close to
 * now. */
static __always_inline void look_at_presented(struct reading *reading, __u32 *head, struct kept *kept)
{
	__u32 stamp_ms = head[3] * 1000 + head[4] / 1000000;

	kept->wanted = !head[2] && head[4] < 1000000000 && within(stamp_ms, reading->now / 1000000);
	kept->hint = HINT_PRESENTED;
	kept->argument = head[3] * 1000000 + head[4] / 1000;
}

/* Returns true if an event has the shape of an enter event: serial, surface, and a list that fills
 * the rest. */
static __always_inline bool is_enter(__u32 *head)
{
	__u32 held = head[4];

	return !(held & 3) && held < 0xf000 && head[1] == WL_ENTER + (held << 16);
}

/* Updates the focus. An entering object is a keyboard if its modifiers follow in the same send
 * (wlroots, KWin) or precede it (Mutter), and a client that gets a key has the focus. While input
 * is not recorded, keys are ignored here too. */
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

/* Returns true for a request of copied data, by MIME type and a pipe to write it to: sent to the
 * compositor, and by it to the owner of the data. The type's name fills the message, as it does in
 * an offer of a type, which has no file descriptor. Nothing of it is kept. */
static __always_inline bool asks_for_copied(__u32 *head)
{
	__u32 opcode = head[1] & 0xffff, size = head[1] >> 16, bytes = head[2], letter = (head[3] & 0xff) | 0x20;

	if (opcode > 1 || bytes < TYPE_LEAST || bytes > TYPE_MOST || size != 12 + ((bytes + 3) & ~3))
		return 0;
	return letter >= 'a' && letter <= 'z' && has_control();
}

/* Returns true for a key event to an input method that has grabbed the keyboard: the same arguments
 * with another opcode. An enter event may be as long, with a surface in place of the time stamp,
 * but never 0, which some virtual keyboards give. */
static __always_inline bool is_grabbed_key(struct reading *reading, __u32 *head)
{
	return head[1] == WL_GRABBED_KEY && head[5] <= 1 && (!head[3] || is_near(reading, head[3]));
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

/* Examines bind requests for interfaces that create others: name number, interface, version, new
 * object. */
static __always_inline void look_at_binding(__u32 *head, struct kept *kept)
{
	bool seat = head[1] == WL_BIND_SEAT && head[3] == 8 && head[4] == 0x735f6c77 && head[5] == 0x00746165;
	bool compositor = head[1] == WL_BIND_COMPOSITOR && head[3] == 14 && head[4] == 0x635f6c77 &&
			  head[5] == 0x6f706d6f && head[6] == 0x6f746973;

	kept->wanted = seat || compositor;
	kept->hint = seat ? HINT_SEAT : HINT_COMPOSITOR;
	kept->argument = as_object(seat ? head[7] : head[9]);
}

/* Returns true for input made by virtual devices: time, code, state. An attach request has the same
 * shape, with a buffer number in place of the time, and where it removes the buffer almost always
 * zeros only. Some virtual keyboards give 0 for the time. */
static __always_inline bool makes_input(struct reading *reading, __u32 *head, struct kept *kept)
{
	bool key = head[1] == WL_VIRTUAL_KEY, untimed = key && !head[2] && head[3];

	if ((!key && head[1] != WL_VIRTUAL_BUTTON) || head[4] > 1 || (!key && !is_button(head[3])))
		return 0;
	if (!untimed && !is_near(reading, head[2]))
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

/* Reads the head of one message, with its first bytes available; returns 0 if it is one. */
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
