/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Minimal BPF helpers, to run the kernel programs in user space. */
#pragma once
#define SEC(name)
#define __noinline __attribute__((noinline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(variable) __asm__ volatile("" : "+r"(variable))

struct task_struct;
__u32 bpf_get_smp_processor_id(void);
__u64 bpf_get_current_pid_tgid(void);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
__u64 bpf_ktime_get_tai_ns(void);
__u64 bpf_ktime_get_ns(void);
void *bpf_map_lookup_elem(void *map, void *key);
long bpf_probe_read_kernel(void *to, __u32 size, void *from);
long bpf_probe_read_user(void *to, __u32 size, void *from);
