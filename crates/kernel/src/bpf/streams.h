/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Positions of messages in a stream of sends.
 *
 * A send continues where the previous one ended, possibly inside a message. Once that position is
 * lost, every send is read as if a message began at its first byte, and only accepted if whole
 * messages fill it exactly. */
#pragma once
#include "wayland.h"
#include "x11.h"

/* X11 messages per iteration of the outer loop, which would otherwise have too many for the
 * verifier. */
#define BLOCK 16

/* Sends with messages skipped because their position in the stream was lost. */
__u64 sends_skipped;

__noinline int read_x_block(struct reading *reading)
{
	if (!reading)
		return 1;
	for (int i = 0; i < BLOCK && reading->offset + 4 <= reading->linear; i++)
		if (read_x_head(reading))
			return 1;
	return 0;
}

__noinline int read_heads(struct reading *reading, __u32 linear, bool user)
{
	if (!reading)
		return 0;
	reading->linear = linear;
	reading->user = user;
	reading->segment = reading->begin = reading->flags = 0;
	reading->window_begin = reading->window_bytes = 0;
	for (int i = 0; i <= X_HEADS / BLOCK && !reading->wayland && reading->offset + 4 <= reading->linear; i++)
		if (read_x_block(reading))
			return 0;
	for (int i = 0; i <= HEADS && reading->wayland && reading->offset + 8 <= reading->linear; i++)
		if (read_wayland_head(reading))
			return 0;
	return 0;
}

static __always_inline void continue_stream(struct reading *reading, struct framing *framing)
{
	reading->offset = framing->lost ? 0 : framing->skip;
	reading->started = framing->started;
	reading->swapped = framing->swapped;
}

/* Stores where the next send continues, and discards results from a guessed position that proved
 * wrong. */
static __always_inline void keep_framing(struct reading *reading, struct framing *framing, __u32 bytes)
{
	bool found = reading->offset == bytes || (reading->offset > bytes && !framing->lost);

	if (framing->lost && !found) {
		forget(reading);
		__sync_fetch_and_add(&sends_skipped, 1);
	}
	/* The messages before the last one examined have been read. */
	if (!found && !reading->stopped)
		reading->flags |= FLAG_UNREAD;
	framing->lost = !found;
	framing->skip = reading->offset > bytes ? reading->offset - bytes : 0;
	framing->started = reading->started;
	framing->swapped = reading->swapped;
}
