/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Reading of events and counting of answers by the kernel programs' own code, in user space.
 *
 * The lines of standard input are orders, each answered with a line; times are in milliseconds.
 *
 *     x11 HEX, wayland HEX       events of one send at 100,000: "PRESS STAMP MOVES STAMP PRESSES"
 *     request HEX                requests of one send to a display of server 9: "DRAWS INJECTS"
 *     stream HEX                 next send of requests on a connection: requests read, and all
 *                                  sends skipped so far
 *     known MAJOR MINOR SERVER   this server is known, and this request of it draws
 *     met DISPLAY                a press at server 9: the last unknown display and server
 *     hide                       input is not recorded from here on
 *     press AT NOW [COUNT]       keys are sent to a client,
 *     moves CLASS AT NOW           moves or the wheel are,
 *     take TID NOW                 it reads them,
 *     already TID AT NOW           has read them before the send returned,
 *     sleep TID START NOW          waits for others,
 *     woken TID START NOW          until the server, thread 9, wakes it,
 *     draw TID NOW                 and draws; with a suffix "b" these orders are for another client;
 *     serve TID NOW                the server reads the drawing,
 *     served TID NOW               has read it before the send returned,
 *     wait TID NOW                 and waits: "CLASS LATENCY QUEUED" of each answer reported,
 *                                  "of N" presses, "after N" presses without an answer, and
 *                                  "CLASS?" for each open slot
 *     inject NOW                 a client injects a press,
 *     injected AT                  which the server read before the send returned;
 *     stamped STAMP NOW          time of a press sent with this time stamp: "AT"
 *     counts                     number of latencies by class
 *     taken BYTES, sent BYTES    on a connection: "1" if all bytes sent have been received */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipts.h"
#include "streams.h"

#define MS 1000000ull
#define OWNER 0x1000
#define OTHER 0x1001
#define INJECTOR 0x2000
#define SERVER 9
#define CLIENT 77
#define READ_AT (100000 * MS)

static __u32 tid;
static __u64 answers_read;

__u32 bpf_get_smp_processor_id(void) { return 0; }
__u64 bpf_get_current_pid_tgid(void) { return tid; }
__u64 bpf_ktime_get_ns(void) { return READ_AT; }
__u64 bpf_ktime_get_tai_ns(void) { return READ_AT; }

/* Drawing requests of the only known server. */
static struct drawing_requests requests;
static __u32 known_server;

void *bpf_map_lookup_elem(void *map, void *key)
{
	return map == &drawing_requests && known_server && *(__u32 *)key == known_server ? &requests : 0;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	static struct task_struct task;
	return &task;
}

long bpf_task_pt_regs(struct task_struct *task) { return 0; }

long bpf_probe_read_kernel(void *to, __u32 size, void *from)
{
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_user(void *to, __u32 size, void *from) { return 1; }

static __u32 parse(char *hex, __u8 *bytes)
{
	__u32 count = 0;

	for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		bytes[count++] = byte;
	return count;
}

/* Like `read_queue` in display.h. */
static struct reading *read_send(char *hex, struct framing *framing, bool wayland, bool request)
{
	static struct reading reading;
	static __u8 bytes[8192];
	__u32 count = parse(hex, bytes);

	memset(&reading, 0, sizeof(reading));
	reading.request = request;
	reading.server = SERVER;
	reading.segments[0].bytes = count;
	reading.segments[0].base = (__u64)bytes;
	reading.segment_count = 1;
	reading.wayland = wayland;
	reading.now = READ_AT;
	continue_stream(&reading, framing);
	read_heads(&reading, count, 0);
	keep_framing(&reading, framing, count);
	return &reading;
}

static struct reading *read_alone(char *hex, bool wayland, bool request)
{
	struct framing framing = { .started = 1 };

	return read_send(hex, &framing, wayland, request);
}

static void read_requests(char *hex)
{
	static struct framing framing = { .started = 1 };
	struct reading *reading = read_send(hex, &framing, 0, 1);

	printf("%u %llu\n", reading->heads, sends_skipped);
}

static void read_events(char *hex, bool wayland)
{
	struct reading *reading = read_alone(hex, wayland, 0);

	printf("%u %u %u %u %u\n", reading->press, reading->stamp_ms, reading->moves, reading->moved_ms, reading->presses);
}


static void tell_request(struct reading *reading)
{
	printf("%u %u\n", reading->draws, reading->injects);
}

static void tell_answers(void)
{
	for (; answers_read < answers_told; answers_read++) {
		struct told_answer *told = &told_answers[answers_read % TOLD];
		printf("%u %llu %u ", told->class, told->first / MS, told->queued);
		if (told->presses > 1 && !told->queued)
			printf("of %u ", told->presses);
		if (told->silent)
			printf("after %u ", told->silent);
	}
	for (__u32 slot = 0; slot < ANSWER_SLOTS; slot++) {
		if (*open_word(slot) & slot_bit(slot))
			printf("%u? ", answers[slot].class);
		if (*open_word(POINTER_SLOT + slot) & slot_bit(slot))
			printf("%u? ", pointers[slot].told.class);
	}
	printf("\n");
}

static void tell_counts(void)
{
	for (int class = 0; class < ANSWER_CLASSES; class++) {
		__u32 sum = 0;
		for (int slot = 0; slot < ANSWER_SLOTS; slot++)
			for (int bucket = 0; bucket < ANSWER_BUCKETS; bucket++)
				sum += answer_counts[slot][class][bucket];
		printf("%u ", sum);
	}
	printf("\n");
}

static void obey(char *order, __u64 *number)
{
	__u64 first = number[0] * MS, second = number[1] * MS, third = number[2] * MS, owner = OWNER;
	char *last = order + strlen(order) - 1;

	if (last > order && *last == 'b') {
		owner = OTHER;
		*last = 0;
	}
	tid = !strcmp(order, "press") || !strcmp(order, "moves") ? SERVER : number[0];
	if (!strcmp(order, "press"))
		note_presses(owner, CLIENT, KEY_PRESSED | (number[2] ? number[2] : 1) << 8, first, second);
	else if (!strcmp(order, "moves"))
		note_moves(owner, CLIENT, number[0], second, third);
	else if (!strcmp(order, "already"))
		note_already_taken(owner, tid, second, third);
	else if (!strcmp(order, "sleep") && took_presses(tid))
		note_slept(tid, second, third, 0);
	else if (!strcmp(order, "woken") && took_presses(tid))
		note_slept(tid, second, third, SERVER);
	else if (!strcmp(order, "take"))
		note_taken(owner, second);
	else if (!strcmp(order, "draw"))
		note_drawing(owner, 0, second);
	else if (!strcmp(order, "serve"))
		note_request_taken(owner, second);
	else if (!strcmp(order, "served"))
		note_drawing_already_taken(owner, tid, second);
	else if (!strcmp(order, "inject"))
		note_injection(0, INJECTOR, first);
	else if (!strcmp(order, "injected"))
		forget_injection(0, first);
	else if (!strcmp(order, "hold"))
		hold(find_answer(owner));
	else if (!strcmp(order, "release"))
		release(&answers[find_answer(owner)]);
	else if (!strcmp(order, "wait"))
		server_waits(tid, second);
	tell_answers();
}

int main(void)
{
	static char line[32768], order[16], words[3][16384];
	struct receipt receipt = {};
	__u32 sent = 0;

	while (fgets(line, sizeof(line), stdin)) {
		memset(words, 0, sizeof(words));
		sscanf(line, "%15s %16383s %16383s %16383s", order, words[0], words[1], words[2]);
		__u64 numbers[] = { strtoull(words[0], 0, 10), strtoull(words[1], 0, 10), strtoull(words[2], 0, 10) };
		if (!strcmp(order, "x11") || !strcmp(order, "wayland")) {
			read_events(words[0], order[0] == 'w');
		} else if (!strcmp(order, "request")) {
			tell_request(read_alone(words[0], 0, 1));
		} else if (!strcmp(order, "stream")) {
			read_requests(words[0]);
		} else if (!strcmp(order, "known")) {
			requests.minors[numbers[0] & 127] |= 1ull << numbers[1];
			known_server = numbers[2];
			printf("\n");
		} else if (!strcmp(order, "met")) {
			note_server(numbers[0], SERVER);
			printf("%u %u\n", unknown_server.display, unknown_server.server);
		} else if (!strcmp(order, "hide")) {
			input_hidden = 1;
			printf("\n");
		} else if (!strcmp(order, "unwatched")) {
			printf("%llu\n", answers_unwatched);
		} else if (!strcmp(order, "counts")) {
			tell_counts();
		} else if (!strcmp(order, "taken")) {
			add_receipt(&receipt, numbers[0], READ_AT);
			printf("\n");
		} else if (!strcmp(order, "sent")) {
			sent += numbers[0];
			printf("%d\n", is_taken(&receipt, &sent));
		} else if (!strcmp(order, "stamped")) {
			printf("%llu\n", press_time(0, numbers[0], numbers[1] * MS) / MS);
		} else {
			obey(order, numbers);
		}
		fflush(stdout);
	}
	return 0;
}
