/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The rings' own code in user space: threads write to them as many CPUs would.
 *
 *     rings POOL CPUS SCHED RARE EXITS LEAST KEPT_NS
 *
 * POOL is a file with as many chunks as the three shares. The lines of standard input are orders:
 * "loud" makes every third event a rare record, "end" ends the writing. Each is answered with a
 * line: for each class the time up to which records were overwritten, the number that found no
 * chunk, and its number of chunks; the number of threads still writing; and the number of switches
 * written. The program exits at the end of its input. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* `fill` sets the constants that the loader sets before loading the programs. */
#define const
#include "packed.h"
#undef const

/* Number of threads that share the CPUs, and of events after which a thread moves to its next CPU.
 */
#define THREADS 4
#define TURN 37
/* Time between two events of the machine: 200,000 per second. */
#define EVENT_NS 5000
/* Threads of a CPU, which it switches to in turn. */
#define TIDS 61
#define FIRST_TID 1000

static struct chunk *chunks;
static __u32 chunk_count, cpus;
static __u64 now_ns = 100000000000ull, written[MAX_CPUS];
static int running_threads = THREADS;
static volatile int is_loud, is_ended;
static __thread __u32 this_cpu;

__u32 bpf_get_smp_processor_id(void) { return this_cpu; }
__u64 bpf_ktime_get_ns(void) { return __sync_add_and_fetch(&now_ns, EVENT_NS); }

void *bpf_map_lookup_elem(void *map, void *key)
{
	static struct chunk blank;
	__u32 index = *(__u32 *)key;

	if (map == &blank_chunk)
		return &blank;
	return map == &pool && index < chunk_count ? &chunks[index] : 0;
}

long bpf_probe_read_kernel(void *to, __u32 size, void *from)
{
	memcpy(to, from, size);
	return 0;
}

static __u32 tid_of(__u32 cpu, __u64 turn) { return FIRST_TID + cpu * TIDS + turn % TIDS; }

/* Writes the next switch of a CPU, like `sched_switch` in sched.h. */
static void switch_once(__u32 cpu)
{
	struct place *mine = sched_place();
	__u64 now = sched_now(), turn = written[cpu];
	__u32 tid = tid_of(cpu, turn), next = tid_of(cpu, turn + 1);
	__u8 generation;

	if (pack_switch(mine, now, tid, 120, next, 120, turn & 1)) {
		mine->known = life_and(mine->known, next);
	} else {
		struct rec_switch *record = reserve(SCHED, sizeof(*record), now, &generation);
		if (!record) {
			mine->known = 0;
			return;
		}
		record->next = next;
		record->prev_state = turn & 1;
		record->prev_prio = record->next_prio = 120;
		commit(record, now, tid, sizeof(*record), REC_SWITCH, generation);
		note_known(mine, now, next);
	}
	mine->prio = 120;
	written[cpu]++;
}

/* Writes a name record that holds its own time and CPU. */
static void name_once(__u32 cpu, enum ring_class class)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 generation;
	struct rec_rename *record = class == RARE ? reserve(RARE, sizeof(*record), now, &generation) :
						    reserve(EXITS, sizeof(*record), now, &generation);

	if (!record)
		return;
	__u64 *words = (__u64 *)record->comm;
	words[0] = now;
	words[1] = ~now;
	commit(record, now, cpu, sizeof(*record), REC_RENAME, generation);
}

/* Half of the CPUs have 1/16 of the events of the others, and the last one has a single event. */
static int is_due(__u32 cpu, __u64 round)
{
	if (cpu == cpus - 1)
		return !round;
	return cpu % 2 == 0 || round % 16 == 0;
}

static void *write_events(void *number)
{
	for (__u64 round = 0; !is_ended; round++)
		for (this_cpu = (long)number; this_cpu < cpus; this_cpu += THREADS) {
			if (!is_due(this_cpu, round))
				continue;
			name_once(this_cpu, EXITS);
			name_once(this_cpu, RARE);
			for (int i = 0; i < TURN; i++)
				if (is_loud && i % 3 == 0)
					name_once(this_cpu, RARE);
				else
					switch_once(this_cpu);
		}
	__sync_fetch_and_sub(&running_threads, 1);
	return 0;
}

static void answer(void)
{
	__u64 switches = 0;

	for (__u32 cpu = 0; cpu < cpus; cpu++)
		switches += written[cpu];
	for (int class = 0; class < CLASSES; class++)
		printf("%llu %llu %u ", overwritten_until[class], dropped[class], owned[class]);
	printf("%d %llu\n", running_threads, switches);
	fflush(stdout);
}

/* Fills the queues like the loader, see load.rs. */
static void fill(char **shares_and_more)
{
	__u32 number = 1;

	for (int class = 0; class < CLASSES; class++) {
		owned[class] = shares[class] = atoi(shares_and_more[class]);
		for (__u64 turn = 0; turn < QUEUE; turn++)
			queues[class].slots[turn] = turn << NUMBER_BITS | (turn < owned[class] ? number++ : 0);
		queues[class].tail = owned[class];
	}
	chunk_count = number - 1;
	least_share = atoi(shares_and_more[CLASSES]);
	kept_ns = strtoull(shares_and_more[CLASSES + 1], 0, 10);
}

int main(int count, char **arguments)
{
	char line[16];
	pthread_t thread;

	if (count != 8)
		return 2;
	cpus = atoi(arguments[2]);
	fill(arguments + 3);
	chunks = mmap(0, (unsigned long)chunk_count * CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, open(arguments[1], O_RDWR), 0);
	if (chunks == MAP_FAILED)
		return 2;
	for (long number = 0; number < THREADS; number++)
		if (pthread_create(&thread, 0, write_events, (void *)number))
			return 2;
	while (fgets(line, sizeof(line), stdin)) {
		is_loud |= !strcmp(line, "loud\n");
		is_ended |= !strcmp(line, "end\n");
		answer();
	}
	return 0;
}
