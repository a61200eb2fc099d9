/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast paths against the general ones. The input is a program of engine/steps.h. It runs twice,
 * from the same time on and with the same random numbers: in two instances with every fast path
 * (sending and receiving, of TCP, iWARP, Falcon and RDMA over Falcon), and in two instances
 * without. Both runs put the same frames on the wire at the same times, have the same replies,
 * events and completions, and leave the same memory of the clients and the same counters.
 *
 * The first byte chooses the configuration. The instances live as long as the process, so a finding
 * may depend on earlier inputs.
 */
#include <stdio.h>

#include "../../lib/base/mem.h"
#include "engine/steps.h"

#define EVENTS   65536u
#define START_NS 1000000000000ull
#define SHOWN    4 /* events of each run, from the first difference on */

/* The events of one run, in order. */
struct event {
	const char *what;
	int side;
	uint64_t at; /* time since the start of the input */
	size_t len;
	uint64_t hash;
};

static struct {
	struct event event[EVENTS];
	unsigned n;
} run_of[2];
static unsigned running; /* 0: the run with fast paths */
static uint64_t began;
static uint64_t random_state;

/* ---- In the place of the libraries' functions: the linker's option --wrap ---- */

uint64_t __wrap_eng_clock(void);
void __wrap_sk_random(void *buf, size_t len);

uint64_t
__wrap_eng_clock(void)
{
	return START_NS;
}

void
__wrap_sk_random(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
		((uint8_t *)buf)[i] = (uint8_t)(random_state >> 56);
	}
}

/* ---- What is compared ---- */

static uint64_t
hash_of(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325ull, v = 0;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * 0x100000001b3ull;
		h ^= h >> 29;
	}
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

static void
record(const char *what, int side, const void *p, size_t len)
{
	CLAIM(run_of[running].n < EVENTS);
	run_of[running].event[run_of[running].n++] = (struct event){.what = what,
		.side = side,
		.at = world_now() - began,
		.len = len,
		.hash = hash_of(p, len)};
}

static void
record_client(struct client *c)
{
	for (unsigned i = 0; i < c->n[THING_CQ]; i++)
		client_poll(c, i, SHM_ARM_NONE);
	record("the memory of a client of", c->side, client_mem(c), CLIENT_MEM);
}

static void
record_counter(void *arg, const char *layer, const char *name, enum sk_severity sev,
	const char *help, uint64_t value)
{
	/* Counts messages between stages that came too late; a run of packets is one message. */
	if (strcmp(name, "ENG_STALE") != 0)
		record(name, *(int *)arg, &value, sizeof(value));
}

static bool
equal(const struct event *a, const struct event *b)
{
	return a->what == b->what && a->side == b->side && a->at == b->at && a->len == b->len &&
	       a->hash == b->hash;
}

static void
show(const char *run, const struct event *e)
{
	fprintf(stderr, "%-8s %s instance %d, %zu bytes, %llu ns, hash %llx\n", run, e->what,
		e->side, e->len, (unsigned long long)e->at, (unsigned long long)e->hash);
}

/* Traps at the first difference of the runs. */
static void
compare(void)
{
	unsigned n = SK_MIN(run_of[0].n, run_of[1].n);

	for (unsigned i = 0; i < n; i++) {
		const struct event *a = &run_of[0].event[i], *b = &run_of[1].event[i];

		if (equal(a, b))
			continue;
		fprintf(stderr, "the runs differ in event %u\n", i);
		for (unsigned k = 0; k < SHOWN; k++) {
			show("fast", &run_of[0].event[SK_MIN(i + k, run_of[0].n - 1)]);
			show("general", &run_of[1].event[SK_MIN(i + k, run_of[1].n - 1)]);
		}
		CLAIM(!"the fast paths do what the general ones do");
	}
	CLAIM(run_of[0].n == run_of[1].n);
}

static void
run_in(enum world_kind kind, const struct fuzz_input *program)
{
	struct fuzz_input in = *program;
	struct world *w;

	run_of[running].n = 0;
	random_state = 1;
	w = world_enter(kind);
	steps_run(w, &in, STEP_KINDS);
	steps_each(record_client);
	steps_end();
	for (int i = 0; i < 2; i++)
		eng_counters(w->e[i], record_counter, &i);
	record("the end of", 0, NULL, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};
	const bool crc = fuzz_byte(&in) & 1;

	began = world_now();
	running = 0;
	run_in(crc ? WORLD_FAST_CRC : WORLD_FAST, &in);
	world_set_now(began);
	running = 1;
	run_in(crc ? WORLD_GENERAL_CRC : WORLD_GENERAL, &in);
	compare();
	return 0;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	world_eal();
	world_observe(record);
	world_set_now(START_NS);
	return 0;
}
