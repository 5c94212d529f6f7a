/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* X11 messages: their heads, reduced to opcodes, event codes and lengths. Key codes and all other
 * contents are left alone. */
#pragma once
#include "answers.h"
#include "sends.h"

#define OPERATIONS 24
/* Bytes read of a message. */
#define X_HEAD 20

static __always_inline __u32 swap16(__u32 value, bool swapped)
{
	return swapped ? __builtin_bswap16(value) : value;
}

static __always_inline __u32 swap32(__u32 value, bool swapped)
{
	return swapped ? __builtin_bswap32(value) : value;
}

/* Returns the length of the connection setup if this is its first message, else 0. */
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

/* Finds presses and motion. The core protocol and the input extension encode them alike; events of
 * the latter are recognised by their length of at least twelve units. The wheel is four buttons. */
static __always_inline void look_for_input(struct reading *reading, __u8 *head, __u32 length)
{
	__u32 code = head[0], detail = head[1], stamp = *(__u32 *)(head + 4);

	if (input_hidden)
		return;
	if (code == 35 && length >= 80 && !reading->swapped) {
		code = head[8];
		stamp = *(__u32 *)(head + 12);
		detail = *(__u32 *)(head + 16);
	}
	stamp = swap32(stamp, reading->swapped);
	/* The input extension may report one press for a device and for its master. */
	bool again = head[0] == 35 && reading->presses && stamp == reading->last_ms;
	if (code == 6)
		look_at_move(reading, MOVES, stamp);
	else if (code == 4 && detail >= 4 && detail <= 7)
		look_at_move(reading, SCROLLS, stamp);
	else if (again)
		return;
	else if (code == 4)
		look_at_press(reading, BUTTON_PRESSED, stamp);
	/* The key's code is compared with those of modifiers and discarded. */
	else if (code == 2)
		look_at_press(reading, is_modifier(detail) ? MODIFIER_PRESSED : KEY_PRESSED, stamp);
}

static __always_inline void look_for_drawing(struct reading *reading, __u8 *head, __u32 word)
{
	__u32 fake = word == 0xff ? 0 : word >> 24;

	if (fake == 2 || fake == 4)
		reading->injects = 1;
	if (!reading->draws && is_drawing(reading, head[0], head[1], fake))
		reading->draws = 1;
}

/* Returns true if these bytes may be the head of a request, or of an event, a reply or an error. */
static __always_inline bool is_head(struct reading *reading, __u8 *head)
{
	__u8 code = head[0] & 0x7f;

	if (!reading->request)
		return code <= 35 || code >= 64;
	if (!head[0] || (head[0] >= 120 && head[0] < 127))
		return 0;
	return *(__u16 *)(head + 2) || swap32(*(__u32 *)(head + 4), reading->swapped) > 1;
}

static __always_inline void keep_word(struct reading *reading, __u32 word)
{
	__u32 at = reading->count;

	barrier_var(at);
	if (at >= OPERATIONS) {
		reading->flags |= FLAG_MORE;
		return;
	}
	reading->words[at] = word;
	reading->count++;
}

/* Reads the head of one message, with its first bytes available; returns 0 if it is one. */
__noinline int read_x_head(struct reading *reading)
{
	__u32 length = 0, word;
	__u8 *head;

	if (!reading)
		return 1;
	if (reading->heads >= X_HEADS)
		return stop_reading(reading);
	head = find_head(reading, X_HEAD);
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
			look_for_input(reading, head, length);
		keep_word(reading, word);
		reading->heads++;
	}
	reading->offset += length < 4 ? 4 : length;
	return 0;
}
