/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Keyboard focus on each compositor; each change is sent to the recorder at once.
 *
 * A client has it when a keyboard enters, or when it gets a key press and no enter event has been
 * seen; until the same keyboard leaves it, or another client gets it. */
#pragma once
#include "sends.h"
#include "sockets.h"

/* Number of compositors tracked, a power of two; if two share a slot, each change of either is
 * reported. */
#define HOLDERS 16
/* Bytes of changes that wait for the recorder. A change without room or budget is found among the
 * holders later. */
#define FOCUS_BYTES 16384
/* Maximum number of changes by one user's compositors per period: a person causes few, and each
 * costs the recorder time. */
#define BUDGET 250
#define BUDGET_NS 500000000
#define BUDGETS 64

/* `client` is 0 if no client has had the focus since then. */
struct holder { __u64 at; __u32 server, client, connection, keyboard; };
struct focus_change { __u64 at; __u32 server, client; };

struct budget { __u64 since; __u32 user, told; };

struct holder holders[HOLDERS];
/* By user. */
struct budget budgets[BUDGETS];

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FOCUS_BYTES);
} focus_changes SEC(".maps");

/* Reports a change within the budget of the compositor's user, which is the current user. */
static __noinline int tell_focus(struct holder *holder)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 user = bpf_get_current_uid_gid();
	struct budget *budget = &budgets[user & (BUDGETS - 1)];

	if (!holder)
		return 0;
	holder->at = now;
	struct focus_change change = { .at = now, .server = holder->server, .client = holder->client };
	if (budget->user != user || now - budget->since > BUDGET_NS) {
		budget->user = user;
		budget->since = now;
		budget->told = 0;
	}
	if (budget->told < BUDGET) {
		budget->told++;
		bpf_ringbuf_output(&focus_changes, &change, sizeof(change), 0);
	}
	return 0;
}

/* Updates the focus from the events of one send. */
static __always_inline void note_focus(struct parties *parties, struct reading *reading)
{
	struct holder *holder = &holders[parties->server & (HOLDERS - 1)];
	bool own = holder->client && holder->server == parties->server && holder->connection == parties->connection;

	if (own && reading->keyboard) {
		holder->keyboard = reading->keyboard;
	} else if (own && reading->left && reading->left == holder->keyboard) {
		holder->client = 0;
		tell_focus(holder);
	} else if (reading->keyboard && parties->client) {
		holder->server = parties->server;
		holder->client = parties->client;
		holder->connection = parties->connection;
		holder->keyboard = reading->keyboard;
		tell_focus(holder);
	}
}
