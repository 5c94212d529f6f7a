/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The far ends of internet sockets.
 *
 * A datagram socket without a connection does not know whom it asks: that is told with each datagram, and remembered here. */
#pragma once
#include "ring.h"

#define AF_INET 2
#define AF_INET6 10
#define DATAGRAM 2
#define CONNECTED 1
#define PORT_ASKED_FOR 8 /* SOCK_BINDPORT_LOCK */
#define ASKED_MAX 1024 /* sockets; those that sent last stay */

/* An IPv4 address in the order of the network, and a port in that of the machine. An IPv6 address that stands for no
 * IPv4 address is in `words`, which are 0 otherwise. */
struct far_end { __u32 address; __u16 port; __u32 words[4]; };

/* By the address of the socket in the kernel: one that sends next has its place. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ASKED_MAX);
	__type(key, __u64);
	__type(value, struct far_end);
} asked SEC(".maps");

/* The IPv4 address that an IPv6 address stands for: a mapped one, and 127.0.0.1 for the machine itself. */
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

/* Whether answers to a datagram socket come from whom it has asked only, as from a connection: it has sent, and nobody has
 * given it a port by which others could find it. */
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

/* Where the address is to which the system call sends, in the memory of the thread that calls; 0 where it names none. */
static __always_inline __u64 destination_at(struct pt_regs *regs)
{
	__u64 call = BPF_CORE_READ(regs, orig_ax), message = BPF_CORE_READ(regs, si), name = 0;

	if (call == 44) /* sendto */
		return BPF_CORE_READ(regs, r8);
	if (call == 46 || call == 307) /* sendmsg, sendmmsg: of several the first */
		bpf_probe_read_user(&name, sizeof(name), (void *)message);
	return name;
}

/* Remembers to whom a datagram socket without a connection has just sent. */
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

/* The far end of a socket: the connected one, or else the one that it has asked. */
static __always_inline struct far_end far_end_of(struct sock *sock, __u16 family)
{
	__u64 key = (__u64)sock;
	struct far_end end = {};

	read_connected(&end, sock, family);
	end.port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));

	/* What another socket has left that had this place does not count: who has asked has an entry of its own. */
	struct far_end *known = !end.port && has_asked(sock) ? bpf_map_lookup_elem(&asked, &key) : 0;
	return known ? *known : end;
}
