/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Remote ends of internet sockets.
 *
 * An unconnected datagram socket has no remote address: each send names it, and it is remembered
 * here. */
#pragma once
#include "ring.h"

#define AF_INET 2
#define AF_INET6 10
#define DATAGRAM 2
#define CONNECTED 1
#define PORT_ASKED_FOR 8 /* SOCK_BINDPORT_LOCK */
#define ASKED_MAX 1024 /* sockets; the most recent senders stay */

/* An IPv4 address in network byte order, and a port in host byte order. An IPv6 address not mapped
 * to IPv4 is in `words`, which are 0 otherwise. */
struct far_end { __u32 address; __u16 port; __u32 words[4]; };

/* By address of the socket in the kernel: a later socket may reuse it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ASKED_MAX);
	__type(key, __u64);
	__type(value, struct far_end);
} asked SEC(".maps");

/* Returns the IPv4 address for an IPv6 one: the mapped one, or 127.0.0.1 for ::1. */
static __always_inline __u32 mapped_address(const __u32 *words)
{
	if (words[0] || words[1])
		return 0;
	if (words[2] == __builtin_bswap32(0xffff))
		return words[3];
	return !words[2] && words[3] == __builtin_bswap32(1) ? __builtin_bswap32(0x7f000001) : 0;
}

static __always_inline void set_address6(struct far_end *end, const __u32 *words)
{
	end->address = mapped_address(words);
	if (!end->address)
		__builtin_memcpy(end->words, words, sizeof(end->words));
}

static __always_inline void read_connected(struct far_end *end, struct sock *sock, __u16 family)
{
	__u32 words[4] = {};

	if (family == AF_INET)
		end->address = BPF_CORE_READ(sock, __sk_common.skc_daddr);
	else if (bpf_core_field_exists(struct sock_common, skc_v6_daddr) &&
		 !bpf_core_read(words, sizeof(words), &sock->__sk_common.skc_v6_daddr))
		set_address6(end, words);
}

/* Returns true if a datagram socket receives only answers from the address it sent to, like a
 * connection: it has sent, and is not bound to a port by which others could find it. */
static __always_inline bool has_asked(struct sock *sock)
{
	return BPF_CORE_READ(sock, sk_type) == DATAGRAM && BPF_CORE_READ(sock, __sk_common.skc_num) &&
	       !(BPF_CORE_READ_BITFIELD_PROBED(sock, sk_userlocks) & PORT_ASKED_FOR);
}

static __always_inline bool is_same_end(const struct far_end *one, const struct far_end *other)
{
	return one->address == other->address && one->port == other->port && one->words[0] == other->words[0] &&
	       one->words[1] == other->words[1] && one->words[2] == other->words[2] && one->words[3] == other->words[3];
}

/* Returns the user address of the destination in the system call that sends; 0 if it has none. */
static __always_inline __u64 destination_at(struct pt_regs *regs)
{
	__u64 call = BPF_CORE_READ(regs, orig_ax), message = BPF_CORE_READ(regs, si), name = 0;

	if (call == 44) /* sendto */
		return BPF_CORE_READ(regs, r8);
	if (call == 46 || call == 307) /* sendmsg, sendmmsg: the first of several */
		bpf_probe_read_user(&name, sizeof(name), (void *)message);
	return name;
}

/* Remembers the destination to which an unconnected datagram socket has just sent. */
static __always_inline void note_asked(struct sock *sock)
{
	struct { __u16 family, port; __u32 words[6]; } name = {};
	struct far_end end = {};
	__u64 key = (__u64)sock;

	if (sock->sk_type != DATAGRAM || sock->__sk_common.skc_dport || !has_asked(sock))
		return;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	__u64 at = regs ? destination_at(regs) : 0;
	if (!at || bpf_probe_read_user(&name, 16, (void *)at))
		return;
	end.port = __builtin_bswap16(name.port);
	if (name.family == AF_INET)
		end.address = name.words[0];
	else if (name.family == AF_INET6 && !bpf_probe_read_user(&name, sizeof(name), (void *)at))
		set_address6(&end, &name.words[1]);
	else
		return;
	struct far_end *known = bpf_map_lookup_elem(&asked, &key);
	if (!known || !is_same_end(known, &end))
		bpf_map_update_elem(&asked, &key, &end, BPF_ANY);
}

/* Returns the remote end of a socket: the connected one, or the last destination. */
static __always_inline struct far_end far_end_of(struct sock *sock, __u16 family)
{
	__u64 key = (__u64)sock;
	struct far_end end = {};

	read_connected(&end, sock, family);
	end.port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));

	/* A leftover of another socket at this address does not matter: a socket that has sent has
	 * its own entry. */
	struct far_end *known = !end.port && has_asked(sock) ? bpf_map_lookup_elem(&asked, &key) : 0;
	return known ? *known : end;
}
