/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic Operations of several lcores on the same words (RFC 7306 5.3), for ThreadSanitizer. Exits
 * with status 1 if an operation was lost or only partly executed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/rdma/atomic.h"

#define THREADS 8
#define OPS     100000u /* more than a 16-bit field can count */
#define FIELDS  0x8000800080008000ull

static struct {
	uint64_t sum;    /* FetchAdd, one field */
	uint64_t fields; /* FetchAdd, each of four fields by two threads */
	uint64_t halves; /* CmpSwap, each half by four threads */
	uint64_t token;  /* Swap */
	uint64_t odd;    /* FetchAdd and CmpSwap at once */
} words;

struct worker {
	pthread_t thread;
	unsigned index;
	uint64_t in, out; /* number of tokens that the thread put in and took out */
	uint64_t swapped; /* by its CmpSwaps on `odd` */
};

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "atomic: %s\n", what);
	exit(1);
}

/* Increments one half of a word as a verbs program does; the other half is neither compared nor
 * written. */
static void
count_half(unsigned shift)
{
	uint64_t mask = 0xffffffffull << shift, seen = 0, original;

	for (;;) {
		uint64_t next = ((seen >> shift) + 1) << shift;

		need(rd_cmp_swap(&words.halves, next, mask, seen, mask, &original), "halves");
		if (((seen ^ original) & mask) == 0)
			return;
		seen = original;
	}
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t original, guess = 0;

	for (unsigned i = 0; i < OPS; i++) {
		uint64_t token = (uint64_t)w->index * OPS + i + 1;

		need(rd_fetch_add(&words.sum, 1 + w->index, 0, &original), "sum");
		need(rd_fetch_add(&words.fields, 1ull << 16 * (w->index % 4), FIELDS, &original),
			"fields");
		count_half(w->index % 2 * 32);
		w->in += token;
		w->out += rd_swap(&words.token, token);
		need(rd_cmp_swap(&words.odd, guess + 2, ~0ull, guess, ~0ull, &original), "odd");
		w->swapped += original == guess;
		need(rd_fetch_add(&words.odd, 1, 0, &guess), "odd");
		guess++;
	}
	return NULL;
}

int
main(void)
{
	struct worker workers[THREADS] = {0};
	uint64_t sum = 0, in = 0, out = 0, swapped = 0, field = OPS * (THREADS / 4) % 0x10000;
	uint64_t half = OPS * (THREADS / 2);

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].index = i;
		need(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0,
			"pthread_create");
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		sum += (uint64_t)OPS * (1 + i);
		in += workers[i].in;
		out += workers[i].out;
		swapped += workers[i].swapped;
	}
	need(words.sum == sum, "the sum is not exact");
	need(words.fields == (field | field << 16 | field << 32 | field << 48),
		"a field is not exact, or has carried into the next");
	need(words.halves == (half | half << 32), "a half is not exact");
	need(out + words.token == in, "a token was lost or doubled");
	need(words.odd == (uint64_t)OPS * THREADS + 2 * swapped, "FetchAdd and CmpSwap mixed");
	return 0;
}
