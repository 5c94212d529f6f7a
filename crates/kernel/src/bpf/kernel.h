/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The kernel structures used, with only the fields that are read. The loader relocates every access
 * to the layout of the running kernel (CO-RE), so order and size here mean nothing. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 bool;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_F_USER_STACK = 1 << 8 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

enum cpuhp_state { CPUHP_BRINGUP_CPU = 1 };
struct upid { int nr; };
struct pid { struct upid numbers[1]; };
struct kernfs_node { __u64 id; };
struct cgroup { struct kernfs_node *kn; };
struct cgroup_subsys_state { struct cgroup *cgroup; };
struct cfs_bandwidth { __u64 quota; long long period; };
struct task_group { struct cgroup_subsys_state css; struct cfs_bandwidth cfs_bandwidth; };
struct css_set { struct cgroup *dfl_cgrp; };
struct signal_struct { struct pid *pids[4]; };
struct mm_struct { unsigned long arg_start, arg_end; };
struct super_block { unsigned int s_dev; unsigned long s_magic; };
struct list_head { struct list_head *next; };
struct file_lock_core { struct list_head flc_list; void *flc_owner; unsigned char flc_type; int flc_pid; };
struct file_lock { struct file_lock_core c; long long fl_start, fl_end; };
/* Before Linux 6.9. */
struct file_lock___old { struct list_head fl_list; void *fl_owner; unsigned char fl_type; unsigned int fl_pid; };
struct file_lock_context { struct list_head flc_flock, flc_posix; };
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct file_lock_context *i_flctx;
};
struct address_space { struct inode *host; };
struct folio { struct address_space *mapping; };
struct file { struct inode *f_inode; void *private_data; };
struct fdtable { unsigned int max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };
struct cpumask { unsigned long bits[1]; };
struct thread_info { __u32 cpu; };
typedef struct { unsigned int val; } kuid_t;
struct cred { kuid_t uid; };
struct pt_regs { unsigned long r10, r8, di, si, dx, orig_ax, ip; };
struct thread_struct { unsigned long sp; };
struct rq { __u64 prev_steal_time_rq; };
struct cfs_rq { struct rq *rq; struct task_group *tg; int throttle_count; };
struct sched_entity { struct sched_entity *parent; struct cfs_rq *cfs_rq; };

struct task_struct {
	void *stack;
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int policy;
	int pid, tgid, prio;
	unsigned in_iowait : 1;
	unsigned frozen : 1;
	__u64 start_time;
	struct task_struct *real_parent, *group_leader;
	struct signal_struct *signal;
	const struct cred *real_cred;
	struct css_set *cgroups;
	struct mm_struct *mm;
	struct files_struct *files;
	const struct cpumask *cpus_ptr;
	char comm[16];
	struct thread_struct thread;
	struct sched_entity se;
};

struct wait_queue_entry { void *private; };
struct poll_table_entry { struct file *filp; struct wait_queue_entry wait; };
struct poll_wqueues { struct task_struct *polling_task; int inline_index; struct poll_table_entry inline_entries[1]; };
struct rb_node { struct rb_node *rb_right, *rb_left; };
struct rb_root { struct rb_node *rb_node; };
struct rb_root_cached { struct rb_root rb_root; };
struct eventpoll { struct rb_root_cached rbr; };
struct epoll_filefd { struct file *file; };
struct epitem { struct rb_node rbn; struct epoll_filefd ffd; struct eventpoll *ep; };

struct gendisk { int major, first_minor; };
struct request_queue { struct gendisk *disk; };
struct request {
	struct request_queue *q;
	unsigned int cmd_flags, __data_len;
	__u64 __sector;
};

struct sk_buff { struct sk_buff *next, *prev; unsigned int len, data_len; unsigned char *data; };
struct sk_buff_head { struct sk_buff *next, *prev; __u32 qlen; };
struct in6_addr { unsigned char bytes[16]; };
struct sock_common {
	unsigned short skc_family;
	__be16 skc_dport;
	__be32 skc_daddr;
	unsigned short skc_num;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
};
struct socket { struct file *file; struct sock *sk; };
struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
	unsigned short sk_type;
	unsigned char sk_userlocks : 4;
};
struct sockaddr_un { unsigned short sun_family; char sun_path[108]; };
struct unix_address { int len; struct sockaddr_un name[1]; };
struct unix_sock { struct sock sk; struct unix_address *addr; struct sock *peer; };

struct atomic64 { long counter; };
struct mutex { struct atomic64 owner; };
struct rw_semaphore { struct atomic64 owner; };
struct work_struct { void *func; };
struct timer_list { void *function; };
struct hrtimer_cpu_base { __u64 expires_next; };
struct hrtimer_clock_base { struct hrtimer_cpu_base *cpu_base; };
struct hrtimer { void *function; struct hrtimer_clock_base *base; };
struct tty_control { struct pid *session; };
struct tty_struct { struct tty_control ctrl; struct tty_struct *link; };
struct tty_bufhead { struct work_struct work; };
struct tty_port { struct tty_bufhead buf; struct tty_struct *itty; };

struct seq_file { void *private; };
struct bpf_iter_meta { struct seq_file *seq; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };

#pragma clang attribute pop

/* Context of a perf event program on x86-64: the user-visible registers; 16 is the instruction
 * pointer. */
struct perf_context { __u64 regs[21]; __u64 period; __u64 address; };
