/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Data consumed before its send returned.
 *
 * A send is noted when it returns, after it has woken the receiver. By then the receiver may have
 * consumed the data on another CPU, and noted that. Byte counts on both sides identify the data. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>

/* Time and thread of the last receive at an end of a connection, and all bytes received there,
 * modulo 2^32. */
struct receipt { __u64 at; __u32 by, bytes; };

static __always_inline void add_receipt(struct receipt *taken, __u32 bytes, __u64 now)
{
	taken->at = now;
	taken->by = (__u32)bpf_get_current_pid_tgid();
	barrier();
	taken->bytes += bytes;
}

/* Returns true if all bytes sent have been received; call it with an empty queue only. Data queued
 * before recording began was not counted as sent: the first such call aligns the counts. After a
 * missed receipt, no early receipt is found on that connection: it counts with the next one. */
static __always_inline bool is_taken(struct receipt *taken, __u32 *sent)
{
	if ((__s32)(taken->bytes - *sent) < 0)
		return 0;
	*sent = taken->bytes;
	return 1;
}
