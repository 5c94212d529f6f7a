/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Identification of AF_UNIX sockets connected to a display.
 *
 * A socket belongs to an X server if it is bound to /tmp/.X11-unix/X<n> (also in the abstract
 * namespace), and to a Wayland compositor if its name ends in /wayland-<n>; accepted sockets
 * inherit the name. Most sockets are neither, and send as often: the result is stored with the
 * socket, since its name does not change while it is connected.
 *
 * An X server that shows its windows on a compositor is a client of it, over an unnamed connection
 * that it was started with. It is recognised by its first send. */
#pragma once
#include "receipts.h"
#include "sends.h"

/* Characters examined at the end of a name: "/wayland-" and up to three digits. */
#define NAME_TAIL 12
#define DIGITS 3

/* The only X11 or Wayland display to record; both -1 for all. Set by the loader. */
const volatile int only_display = -1;
const volatile int only_wayland = -1;

/* `NESTED`: a possible connection of an X server to its compositor, decided by the server's first
 * send. */
enum role { UNKNOWN, NO_DISPLAY, NESTED, X_SERVER, X_CLIENT, WAYLAND_SERVER, WAYLAND_CLIENT };

/* Ends of a connection: inode of the server's socket, assigned on accept, and the processes. */
struct parties { __u32 connection, client, server; };

/* An end of a connection: its role, the number of its display, and the stream of its sends;
 * `owner`: a number for the server's end, 0 until the processes are known; `sent`: all bytes sent
 * from it, modulo 2^32. */
struct endpoint {
	struct framing framing;
	__u32 display;
	struct parties parties;
	__u64 owner;
	struct receipt taken;
	__u32 sent, role;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct endpoint);
} endpoints SEC(".maps");

/* Returns the number after "/tmp/.X11-unix/X" in the socket's name; -1 for another name or none. */
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

/* Returns the number of `digits` digits after "/wayland-" at the end of a name; -1 if there is
 * none. */
static __always_inline int number_at_end(const char *tail, int digits)
{
	const char wanted[] = "/wayland-";
	int first = NAME_TAIL - digits, number = 0;

#pragma unroll
	for (int i = 0; i < 9; i++)
		if (tail[first - 9 + i] != wanted[i])
			return -1;
#pragma unroll
	for (int i = 0; i < DIGITS; i++) {
		if (i >= digits)
			break;
		if (tail[first + i] < '0' || tail[first + i] > '9')
			return -1;
		number = number * 10 + tail[first + i] - '0';
	}
	return number;
}

/* Returns the number after "/wayland-" at the end of the socket's name; -1 for another name or
 * none. */
static __noinline int wayland_number(struct unix_sock *unix)
{
	char tail[16] __attribute__((aligned(8))) = {};
	int number;

	if (!unix)
		return -1;
	struct unix_address *address = BPF_CORE_READ(unix, addr);
	if (!address)
		return -1;
	/* The length counts the family before the name, and the zero after it. */
	int length = BPF_CORE_READ(address, len) - 3;
	if (length < NAME_TAIL || length > 107)
		return -1;
	if (bpf_probe_read_kernel(tail, NAME_TAIL, address->name[0].sun_path + length - NAME_TAIL))
		return -1;
	number = number_at_end(tail, 1);
	if (number < 0)
		number = number_at_end(tail, 2);
	return number < 0 ? number_at_end(tail, 3) : number;
}

static __always_inline bool is_wanted(int display, int only, int other)
{
	return display >= 0 && (only < 0 ? other < 0 : display == only);
}

/* Returns true if an X server sends or receives on a possible connection to its compositor. No name
 * identifies the compositor, so this is skipped if only one display is recorded. */
static __always_inline bool may_be_nested(struct unix_sock *own, struct unix_sock *peer)
{
	char name[16] __attribute__((aligned(8))) = {}, wanted[9] __attribute__((aligned(8))) = "Xwayland";

	if (only_display >= 0 || only_wayland >= 0 || BPF_CORE_READ(own, addr) || BPF_CORE_READ(peer, addr))
		return 0;
	bpf_get_current_comm(name, sizeof(name));
	return *(__u64 *)name == *(__u64 *)wanted && !name[8];
}

/* Returns the role of a socket, and the number of its display. */
static __always_inline enum role find_role(struct unix_sock *own, struct unix_sock *peer, __u32 *display)
{
	enum role role = X_SERVER;
	int number = display_number(own);

	if (number < 0) {
		role = X_CLIENT;
		number = display_number(peer);
	}
	if (number >= 0) {
		*display = number;
		return is_wanted(number, only_display, only_wayland) ? role : NO_DISPLAY;
	}
	role = WAYLAND_SERVER;
	number = wayland_number(own);
	if (number < 0) {
		role = WAYLAND_CLIENT;
		number = wayland_number(peer);
	}
	*display = number;
	if (number < 0 && may_be_nested(own, peer))
		return NESTED;
	return is_wanted(number, only_wayland, only_display) ? role : NO_DISPLAY;
}

static __always_inline void find_parties(struct parties *parties, struct unix_sock *server, struct unix_sock *client)
{
	parties->connection = BPF_CORE_READ((struct sock *)server, sk_socket, file, f_inode, i_ino);
	parties->client = BPF_CORE_READ((struct sock *)server, sk_peer_pid, numbers[0].nr);
	parties->server = BPF_CORE_READ((struct sock *)client, sk_peer_pid, numbers[0].nr);
}

/* A display connection, seen from one of its ends. */
struct side {
	struct sock *sock;
	struct endpoint *endpoint;
	struct parties parties;
	__u64 owner;
	__u32 display;
	bool is_server, wayland, nested;
};

/* Returns the other end of a connection; NULL if it is gone. */
static __always_inline struct unix_sock *peer_of(struct sock *sock)
{
	struct unix_sock *own = bpf_skc_to_unix_sock(sock);

	return own ? (struct unix_sock *)own->peer : 0;
}

static __always_inline void take_role(struct side *side, enum role role)
{
	side->is_server = role == X_SERVER || role == WAYLAND_SERVER;
	side->wayland = role == NESTED || role == WAYLAND_SERVER || role == WAYLAND_CLIENT;
	side->nested = role == NESTED;
}

/* Determines the role and the processes of a connection not known yet, and stores them. */
static __always_inline bool meet(struct side *side, enum role role)
{
	struct endpoint *endpoint = side->endpoint;
	struct unix_sock *own = bpf_skc_to_unix_sock(side->sock);
	if (!own)
		return 0;
	struct unix_sock *peer = (struct unix_sock *)own->peer;
	if (role == UNKNOWN) {
		role = find_role(own, peer, &side->display);
		if (endpoint) {
			endpoint->display = side->display;
			endpoint->role = role;
		}
		if (role == NO_DISPLAY)
			return 0;
	}
	take_role(side, role);
	find_parties(&side->parties, side->is_server ? own : peer, side->is_server ? peer : own);
	side->owner = number_of(side->is_server ? own : peer);
	if (endpoint && !side->nested) {
		endpoint->parties = side->parties;
		endpoint->owner = side->parties.connection ? side->owner : 0;
	}
	return 1;
}

/* Finds the connection and the end that a socket is; returns false for other sockets. */
static __always_inline bool find_side(struct side *side, struct sock *sock)
{
	if (sock->__sk_common.skc_family != 1)
		return 0;
	struct endpoint *endpoint = bpf_sk_storage_get(&endpoints, sock, 0, BPF_SK_STORAGE_GET_F_CREATE);
	enum role role = endpoint ? endpoint->role : UNKNOWN;
	if (role == NO_DISPLAY)
		return 0;
	side->sock = sock;
	side->endpoint = endpoint;
	side->display = endpoint ? endpoint->display : 0;
	if (!endpoint || !endpoint->owner)
		return meet(side, role);
	take_role(side, role);
	side->parties = endpoint->parties;
	side->owner = endpoint->owner;
	return 1;
}

/* Returns the receipt of the data just sent from an end; NULL if it may still be queued. */
static __always_inline struct receipt *receipt_of(struct endpoint *own, struct sock *receiver)
{
	if (!own || receiver->sk_receive_queue.qlen)
		return 0;
	struct endpoint *peer = bpf_sk_storage_get(&endpoints, receiver, 0, 0);
	return peer && is_taken(&peer->taken, &own->sent) ? &peer->taken : 0;
}

/* Sets the role of both ends by an X server's first send; returns true for a compositor and its
 * client. */
static __always_inline bool settle_nested(struct side *side, bool wayland)
{
	struct endpoint *own = side->endpoint;

	if (!own)
		return 0;
	own->role = wayland ? WAYLAND_CLIENT : NO_DISPLAY;
	if (!wayland)
		return 0;
	/* The process that created the connection is the peer of both ends. */
	side->parties.client = bpf_get_current_pid_tgid() >> 32;
	own->parties = side->parties;
	own->owner = side->owner;
	struct sock *peer = (struct sock *)peer_of(side->sock);
	struct endpoint *other = peer ? bpf_sk_storage_get(&endpoints, peer, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	if (!other)
		return 1;
	other->role = WAYLAND_SERVER;
	other->parties = side->parties;
	other->owner = side->owner;
	return 1;
}
