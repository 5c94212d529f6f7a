/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What was taken before the send of it returned.
 *
 * A send is noted when it returns, after it has woken the receiver. On another CPU that may have taken it by then, and noted
 * that. Which it was is told by counting bytes on both sides. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>

/* What was taken at an end of a connection last: when, and by which thread; and all that was taken there, in bytes modulo 2^32. */
struct receipt { __u64 at; __u32 by, bytes; };

static __always_inline void add_receipt(struct receipt *taken, __u32 bytes, __u64 now)
{
	taken->at = now;
	taken->by = (__u32)bpf_get_current_pid_tgid();
	barrier();
	taken->bytes += bytes;
}

/* Whether all of so many bytes that were sent was taken; to be asked where nothing is left in the queue. What lay there when
 * recording began was not seen to be sent: from the first such time on the two counts agree. Where a receipt was not noted,
 * none is found to be early on that connection any more: it counts as taken with the next. */
static __always_inline bool is_taken(struct receipt *taken, __u32 *sent)
{
	if ((__s32)(taken->bytes - *sent) < 0)
		return 0;
	*sent = taken->bytes;
	return 1;
}
