// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/* Kernel side of the flight recorder: programs that write records into rings, and count answers
 * (answers.h). */
#include "ring.h"
#include "stacks.h"
#include "waits.h"
#include "polls.h"
#include "sched.h"
#include "devices.h"
#include "deferred.h"
#include "overdue.h"
#include "tasks.h"
#include "attempts.h"
#include "display.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
